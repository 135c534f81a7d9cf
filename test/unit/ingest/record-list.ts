import type { RecordSink } from '../../../src/ingest/record-batch.js'

interface RecordList extends RecordSink {
  readonly records: { readonly text: string; readonly isCut: boolean }[]
  readonly texts: readonly string[]
}

/** Collects the records of a framing. */
export function recordList(): RecordList {
  const records: { readonly text: string; readonly isCut: boolean }[] = []
  return {
    records,
    get texts() {
      return records.map(({ text }) => text)
    },
    record: (bytes, from, to, isCut) => {
      records.push({ text: bytes.toString('utf8', from, to), isCut })
    },
    settle: () => undefined,
  }
}
