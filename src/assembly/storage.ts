import type { Config } from '../config.js'
import type { DataDir } from '../coordination/data-dir.js'
import { createInProcessState } from '../coordination/memory-state.js'
import { createRedisState } from '../coordination/redis-state.js'
import type { State } from '../coordination/state.js'
import type { Store } from '../clickhouse/client.js'
import { openDatabase } from '../clickhouse/database.js'
import type { Embedded } from '../clickhouse/embedded/embedded.js'
import { createEntities, type Entities } from '../coordination/entities.js'
import { reserveEventIds, type EventIds } from '../coordination/event-ids.js'
import type { Log } from '../telemetry/log.js'
import { createExclusive, inTurn, type Exclusive } from '../coordination/lock.js'
import { createFollowing, followingNobody, type Following } from '../coordination/replica.js'

/** Everything that is kept: ClickHouse, the shared state, the entities, the event ids. */
export interface Storage {
  readonly store: Store
  readonly state: State
  readonly entities: Entities
  readonly ids: EventIds
  readonly following: Following
  readonly exclusive: Exclusive
  /** Runs `work` while no other instance does the same, knowing what the others have stored. */
  readonly withLock: <T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>
  /** null with a remote ClickHouse */
  readonly embedded: Embedded | null
  close(): Promise<void>
}

/** @throws what stops the start: an engine that does not run, a server that does not answer, a newer database */
export async function openStorage(config: Config, dataDir: DataDir, log: Log): Promise<Storage> {
  const state = await openState(config, dataDir, log)
  const database = await openDatabase(config, { log })
  const { store, embedded } = database
  try {
    await database.reach()
    const exclusive = createExclusive(state)
    await inTurn(exclusive, 'migrate', () => database.prepare())
    const following =
      embedded === null
        ? await createFollowing({
            state,
            onError: (error) => log.warn({ err: error }, 'changes of other instances are late'),
          })
        : followingNobody
    const entities = await createEntities(store, {
      log,
      ...(embedded === null ? { exclusive, onStored: () => following.changed() } : {}),
    })
    following.add(() => entities.catchUp())
    const ids = await reserveEventIds(store, {
      log,
      exclusive: (work) => exclusive('event-ids', work),
    })
    return {
      store,
      state,
      entities,
      ids,
      following,
      exclusive,
      withLock: (key, ttlMs, work) =>
        state.withLock(key, ttlMs, async () => {
          // not by the mark in the shared state, which may have been lost: this decides what is unique
          await following.look()
          return await work()
        }),
      embedded,
      close: async () => {
        await following.close()
        ids.close()
        await database.close()
        await state.close()
      },
    }
  } catch (error) {
    await database.close()
    await state.close()
    throw error
  }
}

/** Brings a remote database to this program's schema and does nothing else; instances may run meanwhile. */
export async function migrateRemote(config: Config, log: Log): Promise<void> {
  if (config.clickhouseUrl === null)
    throw new Error(
      '--migrate needs CLICKHOUSE_URL; an embedded database is migrated at each start',
    )
  const state = await openState(config, null, log)
  const database = await openDatabase(config, { log })
  try {
    await database.reach()
    await inTurn(createExclusive(state), 'migrate', () => database.prepare())
  } finally {
    await database.close()
    await state.close()
  }
}

const openState = (config: Config, dataDir: DataDir | null, log: Log): Promise<State> | State => {
  const onError = (error: unknown): void => log.warn({ err: error }, 'state')
  const { redisUrl, redisPrefix, clickhouseUrl } = config
  if (redisUrl === null) return createInProcessState({ onError })
  // what is cached of an embedded database is of no use to those who have another one
  const own = clickhouseUrl === null && dataDir !== null ? `${dataDir.instanceId}:` : ''
  return createRedisState({ url: redisUrl, keyPrefix: redisPrefix + own, onError })
}
