import { threadId, workerData } from 'node:worker_threads'
import { move, transferableSymbol, valueSymbol } from 'piscina'

import { maySourceBe, readLevelWord, typeIndex } from '../collector/line-words.js'
import { levelAtHead } from '../mining/head-level.js'
import { sourceSeed } from '../mining/scan.js'
import { ShapeCache } from '../mining/shape-cache.js'
import { SEVERITIES } from '../model/event.js'
import type { RowBlock } from './block.js'
import { BlockEncoder } from './block-encoder.js'
import { BodyEncoder } from './body-encoder.js'
import { DeadLetterEncoder } from './dead-letter-encoder.js'
import { packResult, unpackTask, type PackedResult, type PackedTask } from './packed-task.js'

/** What each thread is started with. */
export interface WorkerSetup {
  readonly shapes: SharedArrayBuffer
  /** four numbers, random per process: senders can't aim for a collision */
  readonly hashSeed: readonly number[]
}

const setup = workerData as WorkerSetup // given by pool.ts, which is typed
const shapes = new ShapeCache(setup.shapes)
const encoder = new BlockEncoder(
  {
    maySourceBe,
    typeIndex,
    readLevelWord,
    levelAtHead: (message) => SEVERITIES.indexOf(levelAtHead(message) ?? 'INFO'),
    sourceSeed,
    templateNo: (lo, hi) => shapes.get(lo, hi),
  },
  Int32Array.from(setup.hashSeed),
)
const bodies = new BodyEncoder({ block: encoder, dead: new DeadLetterEncoder() })

/** Decodes, mines and hashes the bodies of one task into one block. Runs in a worker thread. */
export async function encodeBlock(packed: PackedTask): Promise<PackedResult> {
  const result = await bodies.encode(unpackTask(packed), Date.now())
  return moved(packResult(result, packed))
}

/** Hands the result's buffers over instead of copying them. */
function moved(result: PackedResult): PackedResult {
  const buffers = [
    ...result.returned.map((bytes) => bytes?.buffer ?? null),
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
  }) as unknown as PackedResult // piscina unwraps the value on the other side
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
