import { setTimeout as sleep } from 'node:timers/promises'

import type { State } from './state.js'

const LOCK_MS = 10_000
/** how long a state that has just gone may seem to be there */
const RETRY_MS = 1_000
const RETRY_PAUSE_MS = 50
/** a migration of a large database may take minutes, and the others wait for it */
const TURN_WAIT_MS = 600_000
const TURN_PAUSE_MS = 200

/** Runs `work` while no other instance does what has this key. */
export type Exclusive = <T>(key: string, work: () => Promise<T>) => Promise<T>

/**
 * Locks keys in the shared state. While the state is away the work is done all the same: what was
 * acknowledged must reach ClickHouse; the later of two versions of a record wins, and of two who reserve the
 * same event ids at most one finds itself alone.
 */
export function createExclusive(state: Pick<State, 'withLock' | 'onStatus'>): Exclusive {
  let isUp = true
  state.onStatus((status) => {
    isUp = status === 'ok'
  })
  return async (key, work) => {
    for (const until = performance.now() + RETRY_MS; ; await sleep(RETRY_PAUSE_MS)) {
      let hasBegun = false
      try {
        return await state.withLock(`lock:${key}`, LOCK_MS, () => {
          hasBegun = true
          return work()
        })
      } catch (error) {
        if (hasBegun || (isUp && performance.now() > until)) throw error
        if (!isUp) return await work()
      }
    }
  }
}

/**
 * One instance after the other does a step of the start, however long the others take. For steps that may
 * be repeated: without the shared state several do them at once.
 */
export async function inTurn<T>(
  exclusive: Exclusive,
  key: string,
  work: () => Promise<T>,
): Promise<T> {
  for (const until = performance.now() + TURN_WAIT_MS; ; await sleep(TURN_PAUSE_MS)) {
    let hasBegun = false
    try {
      return await exclusive(key, () => {
        hasBegun = true
        return work()
      })
    } catch (error) {
      if (hasBegun || performance.now() > until) throw error
    }
  }
}
