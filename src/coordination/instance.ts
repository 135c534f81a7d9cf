import type { Database } from '../clickhouse/database.js'
import type { Config } from '../config.js'
import type { Log } from '../telemetry/log.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { DataDir } from './data-dir.js'
import { createEntities } from './entities.js'
import { reserveEventIds } from './event-ids.js'
import type { Exclusive, WithLock } from './lock.js'
import { createInProcessState } from './memory-state.js'
import { createReplica, singleReplica } from './replica.js'
import type { State } from './state.js'

/** This process as one of the instances on its database: what it has by itself, and what it shares with the others. */
export type Instance = Awaited<ReturnType<typeof joinInstances>>

interface OwnParts {
  readonly config: Config
  readonly log: Log
  readonly metrics: Metrics
  readonly state: State
  readonly exclusive: Exclusive
}

/**
 * Makes this process one of the instances on its database: it reads the changes of the others,
 * writes records under locks, and reserves event ids of its own.
 */
export async function joinInstances(
  dataDir: DataDir,
  { store, embedded }: Database,
  own: OwnParts,
) {
  const { state, exclusive, log } = own
  const isEmbedded = embedded !== null
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
    return {
      ...own,
      /** The same on every start. */
      self: dataDir.instanceId,
      dataDir,
      store,
      /** Whether the database is embedded, and so has no other instances. */
      isEmbedded,
      /** The state of this process alone, for what goes on while the shared state does not answer. */
      alone: createInProcessState({
        onError: (error) => log.warn({ err: error }, 'the state of this process fails'),
      }),
      replica,
      entities,
      withLock,
      ids,
      close,
    }
  } catch (error) {
    await replica.close()
    throw error
  }
}
