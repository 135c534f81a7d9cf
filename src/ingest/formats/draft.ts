import type { CanonicalEvent, DecodeContext, RejectReason, Severity } from '../../model/event.js'
import { EVENT_TYPES, type EventType } from '../../model/event.js'
import { isAcceptedTime } from './timestamp.js'

/** Why a record is rejected; `Rejection` without its raw text. */
export interface Problem {
  readonly reason: RejectReason
  readonly message: string
  /** '' when the record has no valid source. */
  readonly source: string
}

export type Decoded = CanonicalEvent | Problem

export const isProblem = (decoded: object): decoded is Problem => 'reason' in decoded

/** Limits in characters; a longer value is rejected, never truncated. */
export const MAX_CHARS = {
  source: 120,
  host: 255,
  environment: 64,
  trace_id: 256,
  span_id: 256,
  dedup_key: 256,
  summary: 16_384,
  template: 16_384,
} as const

/** The fields read from a record, before the limits are checked. */
export interface Draft {
  /** Null when the record has no time. */
  timestampMs: number | null
  /** '' when the record names none. */
  source: string
  type: EventType
  severity: Severity | null
  message: string
  host: string
  /** '' when the record names none. */
  environment: string
  traceId: string
  spanId: string
  summary: string
  dedupKey: string
  template: string
  exception: string
  tags: Record<string, unknown> | null
}

export const emptyDraft = (): Draft => ({
  timestampMs: null,
  source: '',
  type: 'log',
  severity: null,
  message: '',
  host: '',
  environment: '',
  traceId: '',
  spanId: '',
  summary: '',
  dedupKey: '',
  template: '',
  exception: '',
  tags: null,
})

/** Checks required fields and limits, and completes the event from the context. */
export function finishDraft(draft: Draft, context: DecodeContext): Decoded {
  const source = context.source ?? ownSource(draft.source, context)
  const bad = sourceProblem(source) ?? messageProblem(draft.message, context.maxMessageBytes)
  if (bad !== null) return { ...bad, source: usableSource(source) }
  const timestampMs = draft.timestampMs ?? context.nowMs
  if (!isAcceptedTime(timestampMs, context.nowMs)) return outOfRange(source)
  return {
    timestampMs,
    source,
    type: draft.type,
    severity: draft.severity,
    message: draft.message,
    host: draft.host,
    environment: draft.environment === '' ? context.environment : draft.environment,
    traceId: draft.traceId,
    spanId: draft.spanId,
    summary: draft.summary,
    tags: draft.tags,
    dedupKey: draft.dedupKey,
    template: draft.template,
    exception: draft.exception,
  }
}

type BareProblem = Omit<Problem, 'source'>

/** Source names are 1 to 120 characters without control characters, and not blank. */
export function sourceProblem(source: string): BareProblem | null {
  if (source.length > MAX_CHARS.source && Array.from(source).length > MAX_CHARS.source) {
    return invalid(`source is longer than ${MAX_CHARS.source} characters`)
  }
  let isBlank = true
  for (let i = 0; i < source.length; i += 1) {
    const code = source.charCodeAt(i)
    if (code < 32 || (code >= 127 && code < 160)) {
      return invalid('source holds control characters')
    }
    if (code !== 32) isBlank = false
  }
  return isBlank || source.trim() === '' ? invalid('source is blank') : null
}

/** A record without a source, or with a blank one, takes the default. */
export const ownSource = (source: string, context: DecodeContext): string =>
  source.trim() === '' ? context.defaultSource : source

/** @returns '' for an invalid source name */
export const usableSource = (source: unknown): string =>
  typeof source === 'string' && sourceProblem(source) === null ? source : ''

/** Docker's log drivers have the stream of a container under the name `source`. */
export const isStream = (text: unknown): boolean => text === 'stdout' || text === 'stderr'

export function messageProblem(message: string, maxBytes: number): BareProblem | null {
  if (message === '') {
    return { reason: 'missing_message', message: 'no message: send a text in `message`' }
  }
  // A UTF-16 unit is at most 3 bytes of UTF-8, so the bytes of most messages need not be counted.
  if (message.length * 3 <= maxBytes) return null
  if (message.length <= maxBytes && Buffer.byteLength(message, 'utf8') <= maxBytes) return null
  return {
    reason: 'message_too_large',
    message: `message is longer than ${maxBytes} bytes (MAX_MESSAGE_BYTES)`,
  }
}

export const invalid = (message: string): BareProblem => ({ reason: 'invalid_event', message })

export const outOfRange = (source: string): Problem => ({
  reason: 'timestamp_out_of_range',
  message: 'timestamp is before 1970 or more than one day ahead',
  source,
})

export const unreadableTime = (source: string): Problem => ({
  reason: 'invalid_timestamp',
  message: 'timestamp is not readable: send ISO 8601 or an epoch number',
  source,
})

export const isEventType = (value: unknown): value is EventType =>
  typeof value === 'string' && EVENT_TYPES.some((type) => type === value)
