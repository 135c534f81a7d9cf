import { stateUnavailable } from './state.js'

/** Locks within this process; the waiters of a key are served in order. */
export interface LocalLocks {
  /**
   * @returns releases the lock; calling it again does nothing
   * @throws AppError dependency_unavailable after the wait, or with too many waiters before it
   */
  readonly acquire: (key: string) => Promise<() => void>
}

/** The most waiters of one key; further ones are refused, so that no client can exhaust the memory. */
const MAX_WAITING = 1_000

export function createLocalLocks(waitMs: number): LocalLocks {
  /** The waiters by key; a key exists while its lock is taken. */
  const waiting = new Map<string, (() => void)[]>()

  const release = (key: string): void => {
    const next = waiting.get(key)?.shift()
    if (next === undefined) waiting.delete(key)
    else next()
  }
  const once = (key: string): (() => void) => {
    let isHeld = true
    return () => {
      if (isHeld) release(key)
      isHeld = false
    }
  }

  return {
    acquire: async (key) => {
      const queue = waiting.get(key)
      if (queue === undefined) {
        waiting.set(key, [])
        return once(key)
      }
      if (queue.length >= MAX_WAITING) {
        throw stateUnavailable(`${MAX_WAITING} others wait for the same lock`)
      }
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => {
          queue.splice(queue.indexOf(enter), 1)
          reject(stateUnavailable(`another one was not done within ${waitMs} ms`))
        }, waitMs)
        const enter = (): void => {
          clearTimeout(timer)
          resolve()
        }
        queue.push(enter)
      })
      return once(key)
    },
  }
}
