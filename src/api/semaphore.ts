export interface SemaphoreOptions {
  /** The number of tasks that run at once. */
  readonly atOnce: number
  /** The number of tasks that may wait. */
  readonly waiting: number
  /** Creates the error of a task that cannot wait. */
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

export interface FairSemaphoreOptions {
  /** The number of tasks that run at once. */
  readonly atOnce: number
  /** The number of running tasks with the same key. */
  readonly perKey: number
  /** The number of tasks of a key that may wait. */
  readonly waitingPerKey: number
  /** Creates the error of a task that cannot wait. */
  readonly refusal: () => Error
}

interface Key {
  running: number
  readonly waiting: (() => void)[]
}

/** A semaphore that several keys share fairly. The tasks of one key run in the order of their calls. */
export function createFairSemaphore({
  atOnce,
  perKey,
  waitingPerKey,
  refusal,
}: FairSemaphoreOptions): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  let running = 0
  /** The keys with running or waiting tasks; the one served last is last. */
  const keys = new Map<string, Key>()

  /** The waiting key with the fewest running tasks; among equals the one that was served longest ago. */
  const nextName = (): string | null => {
    let best: string | null = null
    let fewest = perKey
    for (const [name, key] of keys) {
      if (key.waiting.length === 0 || key.running >= fewest) continue
      best = name
      fewest = key.running
    }
    return best
  }

  const startNext = (): void => {
    const name = running < atOnce ? nextName() : null
    const key = name === null ? undefined : keys.get(name)
    if (name === null || key === undefined) return
    keys.delete(name)
    keys.set(name, key)
    key.running++
    running++
    key.waiting.shift()?.()
  }

  return async (name, work) => {
    const key: Key = keys.get(name) ?? { running: 0, waiting: [] }
    if (key.waiting.length >= waitingPerKey) throw refusal()
    keys.set(name, key)
    await new Promise<void>((resolve) => {
      key.waiting.push(resolve)
      startNext()
    })
    try {
      return await work()
    } finally {
      key.running--
      running--
      if (key.running === 0 && key.waiting.length === 0) keys.delete(name)
      startNext()
    }
  }
}
