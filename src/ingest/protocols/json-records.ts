import type { DecodeContext, EventSink } from '../../model/event.js'
import type { Problem } from '../formats/draft.js'
import { isRecord, type JsonRecord } from '../formats/json-value.js'
import { decodeJson } from '../formats/ndjson.js'
import { RecordDecoder } from '../formats/record.js'

/** A record that its protocol does not allow. */
export class Refused {
  readonly problem: Problem

  constructor(problem: Problem) {
    this.problem = problem
  }
}

/**
 * Changes a record before it is decoded like one of `/ingest`.
 *
 * @returns null for a record without content
 */
type Change = (record: JsonRecord) => JsonRecord | Refused | null

/**
 * Decodes a body of JSON records: an array, lines, or objects one after another.
 *
 * @param change is called for each record
 * @param isTolerant as of `RecordDecoder`
 */
export function decodeJsonRecords(
  bytes: Buffer,
  context: DecodeContext,
  {
    sink,
    change,
    isTolerant = false,
  }: { readonly sink: EventSink; readonly change: Change; readonly isTolerant?: boolean },
): void {
  decodeJson(bytes, new ChangingDecoder(context, sink, { change, isTolerant }))
}

class ChangingDecoder extends RecordDecoder {
  readonly #change: Change

  constructor(
    context: DecodeContext,
    sink: EventSink,
    { change, isTolerant }: { readonly change: Change; readonly isTolerant: boolean },
  ) {
    super(context, sink, { isTolerant })
    this.#change = change
  }

  override decode(line: number, record: unknown, rawOf: () => string): void {
    const changed = isRecord(record) ? this.#change(record) : record
    if (changed instanceof Refused) this.put(line, changed.problem, rawOf)
    else if (changed !== null) super.decode(line, changed, rawOf)
  }
}

/** Gives a record the source of its request, unless it has one of its own. */
export function withSource(record: JsonRecord, source: string): JsonRecord {
  const own = record['source']
  const hasOwn = typeof own === 'string' && own.trim() !== ''
  return source === '' || hasOwn ? record : { ...record, source }
}
