import type { JsonRecord } from '../formats/json-value.js'
import { isRecord } from '../formats/json-value.js'
import { rawText } from '../formats/json-text.js'
import { RecordDecoder } from '../formats/record.js'
import { decodeJsonRecords, withSource } from './json-records.js'
import type { BodyParser } from './protocol.js'

export const recordsIn = (value: unknown): readonly JsonRecord[] =>
  Array.isArray(value) ? value.filter(isRecord) : []

/** Decodes bodies whose records contain lists of records. @param unfold returns the records of one */
export const unfolding =
  (unfold: (record: JsonRecord) => readonly JsonRecord[]): BodyParser =>
  (bytes, context, sink) => {
    const decoder = new RecordDecoder(context, sink)
    const change = (outer: JsonRecord): null => {
      for (const record of unfold(outer)) {
        const named = withSource(record, context.requestSource)
        decoder.decode(decoder.received + 1, named, () => rawText(record))
      }
      return null
    }
    decodeJsonRecords(bytes, context, { sink, change })
  }
