import type { Pool } from './pool.js'

/** A pool whose threads are started by the first body that needs them. @param open starts them */
export function createLazyPool(workers: number, open: () => Promise<Pool>): Pool {
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
