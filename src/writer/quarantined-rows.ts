import { readBlock, type NativeBlock } from '../clickhouse/native-reader.js'
import { wholeMessage } from '../model/stored-message.js'
import { EVENT_TYPES, SEVERITIES } from '../model/event.js'
import type { NumberedParts, Piece } from './amendment.js'
import { DeadLetterEncoder, WHOLE_RAW_BYTES } from './dead-letter-encoder.js'

const PROTOCOL = 'store'
/** letters that stand for one row: as many as the messages folded into it, within reason */
const MAX_COPIES = 100_000
/** what a Date can hold */
const MAX_DATE_MS = 8.64e15

interface Letters {
  /** as Native bytes; null when the refused rows were no messages */
  readonly bytes: Uint8Array | null
  readonly rows: number
  /** blocks with messages that no dead letter can hold */
  readonly toKeep: readonly Uint8Array[]
}

interface LetterOptions {
  readonly takeId: () => number
  /** where the blocks of `toKeep` will be */
  readonly fileName: string
}

/** The dead letters for refused rows: one for each message, which holds it as `/ingest` would take it again. */
export function writeLetters(
  refused: readonly Piece[],
  entries: readonly NumberedParts[],
  { takeId, fileName }: LetterOptions,
): Letters {
  const encoder = new DeadLetterEncoder()
  encoder.begin(Date.now())
  const toKeep: Uint8Array[] = []
  for (const piece of refused) {
    const letters = lettersOf(piece, entries, fileName)
    for (const { copies, source, raw, message } of letters)
      for (let i = 0; i < copies; i++)
        encoder.add(PROTOCOL, 0, { reason: 'store_refused', message, raw, source })
    if (letters.some(({ copies, raw }) => copies > 0 && raw === '')) toKeep.push(piece.bytes)
  }
  const dead = encoder.finish()
  if (dead === null) return { bytes: null, rows: 0, toKeep }
  const view = new DataView(dead.bytes.buffer, dead.bytes.byteOffset, dead.bytes.length)
  for (let row = 0; row < dead.rows; row++)
    view.setBigUint64(dead.idAt + row * 8, BigInt(takeId()), true)
  return { bytes: dead.bytes, rows: dead.rows, toKeep }
}

interface Letter {
  readonly copies: number
  readonly source: string
  /** '' when the letter can't hold the message */
  readonly raw: string
  readonly message: string
}

function lettersOf(
  { seq, table, bytes }: Piece,
  entries: readonly NumberedParts[],
  fileName: string,
): readonly Letter[] {
  const keptIn = `; it is kept in wal/${fileName}`
  const block = readBlock(bytes)
  if (block === null) {
    const copies = Math.max(1, entries.find((entry) => entry.seq === seq)?.landingRows ?? 1)
    const message = `the store refused a block that can not be read${keptIn}`
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

/** None in the rows of a correction, which move counts: n under the new priority, −n under the old. */
const messagesIn = (block: NativeBlock, row: number): number =>
  block.text('variables', row) === null
    ? 0
    : Math.min(MAX_COPIES, Math.max(1, block.number('n', row) ?? 1))

/** The row as a canonical event; what can't be told is left out. */
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
    tags: parsed(text('tags')),
    dedup_key: text('dedup_key'),
  })
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
