import type { Store } from '../clickhouse/client.js'
import type { Log } from '../telemetry/log.js'
import { createEntities } from './entities.js'
import { reserveEventIds } from './event-ids.js'
import type { Exclusive, WithLock } from './lock.js'
import { createReplica, singleReplica } from './replica.js'
import type { State } from './state.js'

interface InstanceDeps {
  readonly store: Store
  readonly state: State
  readonly exclusive: Exclusive
  /** Whether the database is embedded, and so has no other instances. */
  readonly isEmbedded: boolean
  readonly log: Log
}

/**
 * Makes this process one of the instances on its database: it reads the changes of the others,
 * writes records under locks, and reserves event ids of its own.
 */
export async function joinInstances({ store, state, exclusive, isEmbedded, log }: InstanceDeps) {
  const replica = isEmbedded
    ? singleReplica
    : await createReplica({
        state,
        onError: (error) => log.warn({ err: error }, 'changes of other instances are late'),
      })
  try {
    const entities = await createEntities(store, {
      log,
      ...(isEmbedded ? {} : { exclusive, onStored: () => replica.notify() }),
    })
    replica.onCatchUp(() => entities.catchUp())
    // The generation in the shared state may be lost, and what is unique is decided under a lock,
    // so every lock is followed by a catch-up.
    const withLock: WithLock = (key, ttlMs, work) =>
      state.withLock(key, ttlMs, async () => {
        await replica.catchUp()
        return await work()
      })
    const ids = await reserveEventIds(store, {
      log,
      exclusive: (work) => exclusive('event-ids', work),
    })
    const close = async (): Promise<void> => {
      ids.close()
      await replica.close()
    }
    return { replica, entities, withLock, ids, close }
  } catch (error) {
    await replica.close()
    throw error
  }
}
