import { readBlock } from '../clickhouse/native-reader.js'
import type { LogRecord } from '../wal/record.js'
import type { RecordedBatch } from '../wal/recorded-batch.js'

export type RowTable = 'landing' | 'dead_letters'

/** Rows `from` (inclusive) to `to` (exclusive) of the block that record `seq` has for a table. */
export interface RowRange {
  readonly seq: number
  readonly table: RowTable
  readonly from: number
  readonly to: number
}

/** How a batch differs from its records; recorded with the batch before it is sent. */
export interface Amendment {
  /** Rows that are left out because ClickHouse refuses them. */
  readonly refused: readonly RowRange[]
  /** Dead letters for the refused rows, as Native blocks. */
  readonly dead: readonly Uint8Array[]
  /** Whether the rows of `landing` are stored already and only dead letters were refused. */
  readonly landed: boolean
  /** Events whose first row was lost. Their first repeat in this batch becomes the first row. */
  readonly begins: readonly number[]
}

export interface NumberedRecord extends LogRecord {
  readonly seq: number
}

/** Records that are sent to ClickHouse together, with the batch as recorded in the WAL. */
export interface Batch {
  readonly recorded: RecordedBatch
  readonly records: readonly NumberedRecord[]
}

/** The end of a range that is a whole block. */
const ALL_ROWS = Number.MAX_SAFE_INTEGER

export const NO_AMENDMENT: Amendment = { refused: [], dead: [], landed: false, begins: [] }

/** Format: length of the head (u32), the head as JSON, the blocks of dead letters. */
export function encodeAmendment({ refused, dead, landed, begins }: Amendment): Uint8Array {
  const head: AmendmentHead = { refused, landed, begins, dead: dead.map((block) => block.length) }
  const json = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  return Buffer.concat([length, json, ...dead])
}

/** @param bytes the result of `encodeAmendment`; its checksum was verified */
export function decodeAmendment(bytes: Uint8Array | null): Amendment {
  if (bytes === null) return NO_AMENDMENT
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 4 + buffer.readUInt32LE(0)
  const head = JSON.parse(buffer.toString('utf8', 4, at)) as AmendmentHead // our own bytes, checksummed
  const dead = head.dead.map((length) => buffer.subarray(at, (at += length)))
  return { ...head, dead }
}

interface AmendmentHead {
  readonly refused: Amendment['refused']
  readonly landed: boolean
  readonly begins: readonly number[]
  /** The length of each block. */
  readonly dead: readonly number[]
}

/** A range of rows with their bytes. */
export interface Piece extends RowRange {
  readonly bytes: Uint8Array
}

export const wholeBlock = (seq: number, table: RowTable, bytes: Uint8Array): Piece => ({
  seq,
  table,
  from: 0,
  to: ALL_ROWS,
  bytes,
})

/** The rows of a batch for a table, without the refused ones. A retry gets the same bytes. */
export function piecesOf(
  table: RowTable,
  records: readonly NumberedRecord[],
  amendment: Amendment,
): readonly Piece[] {
  const pieces = records.flatMap((record) => {
    const bytes = table === 'landing' ? record.landing : record.dead
    if (bytes === null) return []
    const refused = amendment.refused.filter((r) => r.seq === record.seq && r.table === table)
    return refused.length === 0
      ? [wholeBlock(record.seq, table, bytes)]
      : accepted(record.seq, table, { bytes, refused })
  })
  return table === 'landing' && amendment.refused.length + amendment.begins.length > 0
    ? withNewEvents(pieces, records, amendment)
    : pieces
}

/** The ranges between the refused rows; none when the block is unreadable. */
function accepted(
  seq: number,
  table: RowTable,
  { bytes, refused }: { readonly bytes: Uint8Array; readonly refused: readonly RowRange[] },
): readonly Piece[] {
  const block = readBlock(bytes)
  if (block === null) return []
  const pieces: Piece[] = []
  let from = 0
  const end = { from: block.rows, to: block.rows }
  for (const gap of [...refused.toSorted((a, b) => a.from - b.from), end]) {
    if (gap.from > from)
      pieces.push({ seq, table, from, to: gap.from, bytes: block.slice(from, gap.from) })
    from = Math.max(from, gap.to)
  }
  return pieces
}

/** Turns the first remaining repeat of an event whose first row was refused or lost into its first row. */
function withNewEvents(
  pieces: readonly Piece[],
  records: readonly NumberedRecord[],
  { refused, begins }: Amendment,
): readonly Piece[] {
  const lost = new Set([...begins, ...refused.flatMap((rows) => begunBy(rows, records))])
  if (lost.size === 0) return pieces
  return pieces.map((piece) => {
    const block = readBlock(piece.bytes)
    if (block === null) return piece
    const begun = new Map<number, number>()
    for (let row = 0; row < block.rows; row++)
      if (lost.delete(block.number('id', row) ?? 0)) begun.set(row, 1)
    return begun.size === 0 ? piece : { ...piece, bytes: block.withBytes('is_new', begun) }
  })
}

/** Ids of the events that begin in a range of rows. */
function begunBy({ seq, table, from, to }: RowRange, records: readonly NumberedRecord[]): number[] {
  const bytes = records.find((record) => record.seq === seq)?.landing ?? null
  const block = table === 'landing' && bytes !== null ? readBlock(bytes) : null
  if (block === null) return []
  const ids: number[] = []
  for (let row = from; row < Math.min(to, block.rows); row++)
    if (block.number('is_new', row) === 1) ids.push(block.number('id', row) ?? 0)
  return ids
}

/** Ids of events that rows of the batch repeat, and that neither begin in it nor are stored. */
export async function orphansOf(
  records: readonly NumberedRecord[],
  storedAmong: (ids: readonly number[]) => Promise<ReadonlySet<number>>,
): Promise<readonly number[]> {
  const begun = new Set<number>()
  const repeated = new Set<number>()
  for (const { landing } of records) {
    const block = landing === null ? null : readBlock(landing)
    for (let row = 0; row < (block?.rows ?? 0); row++) {
      const id = block?.number('id', row) ?? 0
      if (block?.number('is_new', row) === 1) begun.add(id)
      else if (!begun.has(id)) repeated.add(id)
    }
  }
  if (repeated.size === 0) return []
  const stored = await storedAmong([...repeated])
  return [...repeated].filter((id) => !stored.has(id))
}

/** Whether a command needs a batch of its own. Replayed dead letters are deleted after the rows of any batch. */
export const standsAlone = (command: LogRecord['command']): boolean =>
  command !== null && command.kind !== 'delete-dead-letters'

/** The commands of records with their numbers; the replayed dead letters of all records are deleted at once. */
export function commandsOf(records: readonly NumberedRecord[]) {
  const ids: number[] = []
  const others = records.flatMap(({ seq, command }) => {
    if (command?.kind === 'delete-dead-letters') ids.push(...command.ids)
    return command === null || !standsAlone(command) ? [] : [{ seq, command }]
  })
  if (ids.length === 0) return others
  const command = { kind: 'delete-dead-letters', ids } as const
  return [{ seq: records[0]?.seq ?? 0, command }, ...others]
}
