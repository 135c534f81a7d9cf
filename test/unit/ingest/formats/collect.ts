import { UTC } from '../../../../src/ingest/formats/zone.js'
import type {
  CanonicalEvent,
  DecodeContext,
  EventSink,
  Rejection,
} from '../../../../src/model/event.js'
import { RecordDecoder } from '../../../../src/ingest/formats/record.js'
import type { Member, RecordTaker } from '../../../../src/ingest/record-rows.js'

export const NOW = Date.UTC(2026, 10, 21, 12)
export const AT = Date.UTC(2026, 10, 21, 9, 28, 19)

export const ingestContext: DecodeContext = {
  nowMs: NOW,
  toUtc: UTC,
  environment: 'production',
  source: null,
  defaultSource: 'nameless',
  requestSource: '',
  params: '',
  maxMessageBytes: 262_144,
  maxRows: Number.POSITIVE_INFINITY,
}

export const uploadContext: DecodeContext = { ...ingestContext, source: 'file', maxRows: 200_000 }

export interface Collected extends EventSink {
  readonly events: CanonicalEvent[]
  /** The line of each event. */
  readonly lines: number[]
  readonly rejects: (Rejection & { readonly line: number })[]
}

/** Creates a sink that collects all events and rejections. */
export function collect(): Collected {
  const events: CanonicalEvent[] = []
  const lines: number[] = []
  const rejects: (Rejection & { readonly line: number })[] = []
  return {
    events,
    lines,
    rejects,
    event(line, event) {
      lines.push(line)
      events.push(event)
    },
    reject(line, rejection) {
      rejects.push({ ...rejection, line })
    },
  }
}

const NAMES: Readonly<Record<Member, string>> = {
  source: 'source',
  severity: 'severity',
  host: 'host',
  environment: 'environment',
  traceId: 'trace_id',
  spanId: 'span_id',
  tags: 'tags',
}

/** Takes the records whose messages are parts of a body, and decodes them like lines of `/ingest`. */
export class DecodingTaker implements RecordTaker {
  readonly #sink: EventSink
  readonly #texts: Record<string, unknown> = {}
  #body = Buffer.alloc(0)
  #context = ingestContext
  #hasFlatTags = true
  /** Records that were taken. */
  taken = 0

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  begin(body: Uint8Array, context: DecodeContext): boolean {
    this.#body = Buffer.from(body)
    this.#context = context
    return true
  }

  take(next: number): { readonly next: number; readonly taken: number } {
    return { next, taken: 0 }
  }

  takeMessages(_: unknown, from: number): number {
    return from
  }

  setHead(): void {}

  takeHeaded(next: number): { readonly next: number; readonly heads: Uint32Array } {
    return { next, heads: new Uint32Array(0) }
  }

  setDefaultSource(defaultSource: string): void {
    this.#context = { ...this.#context, defaultSource }
  }

  set(member: Member, text: string): void {
    // Tags that JSON would write in another way are not taken, as a name that comes twice.
    if (member === 'tags')
      this.#hasFlatTags = text === '' || JSON.stringify(JSON.parse(text)) === text
    const value: unknown = member === 'tags' && text !== '' ? JSON.parse(text) : text
    this.#texts[NAMES[member]] = value === '' ? undefined : value
  }

  put(timeMs: number, from: number, to: number): boolean {
    if (!this.#hasFlatTags) return false
    const got = collect()
    const timestamp = timeMs === 0 ? undefined : timeMs
    const message = this.#body.toString('utf8', from, to)
    const record = { ...this.#texts, timestamp, message }
    new RecordDecoder(this.#context, got).decode(1, record, () => '')
    for (const event of got.events) this.#sink.event(0, event)
    this.taken += got.events.length
    return got.events.length > 0
  }
}
