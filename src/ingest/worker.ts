import { threadId, workerData } from 'node:worker_threads'
import { move, transferableSymbol, valueSymbol } from 'piscina'

import { SignatureCache } from '../templates/signature-cache.js'
import { BlockEncoder, type Identity } from './block-encoder.js'
import { BodyEncoder } from './body-encoder.js'
import { DeadLetterEncoder } from '../writer/dead-letter-encoder.js'
import { packResult, unpackTask, type PackedTask } from './packed-task.js'
import { ConstantTexts } from '../templates/constant-texts.js'

/** The `workerData` of the threads that encode bodies. They look templates up in memory that all threads share. */
export interface WorkerSetup {
  readonly signatures: SharedArrayBuffer
  readonly constantTexts: SharedArrayBuffer
  readonly identity: Identity
}

const setup = workerData as WorkerSetup // given by pool.ts, which is typed
const signatures = new SignatureCache(setup.signatures)
const constantTexts = new ConstantTexts(setup.constantTexts)
const encoder = new BlockEncoder(
  {
    templateNo: (lo, hi) => signatures.get(lo, hi),
    templateGeneration: () => constantTexts.generation,
    constantText: (no) => constantTexts.get(no),
  },
  setup.identity,
)
const bodies = new BodyEncoder({ block: encoder, dead: new DeadLetterEncoder() })

/** Encodes the bodies of one task as one block. */
export async function encodeBlock(packed: PackedTask): Promise<unknown> {
  const result = await bodies.encode(unpackTask(packed), Date.now(), packed.slice)
  const value = packResult(result, packed)
  if (result.dead === null) return value
  // A copy of megabytes would block the main thread while it touches new memory.
  return move({ [valueSymbol]: value, [transferableSymbol]: [result.dead.bytes.buffer] })
}

/** Answers a readiness check with the thread's id. */
export const ping = (): number => threadId
