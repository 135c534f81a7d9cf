import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A pool of buffers. */
interface Pool {
  readonly acquires: number
  readonly freeBytes: number
  trim(): void
}

/**
 * Returns the free buffers of pools to the system when no buffer is used. A buffer is freed by the
 * next garbage collection, and V8 runs none while nothing is allocated, so this forces one. It
 * blocks the thread for about 50 ms, once in each idle time.
 *
 * @param idleMs the time without an acquired buffer after which the free ones are returned
 * @returns a function that stops it
 */
export function trimWhenIdle(pools: readonly Pool[], idleMs: number): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void // the flag defines it
  const acquiresOf = (): number => pools.reduce((sum, { acquires }) => sum + acquires, 0)
  let before = 0
  let isTrimmed = false
  const timer = setInterval(() => {
    const acquires = acquiresOf()
    const isIdle = acquires === before
    before = acquires
    if (isIdle && !isTrimmed) {
      for (const pool of pools) pool.trim()
      collect()
    }
    isTrimmed = isIdle
  }, idleMs).unref()
  return () => clearInterval(timer)
}
