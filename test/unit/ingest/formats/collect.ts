import { UTC } from '../../../../src/ingest/formats/zone.js'
import type {
  CanonicalEvent,
  DecodeContext,
  EventSink,
  Rejection,
} from '../../../../src/model/event.js'

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
