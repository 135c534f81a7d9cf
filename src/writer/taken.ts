import { readBlock, type NativeBlock } from '../clickhouse/native-reader.js'
import type { Piece, RowTable } from './batch.js'

/**
 * Finds the rows of a batch that ClickHouse has already, when the batch is sent again late.
 *
 * ClickHouse knows the tokens of the last 10,000 batches of a table, and completes a batch of which
 * it has a part. An instance that was away while others inserted more must not send its batch
 * again, or it would be counted twice. The rollups forget a token first, because every batch
 * inserts into them. Therefore every insert stores its token in the table `batches`, on each shard
 * that it reaches. When many later batches were stored, the rows of the shards that have the token
 * are left out.
 *
 * A batch counts as stored on a shard when its token is there. Tables of a shard can lack rows only
 * if its server was killed during this very insert and the instance then stayed away for this long.
 */
export interface StoredBatches {
  /** Counts the batches with later tokens up to `most`. */
  later(token: string, most: number): Promise<number>
  /** @returns the sources, among the given ones, whose rows of the batch with this token are stored */
  sourcesStored(token: string, sources: readonly string[]): Promise<ReadonlySet<string>>
  /** @returns the ids of the dead letters that are stored */
  deadLettersAmong(ids: readonly number[]): Promise<ReadonlySet<number>>
}

/**
 * A twentieth of what ClickHouse remembers: a batch has an entry for each day and retention, and the clocks of instances, of
 * which tokens are made, differ by minutes.
 */
export const SURELY_KNOWN_TOKENS = 500

/** @returns the rows that are to be sent again under the token */
export async function notStored(
  table: RowTable,
  token: string,
  pieces: readonly Piece[],
  batches: StoredBatches,
): Promise<readonly Piece[]> {
  if (
    pieces.length === 0 ||
    (await batches.later(token, SURELY_KNOWN_TOKENS)) < SURELY_KNOWN_TOKENS
  )
    return pieces
  if (table === 'landing') {
    const sources = valuesOf(pieces, (block, row) => block.text('source', row))
    const taken = await batches.sourcesStored(token, sources)
    return without(pieces, (block, row) => taken.has(block.text('source', row) ?? ''))
  }
  const ids = valuesOf(pieces, (block, row) => block.number('id', row))
  const taken = await batches.deadLettersAmong(ids)
  return without(pieces, (block, row) => taken.has(block.number('id', row) ?? 0))
}

function valuesOf<T>(
  pieces: readonly Piece[],
  read: (block: NativeBlock, row: number) => T | null,
): readonly T[] {
  const values = new Set<T>()
  for (const { bytes } of pieces) {
    const block = readBlock(bytes)
    for (let row = 0; row < (block?.rows ?? 0); row++) {
      const value = block === null ? null : read(block, row)
      if (value !== null) values.add(value)
    }
  }
  return [...values]
}

function without(
  pieces: readonly Piece[],
  isTaken: (block: NativeBlock, row: number) => boolean,
): readonly Piece[] {
  return pieces.flatMap((piece) => {
    const block = readBlock(piece.bytes)
    if (block === null) return [piece]
    const kept: Piece[] = []
    let from = 0
    for (let row = 0; row <= block.rows; row++) {
      if (row < block.rows && !isTaken(block, row)) continue
      if (row > from) kept.push({ ...piece, bytes: block.slice(from, row) })
      from = row + 1
    }
    return kept
  })
}
