import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A pool of buffers. */
interface Pool {
  readonly acquires: number
  readonly freeBytes: number
  trim(): void
}

/**
 * Gives the free buffers of pools back to the system when nothing comes in. V8 does not count shared memory, and at rest
 * it collects nothing, so the heap is collected too; that takes the thread some 50 ms, once for each rest.
 *
 * @param restMs so long nothing is acquired before
 * @returns a function that ends it
 */
export function trimAtRest(pools: readonly Pool[], restMs: number): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void // what the flag makes global
  const acquiresOf = (): number => pools.reduce((sum, { acquires }) => sum + acquires, 0)
  let before = 0
  let isTrimmed = false
  const timer = setInterval(() => {
    const acquires = acquiresOf()
    const isAtRest = acquires === before
    before = acquires
    if (isAtRest && !isTrimmed) {
      for (const pool of pools) pool.trim()
      collect()
    }
    isTrimmed = isAtRest
  }, restMs).unref()
  return () => clearInterval(timer)
}
