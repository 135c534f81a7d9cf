/**
 * Glossary.
 * message     one record as a producer sent it
 * event       the deduplicated record that is stored; has an id
 * occurrence  one received message counted towards an event
 * template    the constant text that messages of one kind share
 * source      the registered, named origin of messages
 * block       the messages of one worker task as ClickHouse Native columns
 * batch       the blocks of one INSERT, sent under one deduplication token
 * bucket      a step of time with its counters
 */

/** Index = the value stored in ClickHouse's Enum8 and in the column blocks. */
export const SEVERITIES = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const
export type Severity = (typeof SEVERITIES)[number]

export const PRIORITIES = ['P1', 'P2', 'P3', 'P4'] as const
export type Priority = (typeof PRIORITIES)[number]

export const EVENT_TYPES = ['log', 'metric', 'trace', 'event'] as const
export type EventType = (typeof EVENT_TYPES)[number]

export const PRIORITY_SOURCES = ['auto', 'template', 'manual'] as const
export type PrioritySource = (typeof PRIORITY_SOURCES)[number]

/** A message after decoding, before severity inference, mining and deduplication. */
export interface CanonicalEvent {
  /** ms since 1970, integer */
  readonly timestampMs: number
  /** 1..120 characters, no control characters */
  readonly source: string
  readonly type: EventType
  /** null when the record names no level: the message itself is asked then */
  readonly severity: Severity | null
  /** kept verbatim */
  readonly message: string
  readonly host: string
  /** as received; the configured environment when the record names none */
  readonly environment: string
  readonly traceId: string
  readonly spanId: string
  readonly summary: string
  /** free-form values; null when there are none */
  readonly tags: Readonly<Record<string, unknown>> | null
  /** the producer's own key, '' when it brought none */
  readonly dedupKey: string
  /** a ready-made template (OpenTelemetry `log.record.template`), '' when none */
  readonly template: string
}

/** Why a message is not stored; the `code` of `/ingest` errors and the `reason` of a dead letter. */
export const REJECT_REASONS = [
  'invalid_json',
  'invalid_event',
  'missing_source',
  'missing_message',
  'invalid_timestamp',
  'timestamp_out_of_range',
  'message_too_large',
  'unknown_source',
  'source_limit',
  'store_refused',
] as const
export type RejectReason = (typeof REJECT_REASONS)[number]

/** Where a decoder puts what it finds; called in the order of the body. */
export interface EventSink {
  /** @param line 1-based line, row or array position */
  event(line: number, event: CanonicalEvent): void
  /** @param raw the text of the record; the receiver cuts it, and drops it for uploads */
  reject(line: number, rejection: Rejection): void
}

export interface Rejection {
  readonly reason: RejectReason
  /** what was wrong and what would do; never a value from the record */
  readonly message: string
  readonly raw: string
  /** '' when the record names none */
  readonly source: string
}

export interface DecodeContext {
  readonly nowMs: number
  /** used when the record names no environment */
  readonly environment: string
  /** source of every record (uploads); null = each record names its own */
  readonly source: string | null
  readonly maxMessageBytes: number
  /** rows above this are a parse error; Infinity for `/ingest`, which is bounded by bytes */
  readonly maxRows: number
}

/** What lists show of a stored event, with what was counted for it. */
export interface ListedEvent {
  readonly id: number
  readonly timestampMs: number
  readonly lastSeenMs: number
  readonly source: string
  readonly type: EventType
  readonly severity: Severity
  readonly priority: Priority
  /** 16 hex digits, as stored: a later merge redirects it */
  readonly templateId: string
  readonly host: string
  readonly environment: string
  readonly traceId: string
  readonly message: string
  readonly tags: Readonly<Record<string, unknown>>
  readonly occurrenceCount: number
}

/** All of a stored event. */
export interface EventRecord extends ListedEvent {
  readonly receivedAtMs: number
  readonly prioritySource: PrioritySource
  readonly confidence: number
  readonly modelVersion: string
  readonly spanId: string
  readonly summary: string
  /** '' unless the producer brought one */
  readonly dedupKey: string
}
