import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Config } from '../config.js'
import { s3Of } from '../settings/cold.js'
import type { Log } from '../telemetry/log.js'
import { createStore, type Store } from './client.js'
import { checkCluster } from './cluster/check.js'
import { createClusterStore } from './cluster/cluster.js'
import { startEmbedded, type Embedded } from './embedded/embedded.js'
import { migrate, type SchemaNumbers } from './migrate.js'

/** A partition of the short rollups is dropped when its whole month is past retention. */
const MONTH_DAYS = 31
/**
 * This process holds the lock of the data directory, so a process that holds the engine's lock has
 * lost its parent and is about to end. On a busy machine that takes seconds.
 */
const ENGINE_LOCK_WAIT_MS = 20_000
/** A remote server may be starting beside this program. */
const REMOTE_WAIT_MS = 30_000
const REMOTE_PAUSE_MS = 500
/** A running server answers within this time. */
const REMOTE_FIRST_MS = 300
const REMOTE_WARN_MS = 5_000

/** The ClickHouse that the settings name: the embedded engine, a server, or a cluster. */
export interface Database {
  readonly store: Store
  /** The same server without a database, for requests before the database exists. */
  readonly server: Store
  /** The engine's process; null with a remote server. */
  readonly embedded: Embedded | null
  /** Waits for a server that starts beside this program, and creates the database. */
  reach(): Promise<void>
  /** Brings the database to this program's schema and retention. */
  prepare(): Promise<void>
  close(): Promise<void>
}

/** @throws Error when the embedded engine does not start, or a setting cannot be used */
export async function openDatabase(
  config: Config,
  { log, backupsDir }: { readonly log: Log; readonly backupsDir?: string },
): Promise<Database> {
  const s3 = s3Of(config)
  const embedded =
    config.clickhouseUrl === null
      ? await startEmbedded({
          log,
          ...(s3 === null ? {} : { s3 }),
          ...(backupsDir === undefined ? {} : { backupsDir }),
          dataDir: join(config.dataDir, 'clickhouse'),
          lockWaitMs: ENGINE_LOCK_WAIT_MS,
          isOurs: true,
          onState: (state) => log.debug({ state }, 'embedded ClickHouse'),
        })
      : null
  const options = connectionOf(config, embedded)
  const migration = { log, numbers: numbersOf(config) }
  const single = (): Pick<Database, 'store' | 'prepare'> => {
    const store = createStore(options)
    return { store, prepare: () => migrate(store, migration) }
  }
  const cluster = (): Pick<Database, 'store' | 'prepare'> => {
    const store = createClusterStore({ ...options, ...clusterOf(config) })
    return { store, prepare: () => store.prepare(migration) }
  }
  const { store, prepare } = config.clickhouseCluster === '' ? single() : cluster()
  const server = createStore({ ...options, database: 'default' })
  return {
    store,
    server,
    embedded,
    reach: async () => {
      if (embedded === null) await waitForRemote({ server, store }, config, log)
    },
    prepare: async () => {
      await prepare()
      await embedded?.tablesMade()
    },
    close: async () => {
      await server.close()
      await store.close()
      await embedded?.stop()
    },
  }
}

/** Checks the configured cluster in databases of its own. @returns whether every step succeeded */
export async function checkConfiguredCluster(
  config: Config,
  log: Log,
  print: (text: string) => void,
): Promise<boolean> {
  if (config.clickhouseUrl === null || config.clickhouseCluster === '')
    throw new Error(
      'check-cluster needs CLICKHOUSE_URL and CLICKHOUSE_CLUSTER, as the service will have them',
    )
  const cluster = { ...connectionOf(config, null), ...clusterOf(config) }
  return await checkCluster({ cluster, numbers: numbersOf(config), log, print })
}

const clusterOf = (config: Config) => ({
  cluster: config.clickhouseCluster,
  nodes: config.clickhouseNodes,
  replication: config.clickhouseReplication,
  insertQuorum: config.clickhouseInsertQuorum,
})

function connectionOf(
  config: Config,
  embedded: Embedded | null,
): Parameters<typeof createStore>[0] {
  const { clickhouseDatabase: database, clickhouseCaFile } = config
  if (embedded !== null) return { ...embedded.connection, database }
  return {
    url: config.clickhouseUrl ?? '',
    username: config.clickhouseUser,
    password: config.clickhousePassword ?? '',
    database,
    ...(clickhouseCaFile === '' ? {} : { tls: { caCert: readCa(clickhouseCaFile) } }),
  }
}

const numbersOf = ({ retentionDays }: Config): SchemaNumbers => ({
  rollup_days: retentionDays + MONTH_DAYS,
})

function readCa(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`CLICKHOUSE_CA_FILE can't be read: ${reason}`, { cause: error })
  }
}

/** Logs at once, and again every few seconds, what the start waits for. A server that never answers ends the start. */
async function waitForRemote(
  { server, store }: Pick<Database, 'server' | 'store'>,
  config: Config,
  log: Log,
): Promise<void> {
  const { host } = new URL(config.clickhouseUrl ?? '')
  const deadline = performance.now() + REMOTE_WAIT_MS
  let reason = 'no answer yet'
  const text = `waiting up to ${REMOTE_WAIT_MS / 1000} s for the ClickHouse of CLICKHOUSE_URL`
  const warn = (): void => log.warn({ host, reason }, text)
  const first = setTimeout(warn, REMOTE_FIRST_MS)
  const others = setInterval(warn, REMOTE_WARN_MS)
  const reach = async (): Promise<boolean> => {
    try {
      // The ping has a short timeout, so it comes before the database is created.
      await server.ping()
      await store.createDatabase()
      return true
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error)
      const isAway =
        error instanceof Error && 'code' in error && error.code === 'dependency_unavailable'
      // A running service retries after a refused password, because the server may still be loading its users; a start does not.
      const retry = isAway && !reason.includes('AUTHENTICATION_FAILED')
      if (retry && performance.now() < deadline) return false
      throw new Error(
        `ClickHouse at ${host} can't be used: ${reason}; check CLICKHOUSE_URL, CLICKHOUSE_USER and CLICKHOUSE_PASSWORD`,
        { cause: error },
      )
    }
  }
  try {
    while (!(await reach())) await sleep(REMOTE_PAUSE_MS)
  } finally {
    clearTimeout(first)
    clearInterval(others)
  }
}
