export interface SemaphoreOptions {
  /** in work at once */
  readonly atOnce: number
  /** who may wait for that */
  readonly waiting: number
  /** what one more is refused with */
  readonly refusal: () => Error
}

/** @throws what `refusal` makes when too many wait, or what the work throws */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>

/** Lets only so many of something be in work at once; the others wait in the order in which they came. */
export function createSemaphore({ atOnce, waiting, refusal }: SemaphoreOptions): Semaphore {
  let free = atOnce
  const queue: (() => void)[] = []
  return async (work) => {
    if (free > 0) {
      free--
    } else {
      if (queue.length >= waiting) throw refusal()
      await new Promise<void>((resolve) => queue.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = queue.shift()
      if (next === undefined) free++
      else next()
    }
  }
}
