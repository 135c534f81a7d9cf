import { randomUUID } from 'node:crypto'

import { readBlock } from '../clickhouse/native-reader.js'
import {
  decodeAmendment,
  encodeAmendment,
  piecesOf,
  type NumberedParts,
  type Piece,
  type RowTable,
} from './amendment.js'
import { writeLetters } from './quarantined-rows.js'
import type { BatchCut, Wal } from '../wal/wal.js'

/** Trial inserts a batch: enough for forty rows among half a million. What is undecided then goes whole. */
const MAX_TRIALS = 1_500
const SOME_EVENTS = 100

export interface RefusalParts {
  readonly wal: Wal
  /**
   * Has ClickHouse read rows of a table without storing them.
   *
   * @returns whether it would take them; throws when it can't be asked
   */
  readonly wouldTake: (table: RowTable, parts: readonly Uint8Array[]) => Promise<boolean>
  /** which of these events are stored */
  readonly held: (ids: readonly number[]) => Promise<ReadonlySet<number>>
  /** a token for a new batch; absent: a random one */
  readonly newToken?: () => string
  /** an id for a dead letter */
  readonly takeId: () => number
  /** Keeps bytes that a dead letter can't hold; on disk when it resolves. */
  readonly keep: (name: string, bytes: readonly Uint8Array[]) => Promise<void>
  /** rows that are dead letters from here on */
  readonly onRefused: (rows: number) => void
}

/** Finds and sets aside the rows of a batch that ClickHouse refuses. */
export interface Refusals {
  /**
   * Looks for what is refused by cutting the batch in halves against a table of the same columns without
   * views, and records what the batch goes without. The next try is the rest under a new token.
   *
   * That is safe only when nothing of the batch is stored. ClickHouse makes one block of a batch, and so
   * reads it to its end before any of it reaches a view: when the very same bytes are refused here, every
   * try was refused before it reached a table. And none of its events may be in `events` (a program whose
   * tables were others might have stored them). A batch that is taken here was refused by a view or a
   * table, some of which may hold it: it stays as it is, under its token.
   *
   * @returns false when its bytes are not at fault
   */
  amend(
    batch: { readonly cut: BatchCut; readonly parts: readonly NumberedParts[] },
    table: RowTable,
  ): Promise<boolean>
}

export function createRefusals(parts: RefusalParts): Refusals {
  const holdsAny = async (pieces: readonly Piece[]): Promise<boolean> => {
    const ids = newEvents(pieces)
    return ids.length > 0 && (await parts.held(ids)).size > 0
  }
  return {
    async amend({ cut, parts: entries }, table) {
      const before = decodeAmendment(cut.amendment)
      const pieces = piecesOf(table, entries, before)
      const found = await findRefused(
        pieces,
        async (some) => !hasUnreadable(some) && (await parts.wouldTake(table, bytesOf(some))),
      )
      if (found.length === 0 || (await holdsAny(pieces))) return false
      const token = parts.newToken?.() ?? randomUUID()
      const letters = writeLetters(found, entries, {
        takeId: parts.takeId,
        fileName: `refused-${token}.native`,
      })
      if (letters.toKeep.length > 0) await parts.keep(`refused-${token}.native`, letters.toKeep)
      const amendment = encodeAmendment({
        refused: [
          ...before.refused,
          ...found.map(({ seq, from, to }) => ({ seq, table, from, to })),
        ],
        dead: [...before.dead, ...(letters.bytes === null ? [] : [letters.bytes])],
        landed: before.landed || table === 'dead_letters',
        begins: before.begins,
      })
      await parts.wal.cut({ from: cut.from, to: cut.to, token, amendment })
      parts.onRefused(letters.rows)
      return true
    },
  }
}

const bytesOf = (pieces: readonly Piece[]): readonly Uint8Array[] =>
  pieces.map(({ bytes }) => bytes)

/** Broken lengths make ClickHouse ask for more memory than there is, which looks like a fault that passes. */
export const hasUnreadable = (pieces: readonly Piece[]): boolean =>
  pieces.some(({ bytes }) => readBlock(bytes) === null)

/** Some of the events that begin in these rows. One insert fills a part of `events`: it is there whole or not. */
function newEvents(pieces: readonly Piece[]): readonly number[] {
  const ids: number[] = []
  for (const { table, bytes } of pieces) {
    const block = table === 'landing' ? readBlock(bytes) : null
    for (let row = 0; row < (block?.rows ?? 0); row++) {
      if (block?.number('is_new', row) === 1) ids.push(block.number('id', row) ?? 0)
      if (ids.length >= SOME_EVENTS) return ids
    }
  }
  return ids
}

/** The smallest runs of rows that are refused by themselves; none when all of them together are taken. */
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

/** @returns null for one row, and for a block that can't be cut */
function halve(pieces: readonly Piece[]): readonly [readonly Piece[], readonly Piece[]] | null {
  const middle = pieces.length >>> 1
  if (middle > 0) return [pieces.slice(0, middle), pieces.slice(middle)]
  const [piece] = pieces
  const block = piece === undefined ? null : readBlock(piece.bytes)
  if (piece === undefined || block === null || block.rows < 2) return null
  // the rows of a correction belong together
  if (piece.table === 'landing' && block.text('variables', 0) === null) return null
  const half = block.rows >>> 1
  const cut = (from: number, to: number): readonly Piece[] => [
    { ...piece, from: piece.from + from, to: piece.from + to, bytes: block.slice(from, to) },
  ]
  return [cut(0, half), cut(half, block.rows)]
}
