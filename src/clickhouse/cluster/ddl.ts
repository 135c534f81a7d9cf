import { createStore, type Store, type StoreOptions } from '../client.js'
import { readColumns, type Reach, type ReachOptions } from './reach.js'
import { distributedTables, onCluster } from './sql.js'
import { MIGRATION_REQUEST, migrateTarget } from '../migrate.js'
import { statement } from '../statement.js'

const viewsSql = statement<{ readonly cluster: string }, { readonly shards: number }>(
  'cluster_views',
)
const tablesSql = statement<
  { readonly cluster: string; readonly database: string },
  { readonly name: string; readonly comment: string }
>('cluster_tables')

/** The errors of a server without a queue for statements ON CLUSTER. */
const NOT_OFFERED = ['QUERY_IS_PROHIBITED', 'NO_ZOOKEEPER', 'NO_ELEMENTS_IN_CONFIG'] as const

/** The tables of the migration history, which are shared by the cluster here. */
const HISTORY_TABLES = ['schema_migrations', 'applied_settings'] as const

/**
 * Reaches the servers of a cluster by statements ON CLUSTER.
 *
 * @param front a connection to the Distributed tables
 * @returns null when the cluster does not offer such statements
 */
export async function reachByDdl(
  options: ReachOptions & { readonly store: StoreOptions },
  front: Store,
): Promise<Reach | null> {
  const { cluster } = options
  const root = createStore({ ...options.store, database: 'default' })
  const createDatabases = async (): Promise<void> => {
    for (const name of [options.local, options.front])
      await root.command(onCluster(`CREATE DATABASE IF NOT EXISTS ${name}`, cluster))
  }
  try {
    if (!(await isOffered(createDatabases))) {
      await root.close()
      return null
    }
    await agreedShards(root, cluster)
  } catch (error) {
    await root.close()
    throw error
  }
  const local = createStore({ ...options.store, database: options.local })
  const run: Reach['change'] = (sql, params, request) =>
    local.command(onCluster(sql, cluster), params, request)
  const tablesOf = (database: string) => root.query(tablesSql, { cluster, database })
  return {
    migrate: async (migration) => {
      await migrateTarget(
        {
          database: options.local,
          createDatabase: createDatabases,
          command: (sql) => run(options.rewrite(sql), {}, MIGRATION_REQUEST),
          history: historyOf(front, options, run),
          tables: async () => (await tablesOf(options.local)).map(({ name }) => name),
        },
        migration,
      )
    },
    distribute: async (tables) => {
      const [shards, columns] = [
        await agreedShards(root, cluster),
        await readColumns(root, options.local),
      ]
      const there = new Map((await tablesOf(options.front)).map((row) => [row.name, row.comment]))
      for (const { name, sql, comment } of distributedTables(
        tables,
        { ...options, shards },
        columns,
      ))
        if (there.get(name) !== comment) await run(sql)
    },
    dropDatabases: () => dropDatabases(root, options),
    change: run,
    close: async () => {
      await local.close()
      await root.close()
    },
  }
}

async function dropDatabases(root: Store, { front, local, cluster }: ReachOptions): Promise<void> {
  for (const database of [front, local])
    await root.command(onCluster(`DROP DATABASE IF EXISTS ${database} SYNC`, cluster))
}

async function isOffered(attempt: () => Promise<void>): Promise<boolean> {
  try {
    await attempt()
    return true
  } catch (error) {
    const reason = error instanceof Error ? error.message : ''
    if (NOT_OFFERED.some((type) => reason.includes(type))) return false
    throw error
  }
}

/** Reads and writes the migration history through Distributed tables, which are created before their first use. */
function historyOf(front: Store, { local, cluster }: ReachOptions, run: Reach['change']) {
  const make = async (): Promise<void> => {
    for (const table of HISTORY_TABLES)
      await run(
        `CREATE TABLE IF NOT EXISTS ${front.database}.${table} AS ${local}.${table} ` +
          `ENGINE = Distributed('${cluster}', '${local}', '${table}', 0)`,
      )
  }
  let made: Promise<void> | null = null
  const ready = (): Promise<void> => (made ??= make())
  const history: Pick<Store, 'query' | 'insertRows'> = {
    query: async (...args) => {
      await ready()
      return await front.query(...args)
    },
    insertRows: async (...args) => {
      await ready()
      await front.insertRows(...args)
    },
  }
  return history
}

async function agreedShards(store: Store, cluster: string): Promise<number> {
  const rows = await store.query(viewsSql, { cluster })
  const [first, ...others] = rows
  if (first !== undefined && others.length === 0) return first.shards
  const counts = rows.map(({ shards }) => shards).join(' and ')
  throw new Error(
    `the servers of cluster ${cluster} disagree about its shards (${counts}): ` +
      'give all of them the same remote_servers',
  )
}
