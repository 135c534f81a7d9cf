import { stateUnavailable } from './state.js'

/** Who holds or awaits what within this process; waiters of a key are served in order. */
export interface Turns {
  /** @returns ends the turn; calling it again does nothing
   * @throws AppError dependency_unavailable after `waitMs`, or with `maxWaiting` before it */
  readonly acquire: (key: string) => Promise<() => void>
}

interface TurnOptions {
  readonly waitMs: number
  /** per key; a client that provokes a pile-up is refused, not remembered */
  readonly maxWaiting: number
}

export function createTurns({ waitMs, maxWaiting }: TurnOptions): Turns {
  /** a key is present while its lock is held; the value lists who comes next */
  const waiting = new Map<string, (() => void)[]>()

  const release = (key: string): void => {
    const next = waiting.get(key)?.shift()
    if (next === undefined) waiting.delete(key)
    else next()
  }
  const once = (key: string): (() => void) => {
    let held = true
    return () => {
      if (held) release(key)
      held = false
    }
  }

  return {
    acquire: async (key) => {
      const queue = waiting.get(key)
      if (queue === undefined) {
        waiting.set(key, [])
        return once(key)
      }
      if (queue.length >= maxWaiting) {
        throw stateUnavailable(`${maxWaiting} others wait for the same lock`)
      }
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => {
          queue.splice(queue.indexOf(enter), 1)
          reject(stateUnavailable(`lock not free within ${waitMs} ms`))
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
