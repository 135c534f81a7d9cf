import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A pool of buffers. */
interface Pool {
  readonly acquires: number
  readonly freeBytes: number
  trim(): void
}

/**
 * Gives the free buffers of pools back to the system when nothing comes in. A buffer is freed by the next garbage collection,
 * and V8 makes none while nothing is allocated, so one is asked for. It blocks the thread for about 50 ms, once in each rest.
 *
 * @param restMs time without a buffer being taken, after which they are given back
 * @returns a function that ends it
 */
export function trimWhenIdle(pools: readonly Pool[], restMs: number): () => void {
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
