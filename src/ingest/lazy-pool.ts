import type { Config } from '../config.js'
import type { SharedMemory } from './packed-task.js'
import { createPool, type Pool } from './pool.js'

/** A pool whose threads are started by the first body that needs them. @param open starts them */
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
    // threads that are not there need not be told
    adopt: async (templates, known) =>
      opened === null ? [] : await (await opened).adopt(templates, known),
    ping: async () => await (await opened)?.ping(),
    close: async () => await (await opened?.catch(() => null))?.close(),
  }
}

interface PoolOptions {
  readonly shared: Parameters<typeof createPool>[1]
  readonly memory: SharedMemory
  /** Gives new threads the templates that are known. */
  readonly prepare: (pool: Pool) => Promise<void>
}

/** An instance that takes no events starts its threads with the first upload or replay. */
export async function openPool(
  { role, workers }: Pick<Config, 'role' | 'workers'>,
  { shared, memory, prepare }: PoolOptions,
): Promise<Pool> {
  const open = async (): Promise<Pool> => {
    const pool = createPool(workers, shared, memory)
    await prepare(pool)
    return pool
  }
  return role === 'api' ? createLazyPool(workers, open) : await open()
}
