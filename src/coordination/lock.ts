import { setTimeout as sleep } from 'node:timers/promises'

import type { State } from './state.js'

const LOCK_MS = 10_000
/** The longest time until an outage of the shared state is noticed. */
const RETRY_MS = 1_000
const RETRY_PAUSE_MS = 50
/** A migration of a large database may take minutes, and the other instances wait for it. */
const STEP_WAIT_MS = 600_000
const STEP_PAUSE_MS = 200

/**
 * Runs `work` under a lock over all instances, once the writes of earlier holders are readable. The
 * lock outlives a dead holder by `ttlMs`.
 */
export type WithLock = <T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>

/** Runs `work` while no other instance runs anything under this key. */
export type Exclusive = <T>(key: string, work: () => Promise<T>) => Promise<T>

/**
 * Locks keys in the shared state. While the state is down the work is done without a lock: acknowledged events
 * must reach ClickHouse, the later of two versions of a record wins, and of two instances that reserve the same
 * event ids at most one gets them.
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
 * Runs a step of the start on one instance after the other, however long the others take. The step must be
 * repeatable: while the shared state is down, several instances run it at once.
 */
export async function inTurn<T>(
  exclusive: Exclusive,
  key: string,
  work: () => Promise<T>,
): Promise<T> {
  for (const until = performance.now() + STEP_WAIT_MS; ; await sleep(STEP_PAUSE_MS)) {
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
