import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Config } from '../config.js'
import type { DataDir } from '../coordination/data-dir.js'
import { createInProcessState } from '../coordination/memory-state.js'
import { createRedisState } from '../coordination/redis-state.js'
import type { State } from '../coordination/state.js'
import { createStore, type Store } from '../clickhouse/client.js'
import { createClusterStore } from '../clickhouse/cluster/cluster.js'
import { startEmbedded, type Embedded } from '../clickhouse/embedded/embedded.js'
import { createEntities, type Entities } from '../coordination/entities.js'
import { reserveEventIds, type EventIds } from '../coordination/event-ids.js'
import { migrate, type MigrateOptions, type SchemaNumbers } from '../clickhouse/migrate.js'
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

/** a partition of the short rollups is dropped when its whole month is past retention */
const MONTH_DAYS = 31
/**
 * The lock of the data directory is ours, so whoever holds the engine's is one that lost its parent and is
 * about to end; on a busy machine that takes seconds.
 */
const ENGINE_LOCK_WAIT_MS = 20_000
/** how long a remote server may take to answer at the start */
const REMOTE_WAIT_MS = 30_000

/** @throws what stops the start: an engine that does not run, a server that does not answer, a newer database */
export async function openStorage(config: Config, dataDir: DataDir, log: Log): Promise<Storage> {
  const state = await openState(config, dataDir, log)
  const embedded = config.clickhouseUrl === null ? await startEngine(dataDir.path, { log }) : null
  const { store, prepare } = connect(config, embedded)
  try {
    if (embedded === null) await waitForRemote(store, config)
    const exclusive = createExclusive(state)
    await inTurn(exclusive, 'migrate', () => prepare({ log, numbers: numbersOf(config) }))
    await embedded?.tablesMade()
    const { entities, following } =
      embedded === null
        ? await openShared(store, state, { log, exclusive })
        : { entities: await createEntities(store, { log }), following: followingNobody }
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
        await closeAll(store, state, ids, embedded)
      },
    }
  } catch (error) {
    await store.close()
    await embedded?.stop()
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
  const { store, prepare } = connect(config, null)
  try {
    await waitForRemote(store, config)
    await inTurn(createExclusive(state), 'migrate', () =>
      prepare({ log, numbers: numbersOf(config) }),
    )
  } finally {
    await store.close()
    await state.close()
  }
}

const numbersOf = ({ retentionDays }: Config): SchemaNumbers => ({
  retention_days: retentionDays,
  rollup_days: retentionDays + MONTH_DAYS,
})

const openState = (config: Config, dataDir: DataDir | null, log: Log): Promise<State> | State => {
  const onError = (error: unknown): void => log.warn({ err: error }, 'state')
  const { redisUrl, redisPrefix, clickhouseUrl } = config
  if (redisUrl === null) return createInProcessState({ onError })
  // what is cached of an embedded database is of no use to those who have another one
  const own = clickhouseUrl === null && dataDir !== null ? `${dataDir.instanceId}:` : ''
  return createRedisState({ url: redisUrl, keyPrefix: redisPrefix + own, onError })
}

/** The entities of a database that other instances may change. */
async function openShared(
  store: Store,
  state: State,
  { log, exclusive }: { readonly log: Log; readonly exclusive: Exclusive },
): Promise<Pick<Storage, 'entities' | 'following'>> {
  let following = followingNobody
  const entities = await createEntities(store, {
    log,
    exclusive,
    onStored: () => following.changed(),
  })
  following = await createFollowing({
    state,
    onError: (error) => log.warn({ err: error }, 'changes of other instances are late'),
  })
  following.add(() => entities.catchUp())
  return { entities, following }
}

/** The database alone, which may not be there yet. */
export async function openDatabase(
  config: Config,
  options: { readonly log: Log; readonly backupsDir: string },
): Promise<Database> {
  const { log } = options
  const embedded = config.clickhouseUrl === null ? await startEngine(config.dataDir, options) : null
  const { store, prepare } = connect(config, embedded)
  const server = connect({ ...config, clickhouseDatabase: 'default' }, embedded).store
  return {
    store,
    server,
    prepare: () => prepare({ log, numbers: numbersOf(config) }),
    close: async () => {
      await server.close()
      await store.close()
      await embedded?.stop()
    },
  }
}

/** ClickHouse without the service around it. */
export interface Database {
  readonly store: Store
  /** works before the database is there */
  readonly server: Store
  /** Brings what is stored to this program's schema and retention. */
  prepare(): Promise<void>
  close(): Promise<void>
}

const startEngine = (
  dataDir: string,
  options: { readonly log: Log; readonly backupsDir?: string },
): Promise<Embedded> =>
  startEmbedded({
    ...options,
    dataDir: join(dataDir, 'clickhouse'),
    lockWaitMs: ENGINE_LOCK_WAIT_MS,
    isOurs: true,
    onState: (state) => options.log.debug({ state }, 'embedded clickhouse'),
  })

interface Connected {
  readonly store: Store
  /** Brings what is stored to this program's schema. */
  readonly prepare: (options: MigrateOptions) => Promise<void>
}

function connect(config: Config, embedded: Embedded | null): Connected {
  const { clickhouseDatabase: database, clickhouseCaFile } = config
  const single = (store: Store): Connected => ({
    store,
    prepare: (options) => migrate(store, options),
  })
  if (embedded !== null) {
    const { url, username, password } = embedded
    return single(createStore({ url, username, password, database }))
  }
  const remote = {
    url: config.clickhouseUrl ?? '',
    username: config.clickhouseUser,
    password: config.clickhousePassword ?? '',
    database,
    ...(clickhouseCaFile === '' ? {} : { tls: { caCert: readCa(clickhouseCaFile) } }),
  }
  if (config.clickhouseCluster === '') return single(createStore(remote))
  const store = createClusterStore({
    ...remote,
    cluster: config.clickhouseCluster,
    nodes: config.clickhouseNodes,
    replication: config.clickhouseReplication,
    insertQuorum: config.clickhouseInsertQuorum,
  })
  return { store, prepare: (options) => store.prepare(options) }
}

function readCa(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`CLICKHOUSE_CA_FILE can't be read: ${reason}`, { cause: error })
  }
}

/** A server that comes up beside this program is waited for; one that never answers stops the start. */
async function waitForRemote(store: Store, config: Config): Promise<void> {
  const { host } = new URL(config.clickhouseUrl ?? '')
  const deadline = Date.now() + REMOTE_WAIT_MS
  for (;;) {
    try {
      await store.createDatabase()
      return
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const isAway =
        error instanceof Error && 'code' in error && error.code === 'dependency_unavailable'
      // later on a refused password may be a server that still reads its users; at the start it is a mistake
      const retry = isAway && !reason.includes('AUTHENTICATION_FAILED')
      if (!retry || Date.now() >= deadline)
        throw new Error(
          `ClickHouse at ${host} can't be used: ${reason}; check CLICKHOUSE_URL, CLICKHOUSE_USER and CLICKHOUSE_PASSWORD`,
          { cause: error },
        )
    }
    await sleep(500)
  }
}

async function closeAll(
  store: Store,
  state: State,
  ids: EventIds,
  embedded: Embedded | null,
): Promise<void> {
  ids.close()
  await store.close()
  await state.close()
  await embedded?.stop()
}
