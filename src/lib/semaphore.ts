export interface SemaphoreOptions {
  /** How many tasks run at once. */
  readonly atOnce: number
  /** How many tasks may wait. */
  readonly waiting: number
  /** Makes the error of a task that can't wait. */
  readonly refusal: () => Error
}

/** @throws the error of `refusal` when too many tasks wait, or the error of the task */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>

/** Tasks beyond `atOnce` wait and run in the order of their calls. */
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
