import { randomUUID } from 'node:crypto'

import type { State } from '../state/state.js'
import type { Entities } from '../store/entities.js'

/** A collection as far as it follows what other instances change. */
interface Follower {
  reload(id: string): Promise<void>
  reloadAll(): Promise<void>
}

const CHANNEL = 'entity:changed'
const LOCK_MS = 10_000

/** Runs a change of one record while no other instance changes it. */
type Exclusive = <T>(key: string, work: () => Promise<T>) => Promise<T>

/**
 * Locks each record in the shared state. While the state is away the change is made all the same: what
 * was acknowledged must reach ClickHouse, and the later of two versions wins.
 */
export function createExclusive(state: Pick<State, 'withLock' | 'onStatus'>): Exclusive {
  let isUp = true
  state.onStatus((status) => {
    isUp = status === 'ok'
  })
  return async (key, work) => {
    let hasBegun = false
    try {
      return await state.withLock(`lock:${key}`, LOCK_MS, () => {
        hasBegun = true
        return work()
      })
    } catch (error) {
      if (hasBegun || isUp) throw error
      return await work()
    }
  }
}

/** Tells the other instances of each change made here, and takes over theirs. */
export async function shareEntities(
  entities: Entities,
  state: Pick<State, 'publish' | 'subscribe' | 'onStatus'>,
  onError: (error: unknown) => void,
): Promise<Entities> {
  const self = randomUUID()
  const followers = new Map<string, Follower>()
  await state.subscribe(CHANNEL, (message) => {
    const [origin = '', kind = '', ...rest] = message.split(' ')
    if (origin !== self) followers.get(kind)?.reload(rest.join(' ')).catch(onError)
  })
  state.onStatus((status) => {
    if (status !== 'ok') return
    // changes may have been announced while nothing could be heard
    for (const follower of followers.values()) follower.reloadAll().catch(onError)
  })
  return {
    idle: () => entities.idle(),
    collection(kind, parse) {
      const collection = entities.collection(kind, parse)
      followers.set(kind, collection)
      collection.onChange(({ id, origin }) => {
        if (origin === 'local') state.publish(CHANNEL, `${self} ${kind} ${id}`).catch(onError)
      })
      return collection
    },
  }
}
