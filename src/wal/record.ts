import type { Priority } from '../model/event.js'

/** A change that takes effect between the rows before it and the rows after it. */
export type Command =
  | { readonly kind: 'delete-sources'; readonly sources: readonly string[] }
  | { readonly kind: 'clear-all' }
  | { readonly kind: 'correct-event'; readonly correction: EventCorrection }
  | EventDeletion
  | { readonly kind: 'delete-dead-letters'; readonly ids: readonly number[] }
  | SharedCommand

/** A change that all instances on a database make together. */
export type SharedChange =
  | { readonly kind: 'delete-sources'; readonly sources: readonly string[] }
  | { readonly kind: 'clear-all' }
  | { readonly kind: 'correct-event'; readonly event: number; readonly priority: Priority }
  /** No later message repeats an earlier event. */
  | { readonly kind: 'forget-repeats' }

/** The position of a shared change in this instance's log: it applies to the rows before it. */
export interface SharedCommand {
  readonly kind: 'shared'
  /** The id of the change, the same on all instances. */
  readonly id: string
  readonly change: SharedChange
  /** The time at which the change took effect without this instance, for which it applies to rows received earlier; else null. */
  readonly beforeMs: number | null
  /** Records before this one were already being sent, and stay unchanged. */
  readonly fromSeq: number
}

/** Deletes events; its record has the landing rows that subtract their occurrences from the rollups. */
export interface EventDeletion {
  readonly kind: 'delete-events'
  readonly ids: readonly number[]
  /** Subtracts the events from `template_stats`: a Native block in Base64, and the token of its insert. */
  readonly stats: string
  readonly token: string
}

export interface EventCorrection {
  readonly id: number
  readonly tsMs: number
  readonly priority: Priority
  readonly reason: string
}

export interface TemplateRow {
  readonly source: string
  /** 16 hex digits. */
  readonly id: string
  /** 16 hex digits; '' for none. */
  readonly redirectId: string
  readonly text: string
  /** Microseconds since 1970. */
  readonly born: number
}

export interface Registration {
  readonly name: string
  readonly type: 'push' | 'file' | 'webhook'
  readonly connector: string
  /** The application that the source belongs to. */
  readonly applicationId: string | null
  /** The ingest key that sent the message; '' without one. */
  readonly keyId: string
}

/** The payload of a WAL record; each part goes to its own table. */
export interface LogRecord {
  readonly landing: Uint8Array | null
  readonly landingRows: number
  readonly dead: Uint8Array | null
  readonly templates: readonly TemplateRow[]
  /** Sources that are registered by their first message. */
  readonly registrations: readonly Registration[]
  readonly command: Command | null
  /** The deduplication keys of bodies and records that their senders may repeat. */
  readonly onceKeys?: readonly string[]
  /** When it was appended; records without keys do not need it. */
  readonly atMs?: number
}

interface RecordHead {
  readonly landing: number
  readonly rows: number
  readonly dead: number
  readonly templates: readonly TemplateRow[]
  readonly registrations: readonly Registration[]
  readonly command: Command | null
  readonly onceKeys?: readonly string[]
  readonly atMs?: number
}

/** Format: length of the head (u32), the head as JSON, the landing block, the dead-letter block. */
export function encodeRecord(parts: LogRecord): Uint8Array[] {
  const head: RecordHead = {
    landing: parts.landing?.length ?? 0,
    rows: parts.landingRows,
    dead: parts.dead?.length ?? 0,
    templates: parts.templates,
    registrations: parts.registrations,
    command: parts.command,
    ...onceOf(parts),
  }
  const json = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  const payload: Uint8Array[] = [length, json]
  if (parts.landing !== null) payload.push(parts.landing)
  if (parts.dead !== null) payload.push(parts.dead)
  return payload
}

/** @param payload the result of `encodeRecord`, or its parts joined; its checksum was verified */
export function decodeRecord(payload: readonly Uint8Array[]): LogRecord {
  const [first = Buffer.alloc(0), ...others] = payload
  const bytes =
    others.length === 0
      ? Buffer.from(first.buffer, first.byteOffset, first.length)
      : Buffer.concat([first, others[0] ?? Buffer.alloc(0)])
  const headEnd = 4 + bytes.readUInt32LE(0)
  const head = JSON.parse(bytes.toString('utf8', 4, headEnd)) as RecordHead // our own bytes, checksummed
  const rows = others.length === 0 ? [bytes.subarray(headEnd)] : others.slice(1)
  return {
    landing: head.landing === 0 ? null : (rows[0]?.subarray(0, head.landing) ?? null),
    landingRows: head.rows,
    dead: head.dead === 0 ? null : (rows.at(-1)?.subarray(-head.dead) ?? null),
    templates: head.templates,
    registrations: head.registrations,
    command: head.command,
    ...onceOf(head),
  }
}

const onceOf = ({ onceKeys, atMs }: Pick<LogRecord, 'onceKeys' | 'atMs'>) => ({
  ...(onceKeys === undefined ? {} : { onceKeys }),
  ...(atMs === undefined ? {} : { atMs }),
})
