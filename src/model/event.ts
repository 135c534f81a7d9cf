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

/** The index is the value of ClickHouse's Enum8, in tables and blocks. */
export const SEVERITIES = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const
export type Severity = (typeof SEVERITIES)[number]

export const isErrorOrWorse = (severity: Severity): boolean =>
  severity === 'ERROR' || severity === 'CRITICAL'

export const PRIORITIES = ['P1', 'P2', 'P3', 'P4'] as const
export type Priority = (typeof PRIORITIES)[number]

export const EVENT_TYPES = ['log', 'metric', 'trace', 'event'] as const
export type EventType = (typeof EVENT_TYPES)[number]

export const PRIORITY_SOURCES = ['auto', 'template', 'manual'] as const
export type PrioritySource = (typeof PRIORITY_SOURCES)[number]

/** A message after decoding, before severity inference, mining and deduplication. */
export interface CanonicalEvent {
  /** Integer. */
  readonly timestampMs: number
  /** 1..120 characters without control characters. */
  readonly source: string
  readonly type: EventType
  /** Null when the record has no level: the severity is then inferred from the message. */
  readonly severity: Severity | null
  readonly message: string
  readonly host: string
  /** The configured environment when the record has none. */
  readonly environment: string
  readonly traceId: string
  readonly spanId: string
  readonly summary: string
  /** Any JSON values; null for none. */
  readonly tags: Readonly<Record<string, unknown>> | null
  /** The producer's deduplication key; '' for none. */
  readonly dedupKey: string
  /** The producer's template (OpenTelemetry `log.record.template`); '' for none. */
  readonly template: string
  /**
   * The text of an exception beside the message, whose words a search finds; it is stored as tags.
   * '' for none.
   */
  readonly exception: string
}

/** Why a message is not stored; the `code` of `/ingest` errors and the `reason` of a dead letter. */
export const REJECT_REASONS = [
  'invalid_json',
  'invalid_event',
  'missing_message',
  'invalid_timestamp',
  'timestamp_out_of_range',
  'message_too_large',
  'unknown_source',
  'source_limit',
  'key_source_limit',
  'store_refused',
] as const
export type RejectReason = (typeof REJECT_REASONS)[number]

/** Receives the decoded records in the order of the body. */
export interface EventSink {
  /** @param line 1-based line, row or array position */
  event(line: number, event: CanonicalEvent): void
  /**
   * Names the next record by the id with which its sender repeats it.
   *
   * @returns false when it was stored before and need not be decoded
   */
  identify?(id: string): boolean
  /** The receiver truncates the raw text, and drops it for uploads. */
  reject(line: number, rejection: Rejection): void
}

export interface Rejection {
  readonly reason: RejectReason
  /** What is wrong and what is valid; never a value of the record. */
  readonly message: string
  readonly raw: string
  /** '' when the record has none. */
  readonly source: string
}

export interface DecodeContext {
  readonly nowMs: number
  /** Converts a time without a zone. */
  readonly toUtc: (clockMs: number) => number
  /** For records without an environment. */
  readonly environment: string
  /** The source of every record of an upload; null when each record has its own. */
  readonly source: string | null
  /** The source of records that name none. */
  readonly defaultSource: string
  /**
   * The source that the request names; it takes precedence over one that only the protocol names.
   * '' for none.
   */
  readonly requestSource: string
  /** The request's parameters for the parser of its protocol, as a query string. */
  readonly params: string
  readonly maxMessageBytes: number
  /** More rows are a parse error; Infinity for `/ingest`, whose limit is in bytes. */
  readonly maxRows: number
}

/** A stored event as lists show it. */
export interface ListedEvent {
  readonly id: number
  readonly timestampMs: number
  readonly lastSeenMs: number
  readonly source: string
  readonly type: EventType
  readonly severity: Severity
  readonly priority: Priority
  /** 16 hex digits. A merged template's id redirects to another. */
  readonly templateId: string
  readonly host: string
  readonly environment: string
  readonly traceId: string
  readonly spanId: string
  readonly message: string
  readonly tags: Readonly<Record<string, unknown>>
  readonly occurrenceCount: number
}

/** A stored event with all its fields. */
export interface EventRecord extends ListedEvent {
  readonly receivedAtMs: number
  readonly prioritySource: PrioritySource
  readonly confidence: number
  readonly modelVersion: string
  readonly summary: string
  /** '' for none. */
  readonly dedupKey: string
}
