import type { Priority } from '../model/event.js'

/** A change that takes effect between the rows before it and the rows after it. */
export type Command =
  | { readonly kind: 'delete-sources'; readonly sources: readonly string[] }
  | { readonly kind: 'clear-all' }
  | { readonly kind: 'correct-event'; readonly correction: EventCorrection }
  | { readonly kind: 'delete-dead-letters'; readonly ids: readonly number[] }
  | SharedCommand

/** A change that all instances on a database make together. */
export type SharedChange =
  | { readonly kind: 'delete-sources'; readonly sources: readonly string[] }
  | { readonly kind: 'clear-all' }
  | { readonly kind: 'correct-event'; readonly event: number; readonly priority: Priority }

/** The place of such a change in this instance's order: the rows before it are from before it. */
export interface SharedCommand {
  readonly kind: 'shared'
  /** the change's, the same everywhere */
  readonly id: string
  readonly change: SharedChange
  /** null, or it took effect while this instance was away, and only rows that came earlier are from before it */
  readonly beforeMs: number | null
  /** records before this one were being sent already, and are from before it as they are */
  readonly fromSeq: number
}

export interface EventCorrection {
  readonly id: number
  readonly tsMs: number
  readonly priority: Priority
  readonly reason: string
}

export interface TemplateRow {
  readonly source: string
  /** 16 hex digits */
  readonly id: string
  /** 16 hex digits, '' when none */
  readonly redirectId: string
  readonly text: string
  /** microseconds since 1970 */
  readonly born: number
}

export interface Registration {
  readonly name: string
  readonly type: 'push' | 'file' | 'webhook'
  readonly connector: string
  /** application the source is linked to, null when none */
  readonly applicationId: string | null
}

/** What one WAL record carries; each part goes to its own table. */
export interface LogRecord {
  readonly landing: Uint8Array | null
  readonly landingRows: number
  readonly dead: Uint8Array | null
  readonly templates: readonly TemplateRow[]
  /** sources registered by their first use */
  readonly registrations: readonly Registration[]
  readonly command: Command | null
}

interface RecordHead {
  readonly landing: number
  readonly rows: number
  readonly dead: number
  readonly templates: readonly TemplateRow[]
  /** sources registered by their first use */
  readonly registrations: readonly Registration[]
  readonly command: Command | null
}

/** head length u32, head as JSON, landing bytes, dead-letter bytes */
export function encodeRecord(parts: LogRecord): Uint8Array[] {
  const head: RecordHead = {
    landing: parts.landing?.length ?? 0,
    rows: parts.landingRows,
    dead: parts.dead?.length ?? 0,
    templates: parts.templates,
    registrations: parts.registrations,
    command: parts.command,
  }
  const json = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  const payload: Uint8Array[] = [length, json]
  if (parts.landing !== null) payload.push(parts.landing)
  if (parts.dead !== null) payload.push(parts.dead)
  return payload
}

/** @param payload written by `encodeRecord`, as its parts or as one array; checked by the WAL's checksum */
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
  }
}
