import { randomInt } from 'node:crypto'
import { Piscina } from 'piscina'

import { POOLED_FROM } from '../lib/buffer-pool.js'
import type { BlockResult, BlockTask, EncodedBlock } from './block.js'
import type { MissAnswer, MissTask } from './miner-thread.js'
import { packTask, type PackedResult, type SharedMemory } from './packed-task.js'
import type { MinedTemplate, Template } from '../templates/registry.js'
import type { TemplateRow } from '../wal/record.js'
import type { WorkerSetup } from './worker.js'

export interface Pool {
  readonly workers: number
  encode(task: BlockTask): Promise<EncodedBlock>
  /** Gives the template owner what is stored. @returns the number of each template, 0 = beyond its limits */
  restore(templates: readonly TemplateRow[]): Promise<Int32Array>
  /** @param known every template of the process by number, for a thread that starts afresh */
  resolve(task: MissTask, known: () => readonly Template[]): Promise<MissAnswer>
  /** Tells the template owner what other instances have stored. @returns what changed by that */
  adopt(
    templates: readonly TemplateRow[],
    known: () => readonly Template[],
  ): Promise<readonly MinedTemplate[]>
  /** Resolves when an encoder and the template owner have answered, or have just done something. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** between two tries to replace a thread that died while it started */
const REPLACE_AFTER_MS = 100

/**
 * A thread that dies is replaced by the package, unless it died while it started: then the package waits for
 * the next task, and tasks that wait already would wait for ever.
 */
function keepFilled(threads: Piscina, wanted: number): void {
  // a thread that fails without a task; whoever has one is told by its own promise
  threads.on('error', () => undefined)
  threads.on('workerDestroy', () => {
    setTimeout(() => {
      if (threads.threads.length < wanted)
        threads.run(null, { name: 'ping' }).catch(() => undefined)
    }, REPLACE_AFTER_MS).unref()
  })
}

/** Starts the worker threads and the one thread that owns the templates. */
export function createPool(
  workers: number,
  shared: Omit<WorkerSetup, 'hashSeed'>,
  memory: SharedMemory,
): Pool {
  const seed = (): number => randomInt(0, 2 ** 32) | 0
  const workerData: WorkerSetup = { ...shared, hashSeed: [seed(), seed(), seed(), seed()] }
  const common = { idleTimeout: Number.POSITIVE_INFINITY, concurrentTasksPerWorker: 1 }
  const encoders = new Piscina({
    ...common,
    filename: new URL('./worker.js', import.meta.url).href,
    minThreads: workers,
    maxThreads: workers,
    workerData,
  })
  keepFilled(encoders, workers)
  const owner = new Piscina({
    ...common,
    filename: new URL('./miner-thread.js', import.meta.url).href,
    minThreads: 1,
    maxThreads: 1,
  })
  keepFilled(owner, 1)
  const restore = async (templates: readonly TemplateRow[]): Promise<Int32Array> =>
    (await owner.run(templates, { name: 'restore' })) as Int32Array // the thread's own type
  /** A thread that replaced a dead one is told first what is known. */
  const askOwner = async <T>(
    name: 'resolveMisses' | 'adopt',
    task: unknown,
    known: () => readonly Template[],
  ): Promise<T> => {
    const ask = async (): Promise<T | null> => (await owner.run(task, { name })) as T | null // likewise
    const answer = await ask()
    if (answer !== null) return answer
    await restore(known())
    return (await ask()) ?? Promise.reject(new Error('bug: template owner not restored'))
  }
  const rooms = new RoomGuess()
  const heard = new LastHeard()
  return {
    workers,
    restore,
    encode: async (task) => {
      const { packed, unpack, release } = packTask(task, memory, rooms.guess(task))
      try {
        const result = unpack((await encoders.run(packed, { name: 'encodeBlock' })) as PackedResult) // the thread's own type
        rooms.note(task, result)
        heard.note(encoders)
        return result
      } finally {
        release()
      }
    },
    resolve: (task, known) => askOwner('resolveMisses', task, known),
    adopt: (templates, known) => askOwner('adopt', templates, known),
    ping: () => heard.ping([encoders, owner]),
    close: async () => {
      await Promise.all([encoders.close({ force: true }), owner.close({ force: true })])
    },
  }
}

/** threads that have finished something within this time are well */
const AT_WORK_MS = 5_000

/** When threads have last finished something. */
class LastHeard {
  readonly #atMs = new Map<Piscina, number>()

  note(threads: Piscina): void {
    this.#atMs.set(threads, performance.now())
  }

  /** Those with much to do are not asked: their answer would come when everything else is done. */
  async ping(all: readonly Piscina[]): Promise<void> {
    const sinceMs = performance.now() - AT_WORK_MS
    const silent = all.filter((threads) => (this.#atMs.get(threads) ?? -Infinity) < sinceMs)
    await Promise.all(silent.map((threads) => threads.run(null, { name: 'ping' })))
  }
}

/** a block that becomes larger than its room costs new memory; what it leaves of it is lent to the next one */
const SPARE = 1.25

/** How large blocks become, by what they were for the bodies before. */
class RoomGuess {
  #bytesPerByte = 1

  guess(task: BlockTask): number {
    return bodyBytes(task) * this.#bytesPerByte * SPARE
  }

  note(task: BlockTask, { block }: BlockResult): void {
    const bytes = bodyBytes(task)
    if (block === null || bytes < POOLED_FROM) return
    const end = block.severities.byteOffset + block.severities.byteLength
    const taken = end - block.bytes.byteOffset
    const now = taken / bytes
    // grows at once, shrinks slowly
    this.#bytesPerByte = Math.max(now, this.#bytesPerByte * 0.9 + now * 0.1)
  }
}

const bodyBytes = ({ bodies }: BlockTask): number =>
  bodies.reduce((sum, { bytes }) => sum + (bytes?.byteLength ?? 0), 0)
