import { randomInt } from 'node:crypto'
import { Piscina } from 'piscina'

import type { Config } from '../config.js'
import { POOLED_FROM } from '../lib/buffer-pool.js'
import { WORKER_NICE } from '../lib/nice.js'
import type { BlockResult, BlockTask, EncodedBlock } from './block.js'
import type { MissResult, MissTask, Owned } from './miner-thread.js'
import { packTask, type PackedResult, type SharedMemory } from './packed-task.js'
import type { Sources } from '../records/sources.js'
import type { MinedTemplate, Template } from '../templates/registry.js'
import { numberTemplates } from '../templates/sharing.js'
import type { TemplateTables } from '../templates/tables.js'
import type { TemplateRow } from '../wal/record.js'
import type { WorkerSetup } from './worker.js'

export interface Pool {
  /** The threads that one sender may use at once; the pool has one more. */
  readonly workers: number
  encode(task: BlockTask): Promise<EncodedBlock>
  /** Gives the miner the stored templates. @returns the number of each template, 0 = beyond its limits */
  restore(templates: readonly TemplateRow[]): Promise<Int32Array>
  /** @param known all numbered templates, to restore a thread that replaces a dead one */
  resolve(task: MissTask, known: () => readonly Template[]): Promise<MissResult>
  /** Passes templates of other instances to the miner. @returns the templates that changed */
  adopt(
    templates: readonly TemplateRow[],
    known: () => readonly Template[],
  ): Promise<readonly MinedTemplate[]>
  /** Resolves when an encoder and the miner have answered or recently finished a task. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Delay before a thread that died at its start is replaced. */
const REPLACE_AFTER_MS = 100

/** Piscina does not replace a thread that dies at its start until the next task, so queued tasks could wait for ever. */
function keepFilled(threads: Piscina, wanted: number): void {
  let isClosed = false
  threads.once('close', () => {
    isClosed = true
  })
  // Emitted for threads that fail without a task; otherwise the task's promise rejects.
  threads.on('error', () => undefined)
  threads.on('workerDestroy', () => {
    setTimeout(() => {
      if (!isClosed && threads.threads.length < wanted)
        threads.run(null, { name: 'ping' }).catch(() => undefined)
    }, REPLACE_AFTER_MS).unref()
  })
}

/**
 * A flag of Node.js for worker threads: they can't load ES modules by require(), so Piscina uses import(). Node.js aborts the whole
 * process when a thread is terminated during such a require(). Versions before 20.17 have neither that require() nor the flag.
 */
const IMPORT_ONLY = ['--no-experimental-require-module'].filter((flag) =>
  process.allowedNodeEnvironmentFlags.has(flag),
)

/** @param file a module, relative to this one or as a URL */
export function startThreads(file: string, threads: number, workerData?: WorkerSetup): Piscina {
  const pool = new Piscina({
    filename: new URL(file, import.meta.url).href,
    workerData,
    minThreads: threads,
    maxThreads: threads,
    idleTimeout: Number.POSITIVE_INFINITY,
    concurrentTasksPerWorker: 1,
    niceIncrement: WORKER_NICE,
    // Those of the process are not passed on: a thread refuses flags of V8, such as --max-old-space-size.
    execArgv: IMPORT_ONLY,
  })
  keepFilled(pool, threads)
  return pool
}

export interface PoolMemory {
  /** The data that all threads share; the seed is generated here. */
  readonly shared: Omit<WorkerSetup, 'identity'> & {
    readonly identity: Omit<WorkerSetup['identity'], 'seed'>
  }
  readonly memory: SharedMemory
  /** The ingest key that registered a source; '' for none. */
  readonly ownerOf: (source: string) => string
}

const newSeed = (): readonly number[] => Array.from({ length: 4 }, () => randomInt(0, 2 ** 32) | 0)

/** Starts the worker threads, one more than `workers`, and the one thread of the miner. */
export function createPool(workers: number, { shared, memory, ownerOf }: PoolMemory): Pool {
  const identity = { ...shared.identity, seed: newSeed() }
  const workerData: WorkerSetup = { ...shared, identity }
  const encoders = startThreads('./worker.js', workers + 1, workerData)
  const miner = startThreads('./miner-thread.js', 1)
  const owned = <T>(task: T, sources: Iterable<string>): Owned<T> => {
    const pairs = Array.from(new Set(sources), (source) => [source, ownerOf(source)] as const)
    return { task, owners: new Map(pairs.filter(([, owner]) => owner !== '')) }
  }
  const restore = async (templates: readonly TemplateRow[]): Promise<Int32Array> =>
    (await miner.run(owned(templates, sourcesOf(templates)), { name: 'restore' })) as Int32Array // the result type of miner-thread.ts
  /** Runs a task, after `restore` when the thread has no templates. */
  const runMiner = async <T>(
    name: 'resolveMisses' | 'adopt',
    task: Owned<unknown>,
    known: () => readonly Template[],
  ): Promise<T> => {
    const run = async (): Promise<T | null> => (await miner.run(task, { name })) as T | null // the result type of miner-thread.ts
    const result = await run()
    if (result !== null) return result
    await restore(known())
    return (await run()) ?? Promise.reject(new Error('bug: the miner was not restored'))
  }
  const sizes = new BlockSizeEstimate()
  const activity = new ThreadActivity()
  return {
    workers,
    restore,
    encode: async (task) => {
      const { packed, unpack, release } = packTask(task, memory, sizes.estimate(task))
      try {
        const result = unpack((await encoders.run(packed, { name: 'encodeBlock' })) as PackedResult) // the result type of worker.ts
        sizes.note(result)
        activity.note(encoders)
        return result
      } finally {
        release()
      }
    },
    resolve: (task, known) => runMiner('resolveMisses', owned(task, task.sources), known),
    adopt: (templates, known) => runMiner('adopt', owned(templates, sourcesOf(templates)), known),
    ping: () => activity.ping([encoders, miner]),
    close: async () => {
      await Promise.all([encoders.close({ force: true }), miner.close({ force: true })])
    },
  }
}

const sourcesOf = (templates: readonly TemplateRow[]): Iterable<string> =>
  templates.map(({ source }) => source)

interface PoolDeps extends TemplateTables {
  readonly config: Config
  readonly memory: SharedMemory
  readonly sources: Sources
}

/** Creates the pool, ready for bodies; an instance with the role `api` starts its threads with the first upload or replay. */
export async function openPool(deps: PoolDeps): Promise<Pool> {
  const { config, memory, sources, templates, signatures, constantTexts } = deps
  const { role, workers } = config
  const shared = {
    signatures: signatures.buffer,
    constantTexts: constantTexts.buffer,
    identity: {
      ignoredTags: config.dedupIgnoreAttributes,
      isDeduplicated: config.dedupWindowSeconds > 0,
    },
  }
  const ownerOf = (source: string): string => sources.ownerOf(source)
  const open = async (): Promise<Pool> => {
    const pool = createPool(workers, { shared, memory, ownerOf })
    const numbered = numberTemplates(templates, (known) => pool.restore(known))
    await Promise.all([numbered, pool.ping()])
    return pool
  }
  return role === 'api' ? createLazyPool(workers, open) : await open()
}

/** Creates a pool whose threads start with the first body. */
function createLazyPool(workers: number, open: () => Promise<Pool>): Pool {
  let opened: Promise<Pool> | null = null
  const started = (): Promise<Pool> => {
    opened ??= open().catch((cause: unknown) => {
      opened = null
      throw cause
    })
    return opened
  }
  return {
    workers,
    encode: async (task) => await (await started()).encode(task),
    restore: async (templates) => await (await started()).restore(templates),
    resolve: async (task, known) => await (await started()).resolve(task, known),
    // Threads that start later are restored with all templates.
    adopt: async (templates, known) =>
      opened === null ? [] : await (await opened).adopt(templates, known),
    ping: async () => await (await opened)?.ping(),
    close: async () => await (await opened?.catch(() => null))?.close(),
  }
}

/** Threads that finished a task within this time are alive. */
const AT_WORK_MS = 5_000

/** The times at which threads last finished a task. */
class ThreadActivity {
  readonly #atMs = new Map<Piscina, number>()

  note(threads: Piscina): void {
    this.#atMs.set(threads, performance.now())
  }

  /** Skips busy threads, because they would answer after all tasks in their queue. */
  async ping(all: readonly Piscina[]): Promise<void> {
    const sinceMs = performance.now() - AT_WORK_MS
    const silent = all.filter((threads) => (this.#atMs.get(threads) ?? -Infinity) < sinceMs)
    await Promise.all(silent.map((threads) => threads.run(null, { name: 'ping' })))
  }
}

/** A block that outgrows its buffer costs a new one, while an unused rest goes to the next block. */
const SPARE = 1.25

/** Predicts the size of a block from the sizes of recent ones. */
class BlockSizeEstimate {
  #bytesPerByte = 1

  estimate(task: BlockTask): number {
    return bodyBytes(task) * this.#bytesPerByte * SPARE
  }

  note({ block, bodies }: BlockResult): void {
    const bytes = bodies.reduce((sum, body) => sum + body.bytes, 0)
    if (block === null || bytes < POOLED_FROM) return
    const end = block.severities.byteOffset + block.severities.byteLength
    const taken = end - block.bytes.byteOffset
    const now = taken / bytes
    // The estimate grows at once and shrinks slowly.
    this.#bytesPerByte = Math.max(now, this.#bytesPerByte * 0.9 + now * 0.1)
  }
}

/** The usual ratio of compressed logs. */
const RATIO = 8

const bodyBytes = ({ bodies }: BlockTask): number =>
  bodies.reduce(
    (sum, { bytes, coding }) =>
      sum + (bytes?.byteLength ?? 0) * (coding === 'identity' ? 1 : RATIO),
    0,
  )
