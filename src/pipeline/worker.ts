import { threadId, workerData } from 'node:worker_threads'
import { move, transferableSymbol, valueSymbol } from 'piscina'

import { LineReader } from '../collector/line-reader.js'
import { sourceSeed, scanShape } from '../mining/scan.js'
import { ShapeCache } from '../mining/shape-cache.js'
import { Interner } from '../lib/interner.js'
import type { BlockResult, BlockTask, RowBlock } from './block.js'
import { BlockEncoder } from './block-encoder.js'
import { BodyEncoder } from './body-encoder.js'
import { DeadLetterEncoder } from './dead-letter-encoder.js'

/** What each thread is started with. */
export interface WorkerSetup {
  readonly shapes: SharedArrayBuffer
  /** random per process: senders can't aim for a collision */
  readonly hashSeed: readonly [number, number]
}

/** distinct sources, hosts, levels … that a thread remembers */
const MAX_WORDS = 65_536

const setup = workerData as WorkerSetup // given by pool.ts, which is typed
const shapes = new ShapeCache(setup.shapes)
const reader = new LineReader(new Interner(MAX_WORDS))
const block = new BlockEncoder(
  {
    sourceSeed,
    scanShape: (bytes, start, end, seed, out) =>
      scanShape(bytes, start, end, seed[0] ?? 0, seed[1] ?? 0, out),
    templateNo: (lo, hi) => shapes.get(lo, hi),
  },
  Int32Array.from(setup.hashSeed),
  reader.words,
)
const bodies = new BodyEncoder({ reader, block, dead: new DeadLetterEncoder() })

/** Decodes, mines and hashes the bodies of one task into one block. Runs in a worker thread. */
export async function encodeBlock(task: BlockTask): Promise<BlockResult> {
  return moved(await bodies.encode(task, Date.now()))
}

/** Hands the result's buffers over instead of copying them. */
function moved(result: BlockResult): BlockResult {
  const buffers = [
    ...result.returned,
    ...(result.block === null ? [] : buffersOf(result.block)),
    result.dead?.bytes.buffer ?? null,
  ].filter((buffer) => buffer !== null)
  return move({
    get [transferableSymbol]() {
      return buffers
    },
    get [valueSymbol]() {
      return result
    },
  }) as unknown as BlockResult // piscina unwraps the value on the other side
}

function buffersOf(block: RowBlock): ArrayBuffer[] {
  const arrays: Uint8Array<ArrayBuffer>[] = [block.bytes, block.severities]
  const buffers = arrays.map((array) => array.buffer)
  buffers.push(
    block.hashes.buffer,
    block.tsMs.buffer,
    block.counts.buffer,
    block.sourceIndexes.buffer,
    block.templateNos.buffer,
  )
  if (block.misses !== null) buffers.push(block.misses.bytes.buffer)
  return buffers
}

/** For a readiness check: which thread answers. */
export const ping = (): number => threadId
