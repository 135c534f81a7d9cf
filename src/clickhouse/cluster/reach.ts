import type { QueryParams, RequestOptions, Store } from '../client.js'
import type { ShardedTable } from './sql.js'
import type { MigrateOptions } from '../migrate.js'
import { statement } from '../statement.js'

/** A server's place in the cluster, both from 1. */
export interface Place {
  readonly shard: number
  readonly replica: number
}

export interface ClusterServer extends Place {
  readonly host: string
  /** 1 for the server that is queried. */
  readonly is_local: number
}

/** Reaches the servers of a cluster for statements that a Distributed table does not pass on. */
export interface Reach {
  /** Brings the tables of every server to the schema. */
  migrate(options: MigrateOptions): Promise<void>
  /** Makes the Distributed tables on every server. */
  distribute(tables: readonly ShardedTable[]): Promise<void>
  /** Runs a statement on the tables of each shard. */
  change(sql: string, params?: QueryParams, options?: RequestOptions): Promise<void>
  /** Drops the databases of this program on every server, with their tables. */
  dropDatabases(): Promise<void>
  close(): Promise<void>
}

export interface ReachOptions {
  readonly cluster: string
  /** The database of the tables that hold the rows. */
  readonly local: string
  /** The database of the Distributed tables. */
  readonly front: string
  /** Turns a statement of a migration into that of this cluster. */
  readonly rewrite: (sql: string) => string
}

export const serversSql = statement<{ readonly cluster: string }, ClusterServer>('cluster_servers')
export const tablesSql = statement<
  { readonly database: string },
  { readonly name: string; readonly comment: string; readonly engine: string }
>('tables_of')
const columnsSql = statement<
  { readonly database: string },
  { readonly name: string; readonly columns: string }
>('columns_of')

export const shardsOf = (servers: readonly Place[]): number =>
  new Set(servers.map(({ shard }) => shard)).size

/** Hashes of the columns of each table. */
export async function readColumns(
  store: Store,
  database: string,
): Promise<ReadonlyMap<string, string>> {
  const rows = await store.query(columnsSql, { database })
  return new Map(rows.map(({ name, columns }) => [name, columns]))
}

/**
 * Distributed tables replace the tables that have their names.
 *
 * @throws Error when one of those holds rows, because the database was a single server's
 */
export async function refuseOwnTables(
  store: Store,
  front: string,
  tables: readonly ShardedTable[],
): Promise<void> {
  const names = new Set(tables.map(({ name }) => name))
  const there = await store.query(tablesSql, { database: front })
  const own = there.find(({ name, engine }) => names.has(name) && engine !== 'Distributed')
  if (own === undefined) return
  throw new Error(
    `the table ${own.name} of database ${front} is one server's and no cluster's: ` +
      'move the tables as the guide to clusters says, or set CLICKHOUSE_DATABASE to another one',
  )
}
