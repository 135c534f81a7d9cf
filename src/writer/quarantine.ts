import { readBlock, type NativeBlock } from '../clickhouse/native-reader.js'
import {
  decodeAmendment,
  encodeAmendment,
  piecesOf,
  type Batch,
  type NumberedRecord,
  type Piece,
  type RowTable,
} from './batch.js'
import { DeadLetterEncoder, WHOLE_RAW_BYTES } from './dead-letter-encoder.js'
import { wholeMessage } from '../model/stored-message.js'
import { wholeTags } from '../model/stored-tags.js'
import { EVENT_TYPES, SEVERITIES } from '../model/event.js'
import type { LogAt } from '../telemetry/log.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { Wal } from '../wal/wal.js'
import type { BatchStore } from './batch-store.js'

/**
 * Finds the rows of a batch that ClickHouse refuses, and sets them aside as dead letters.
 *
 * It finds them by bisection: it inserts halves into a table with the same columns and without
 * views until the smallest refused ranges are known. The batch is then recorded again: without
 * those ranges, with dead letters for them, under a new token. Messages that are too long for a
 * dead letter are written to a file beside the WAL.
 *
 * A new token is safe only when nothing of the batch is stored. ClickHouse makes one block of a batch and reads it to
 * its end before any of it reaches a view, so bytes that are refused here never reached a table. As a further check,
 * none of the events of the batch may be stored. When all rows are accepted here, a view or a table refused the batch,
 * and others may hold it: it stays unchanged, under its token.
 */

/**
 * The most trial inserts, enough to find forty rows among half a million. The ranges that are
 * undecided then are refused as a whole.
 */
const MAX_TRIALS = 1_500
const SAMPLE_EVENTS = 100

interface QuarantineDeps {
  readonly wal: Wal
  readonly batches: Pick<BatchStore, 'wouldTake' | 'storedAmong' | 'newToken'>
  /** Gives the ids of dead letters. */
  readonly ids: { readonly take: () => number }
  readonly log: LogAt<'error'>
  readonly metrics: Pick<Metrics, 'rowsRefused'>
  /** Called when rows became dead letters. */
  readonly onRefused: () => void
}

export type Quarantine = ReturnType<typeof createQuarantine>

export function createQuarantine({ wal, batches, ids, log, metrics, onRefused }: QuarantineDeps) {
  const holdsAny = async (pieces: readonly Piece[]): Promise<boolean> => {
    const events = newEvents(pieces)
    return events.length > 0 && (await batches.storedAmong(events)).size > 0
  }
  return {
    /** @returns false when the bytes of the batch are not at fault, so that it stays unchanged */
    async amend({ recorded, records }: Batch, table: RowTable): Promise<boolean> {
      const before = decodeAmendment(recorded.amendment)
      const pieces = piecesOf(table, records, before)
      const found = await findRefused(
        pieces,
        async (some) => !hasUnreadable(some) && (await batches.wouldTake(table, bytesOf(some))),
      )
      if (found.length === 0 || (await holdsAny(pieces))) return false
      const token = batches.newToken()
      const fileName = `refused-${token}.native`
      const dead = writeDeadLetters(found, records, ids, fileName)
      if (dead.overlong.length > 0) await wal.writeBeside(fileName, dead.overlong)
      const amendment = encodeAmendment({
        refused: [
          ...before.refused,
          ...found.map(({ seq, from, to }) => ({ seq, table, from, to })),
        ],
        dead: [...before.dead, ...(dead.bytes === null ? [] : [dead.bytes])],
        landed: before.landed || table === 'dead_letters',
        begins: before.begins,
      })
      await wal.recordBatch({ from: recorded.from, to: recorded.to, token, amendment })
      log.error({ rows: dead.rows }, 'ClickHouse refused rows of a batch; they are dead letters')
      metrics.rowsRefused(dead.rows)
      onRefused()
      return true
    },
  }
}

const bytesOf = (pieces: readonly Piece[]): readonly Uint8Array[] =>
  pieces.map(({ bytes }) => bytes)

/** Whether a block cannot be read. Wrong lengths make ClickHouse exceed its memory limit, which looks like a transient error. */
export const hasUnreadable = (pieces: readonly Piece[]): boolean =>
  pieces.some(({ bytes }) => readBlock(bytes) === null)

/** A sample of the events that begin in these rows; an insert into `events` is atomic, so a sample is enough. */
function newEvents(pieces: readonly Piece[]): readonly number[] {
  const ids: number[] = []
  for (const { table, bytes } of pieces) {
    const block = table === 'landing' ? readBlock(bytes) : null
    for (let row = 0; row < (block?.rows ?? 0); row++) {
      if (block?.number('is_new', row) === 1) ids.push(block.number('id', row) ?? 0)
      if (ids.length >= SAMPLE_EVENTS) return ids
    }
  }
  return ids
}

/** The smallest ranges of rows that are refused by themselves; none when all rows together are accepted. */
async function findRefused(
  all: readonly Piece[],
  wouldTake: (pieces: readonly Piece[]) => Promise<boolean>,
): Promise<readonly Piece[]> {
  let trials = 0
  const refusedAmong = async (pieces: readonly Piece[]): Promise<readonly Piece[]> => {
    trials++
    if (await wouldTake(pieces)) return []
    const halves = trials < MAX_TRIALS ? halve(pieces) : null
    if (halves === null) return pieces
    return [...(await refusedAmong(halves[0])), ...(await refusedAmong(halves[1]))]
  }
  return all.length === 0 ? [] : await refusedAmong(all)
}

/** @returns null for a single row, and for an unreadable block */
function halve(pieces: readonly Piece[]): readonly [readonly Piece[], readonly Piece[]] | null {
  const middle = pieces.length >>> 1
  if (middle > 0) return [pieces.slice(0, middle), pieces.slice(middle)]
  const [piece] = pieces
  const block = piece === undefined ? null : readBlock(piece.bytes)
  if (piece === undefined || block === null || block.rows < 2) return null
  // The rows of a correction are one unit.
  if (piece.table === 'landing' && block.text('variables', 0) === null) return null
  const half = block.rows >>> 1
  const part = (from: number, to: number): readonly Piece[] => [
    { ...piece, from: piece.from + from, to: piece.from + to, bytes: block.slice(from, to) },
  ]
  return [part(0, half), part(half, block.rows)]
}

const ORIGIN = { protocol: 'store', keyId: '', line: 0 }
/** A row becomes a dead letter for each message that it counts, up to this limit. */
const MAX_COPIES = 100_000
/** The greatest time of a Date. */
const MAX_DATE_MS = 8.64e15

interface DeadLetters {
  /** A Native block; null when none of the refused rows was a message. */
  readonly bytes: Uint8Array | null
  readonly rows: number
  /** Blocks with a message that is too long for a dead letter. */
  readonly overlong: readonly Uint8Array[]
}

/**
 * Writes a dead letter for each refused message, in the format of `/ingest`, so that it can be replayed.
 *
 * @param fileName the file of the `overlong` blocks
 */
function writeDeadLetters(
  refused: readonly Piece[],
  records: readonly NumberedRecord[],
  ids: QuarantineDeps['ids'],
  fileName: string,
): DeadLetters {
  const encoder = new DeadLetterEncoder()
  encoder.begin(Date.now())
  const overlong: Uint8Array[] = []
  for (const piece of refused) {
    const deadLetters = deadLettersOf(piece, records, fileName)
    for (const { copies, source, raw, message } of deadLetters)
      for (let i = 0; i < copies; i++)
        encoder.add(ORIGIN, { reason: 'store_refused', message, raw, source })
    if (deadLetters.some(({ copies, raw }) => copies > 0 && raw === '')) overlong.push(piece.bytes)
  }
  const dead = encoder.finish()
  if (dead === null) return { bytes: null, rows: 0, overlong }
  const view = new DataView(dead.bytes.buffer, dead.bytes.byteOffset, dead.bytes.length)
  for (let row = 0; row < dead.rows; row++)
    view.setBigUint64(dead.idAt + row * 8, BigInt(ids.take()), true)
  return { bytes: dead.bytes, rows: dead.rows, overlong }
}

interface DeadLetter {
  readonly copies: number
  readonly source: string
  /** '' when the message is too long for a dead letter. */
  readonly raw: string
  readonly message: string
}

function deadLettersOf(
  { seq, table, bytes }: Piece,
  records: readonly NumberedRecord[],
  fileName: string,
): readonly DeadLetter[] {
  const keptIn = `; it is kept in wal/${fileName}`
  const block = readBlock(bytes)
  if (block === null) {
    const copies = Math.max(1, records.find((record) => record.seq === seq)?.landingRows ?? 1)
    const message = `the store refused a block that cannot be read${keptIn}`
    return [{ copies, source: '', raw: '', message }]
  }
  return Array.from({ length: block.rows }, (_, row) => {
    const line = table === 'landing' ? toLine(block, row) : ''
    const raw = Buffer.byteLength(line) <= WHOLE_RAW_BYTES ? line : ''
    return {
      copies: table === 'landing' ? messagesIn(block, row) : 1,
      source: block.text('source', row) ?? '',
      raw,
      message: raw === '' ? `the store refused the row${keptIn}` : 'the store refused the message',
    }
  })
}

/** The rows of a correction are no messages: they move counts, n to the new priority and −n to the old. */
const messagesIn = (block: NativeBlock, row: number): number =>
  block.text('variables', row) === null
    ? 0
    : Math.min(MAX_COPIES, Math.max(1, block.number('n', row) ?? 1))

/** The row as a canonical event, without the unreadable fields. */
function toLine(block: NativeBlock, row: number): string {
  const text = (column: string): string | undefined => block.text(column, row) || undefined
  const named = (column: string, names: readonly string[]): string | undefined =>
    names[block.number(column, row) ?? -1] ?? text(column)
  return JSON.stringify({
    timestamp: toIso(block.number('ts', row)) ?? text('ts'),
    source: text('source'),
    type: named('type', EVENT_TYPES),
    severity: named('severity', SEVERITIES),
    message: wholeMessage(
      block.text('constant_text', row) ?? '',
      block.text('variables', row) ?? '',
    ),
    host: text('host'),
    environment: text('environment'),
    trace_id: text('trace_id'),
    span_id: text('span_id'),
    summary: text('summary'),
    tags: parsed(tagsOf(block, row)),
    dedup_key: text('dedup_key'),
  })
}

function tagsOf(block: NativeBlock, row: number): string | undefined {
  const text = (column: string): string => block.text(column, row) ?? ''
  const [names, values] = [text('attribute_names'), text('attribute_values')]
  return wholeTags({ names, values, text: text('tags_text') }) || undefined
}

const toIso = (ms: number | null): string | undefined =>
  ms === null || Math.abs(ms) > MAX_DATE_MS ? undefined : new Date(ms).toISOString()

function parsed(json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json)
  } catch {
    return json
  }
}
