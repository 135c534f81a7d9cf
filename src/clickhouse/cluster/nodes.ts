import { AppError } from '../../model/errors.js'
import { createStore, type Store, type StoreOptions } from '../client.js'
import {
  readColumns,
  type ClusterServer,
  type Place,
  type Reach,
  type ReachOptions,
  refuseOwnTables,
  serversSql,
  shardsOf,
  tablesSql,
} from './reach.js'
import { distributedTables } from './sql.js'
import { MIGRATION_REQUEST, migrateTarget } from '../migrate.js'

interface Node extends Place {
  readonly store: Store
  /** The number of shards that this server knows. */
  readonly shards: number
}

/**
 * Reaches every server of a cluster at its own HTTP address: for clusters without coordination of DDL.
 *
 * @param urls of all servers, in any order
 * @param expected the servers that must be among them
 * @throws Error that names what is wrong with the addresses
 */
export async function reachNodes(
  options: ReachOptions & { readonly store: StoreOptions },
  urls: readonly string[],
  expected: readonly ClusterServer[],
): Promise<Reach> {
  const stores = urls.map((url) => createStore({ ...options.store, url, database: options.local }))
  const close = async (): Promise<void> => {
    await Promise.all(stores.map((store) => store.close()))
  }
  try {
    const nodes = await Promise.all(
      stores.map((store, i) => identify(store, options.cluster, urls[i] ?? '')),
    )
    for (const { shard, replica, host } of expected)
      if (!nodes.some((node) => node.shard === shard && node.replica === replica))
        throw new Error(
          `CLICKHOUSE_NODES has no address of shard ${shard} replica ${replica} (${host}) of cluster ${options.cluster}`,
        )
    return {
      migrate: async (migration) => {
        // One after the other: replicas of a shard share what a statement changes.
        for (const { store } of nodes) await migrateNode(store, options.rewrite, migration)
      },
      distribute: async (tables) => {
        for (const node of nodes) await distributeOn(node, options, tables)
      },
      dropDatabases: () => dropDatabases(nodes, options),
      change: (sql, params, request) =>
        onEveryShard(nodes, (store) => store.command(sql, params, request)),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function dropDatabases(
  nodes: readonly Node[],
  { front, local }: ReachOptions,
): Promise<void> {
  for (const database of [front, local])
    for (const { store } of nodes) await store.command(`DROP DATABASE IF EXISTS ${database} SYNC`)
}

/** @throws Error when the server does not find itself in the cluster */
async function identify(store: Store, cluster: string, url: string): Promise<Node> {
  await store.createDatabase()
  const servers = await store.query(serversSql, { cluster })
  const self = servers.find(({ is_local: isLocal }) => isLocal === 1)
  if (self !== undefined)
    return { store, shard: self.shard, replica: self.replica, shards: shardsOf(servers) }
  const { host } = new URL(url)
  throw new Error(
    `the ClickHouse server at ${host} does not find itself in cluster ${cluster}: ` +
      'check remote_servers there, CLICKHOUSE_CLUSTER and CLICKHOUSE_NODES',
  )
}

const migrateNode = (
  store: Store,
  rewrite: (sql: string) => string,
  migration: Parameters<Reach['migrate']>[0],
): Promise<void> =>
  migrateTarget(
    {
      database: store.database,
      createDatabase: () => store.createDatabase(),
      command: (sql) => store.command(rewrite(sql), {}, MIGRATION_REQUEST),
      history: store,
      tables: async () =>
        (await store.query(tablesSql, { database: store.database })).map(({ name }) => name),
    },
    migration,
  )

async function distributeOn(
  { store, shards }: Node,
  { cluster, local, front }: ReachOptions,
  tables: Parameters<Reach['distribute']>[0],
): Promise<void> {
  await refuseOwnTables(store, front, tables)
  await store.command(`CREATE DATABASE IF NOT EXISTS ${front}`)
  const columns = await readColumns(store, local)
  const there = await store.query(tablesSql, { database: front })
  const comments = new Map(there.map(({ name, comment }) => [name, comment]))
  const wanted = distributedTables(tables, { cluster, local, front, shards }, columns)
  for (const { name, sql, comment } of wanted)
    if (comments.get(name) !== comment) await store.command(sql)
}

/** Runs on all shards at once and waits for all to end, so that a retry meets no statement that still runs. */
async function onEveryShard(
  nodes: readonly Node[],
  run: (store: Store) => Promise<void>,
): Promise<void> {
  const shards = [...new Set(nodes.map(({ shard }) => shard))]
  const ends = await Promise.allSettled(
    shards.map((shard) =>
      onOneReplica(
        nodes.filter((node) => node.shard === shard).map(({ store }) => store),
        run,
      ),
    ),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** Replicas apply each other's changes, so a statement is sent to one of them. */
async function onOneReplica(
  replicas: readonly Store[],
  run: (store: Store) => Promise<void>,
): Promise<void> {
  for (const [i, store] of replicas.entries()) {
    try {
      await run(store)
      return
    } catch (error) {
      const isAway = error instanceof AppError && error.code === 'dependency_unavailable'
      if (!isAway || i === replicas.length - 1) throw error
    }
  }
}
