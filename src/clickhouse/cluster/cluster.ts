import type { ClickHouseSettings } from '@clickhouse/client'
import type { NativeBlock } from '../native-reader.js'
import { AppError } from '../../model/errors.js'
import {
  createStore,
  type PartitionRow,
  type QueryParams,
  type RequestOptions,
  type Store,
  type StoreOptions,
} from '../client.js'
import { reachByDdl } from './ddl.js'
import { reachNodes } from './nodes.js'
import { type ClusterServer, type Reach, refuseOwnTables, serversSql, shardsOf } from './reach.js'
import { partialQuestion } from './partial.js'
import { replicated, shardedTables, type ShardedTable, writeTable } from './sql.js'
import { type MigrateOptions, readMigrations } from '../migrate.js'
import { statement, type Statement } from '../statement.js'

export interface ClusterOptions extends StoreOptions {
  /** The name in the `remote_servers` of the servers. */
  readonly cluster: string
  /** HTTP addresses of all servers; empty: the hosts that the cluster names, at the port of `url`. */
  readonly nodes: readonly string[]
  /** Whether tables are replicated; auto: if there is a coordination service. */
  readonly replication: 'auto' | 'on' | 'off'
  /** How many replicas must have an insert before it is confirmed. */
  readonly insertQuorum: string
}

export interface ClusterStore extends Store {
  /**
   * Finds the servers of the cluster and brings all of them to the schema. Must come before any other request.
   *
   * @throws Error that says what is wrong with the cluster or with the settings
   */
  prepare(options: MigrateOptions): Promise<void>
  /** Whether the tables that hold the rows are replicated. */
  isReplicated(): Promise<boolean>
  /** Drops both databases on every server; only for databases that a check has created. */
  dropDatabases(): Promise<void>
}

const aliveSql = statement<{ readonly cluster: string }, { readonly position: number }>(
  'cluster_alive',
)
const insertsSql = statement<
  { readonly cluster: string; readonly seconds: number },
  { readonly running: number }
>('cluster_inserts_running')
const takenSql = statement<
  { readonly token: string; readonly sources: readonly string[]; readonly shards: number },
  { readonly source: string }
>('cluster_batch_sources')
const partitionsSql = statement<
  { readonly cluster: string; readonly database: string; readonly tables: readonly string[] },
  PartitionRow
>('cluster_partitions')
const answeringSql = statement<{ readonly cluster: string }, { readonly shard: number }>(
  'cluster_answering',
)
const featuresSql = statement<
  Record<string, never>,
  { readonly coordination: number; readonly macros: number }
>('cluster_features')

const DISTRIBUTED_SETTINGS: ClickHouseSettings = {
  // A subquery on a second Distributed table reads all shards, not only the local one.
  distributed_product_mode: 'global',
  // Only `home` tables have a sharding key that this uses; see sql.ts.
  optimize_skip_unused_shards: 1,
  // Counts that lack a shard would be wrong without a sign.
  skip_unavailable_shards: 0,
  fallback_to_stale_replicas_for_distributed_queries: 0,
  max_replica_delay_for_distributed_queries: '10',
  // An insert is confirmed when every shard has stored its part, not when one server has queued it on disk.
  distributed_foreground_insert: 1,
  // A server that accepts connections without answering delays a query by three times this.
  handshake_timeout_ms: 3000,
  connections_with_failover_max_tries: '3',
}

/** Settings by which a query is answered, or fails with the name of the silent shard, within a few seconds. */
const QUESTION_SETTINGS: ClickHouseSettings = {
  connect_timeout_with_failover_ms: 1500,
  handshake_timeout_ms: 1500,
  connections_with_failover_max_tries: '2',
  // A server that works on a query reports its progress ten times a second.
  receive_timeout: 10,
}
const PROBE_SETTINGS: ClickHouseSettings = {
  connect_timeout_with_failover_ms: 1000,
  handshake_timeout_ms: 1000,
  connections_with_failover_max_tries: '1',
  receive_timeout: 3,
  skip_unavailable_shards: 1,
}
/** The statements of one request share the result of a probe. */
const PROBE_LASTS_MS = 2_000

/**
 * Presents several servers as one store. Rows are in the database `<database>_local` of each server, spread over the
 * shards; Distributed tables in `<database>` show them as one. Queries and inserts go to the Distributed tables.
 * Migrations and changes of rows, which those do not pass on, go to every shard: by statements ON CLUSTER (ddl.ts)
 * where the cluster offers them, else to the HTTP address of each server (nodes.ts).
 */
export function createClusterStore(options: ClusterOptions): ClusterStore {
  return new Cluster(options)
}

interface Prepared {
  readonly reach: Reach
  readonly shards: number
  readonly tables: ReadonlyMap<string, ShardedTable>
}

class Cluster implements ClusterStore {
  readonly database: string
  readonly isSharded = true
  readonly #options: ClusterOptions
  readonly #front: Store
  #prepared: Prepared | null = null
  /** The shards that did not answer, and when they were asked, by `performance.now`. */
  #probe: { readonly silent: Promise<readonly number[]>; readonly atMs: number } | null = null

  constructor(options: ClusterOptions) {
    this.#options = options
    this.database = options.database
    const quorum = { insert_quorum: options.insertQuorum } as const
    this.#front = createStore({
      ...options,
      settings: { ...DISTRIBUTED_SETTINGS, ...quorum, ...options.settings },
    })
  }

  async prepare(migration: MigrateOptions): Promise<void> {
    await this.#front.createDatabase()
    const servers = await this.#servers()
    const tables = shardedTables(migration.migrations ?? readMigrations())
    await refuseOwnTables(this.#front, this.database, tables)
    const reach = await this.#open(servers)
    try {
      await reach.migrate(migration)
      await reach.distribute(tables)
    } catch (error) {
      await reach.close()
      throw error
    }
    await this.#prepared?.reach.close()
    const byName = new Map(tables.map((table) => [table.name, table]))
    this.#prepared = { reach, shards: shardsOf(servers), tables: byName }
    const found = { cluster: this.#options.cluster, servers: servers.length }
    migration.log.info({ ...found, shards: shardsOf(servers) }, 'the cluster is ready')
  }

  query<Params extends QueryParams, Row>(
    sql: Statement<Params, Row>,
    params: Params,
    request?: RequestOptions,
  ): Promise<Row[]> {
    return this.#ask(request, (settled) => this.#front.query(sql, params, settled))
  }

  queryColumns<Params extends QueryParams, Columns>(
    sql: Statement<Params, Columns>,
    params: Params,
    request?: RequestOptions,
  ): Promise<readonly NativeBlock[]> {
    return this.#ask(request, (settled) => this.#front.queryColumns(sql, params, settled))
  }

  command(sql: string, params?: QueryParams, request?: RequestOptions): Promise<void> {
    return this.#front.command(sql, params, request)
  }

  async change(sql: string, params?: QueryParams, request?: RequestOptions): Promise<void> {
    const { reach, shards } = this.#ready()
    const known = shardsOf(await this.#servers())
    if (known !== shards)
      throw new AppError(
        'dependency_unavailable',
        `cluster ${this.#options.cluster} had ${shards} shards at the start and has ${known}: start again`,
        { details: { dependency: 'clickhouse' }, retryAfterS: 30 },
      )
    await reach.change(sql, params, request)
  }

  /** The token names the number of shards, so that each attempt spreads the rows in the same way. */
  newToken(): string {
    return `${this.#front.newToken()}-to-${this.#ready().shards}`
  }

  async insertNative(
    table: string,
    bytes: Uint8Array | readonly Uint8Array[],
    token: string,
    request?: RequestOptions,
  ): Promise<void> {
    const target = this.#target(table, shardsIn(token))
    await this.#front.insertNative(target, bytes, token, request)
  }

  async insertRows(
    table: string,
    rows: readonly object[],
    request?: RequestOptions,
  ): Promise<void> {
    await this.#front.insertRows(this.#target(table, null), rows, request)
  }

  async sourcesStored(token: string, sources: readonly string[]): Promise<ReadonlySet<string>> {
    const shards = shardsIn(token) ?? this.#ready().shards
    const rows = await this.#front.query(takenSql, { token, sources, shards })
    return new Set(rows.map(({ source }) => source))
  }

  async partitions(tables: readonly string[]): Promise<readonly PartitionRow[]> {
    const { cluster, database } = this.#options
    return await this.#front.query(partitionsSql, {
      cluster,
      database: `${database}_local`,
      tables,
    })
  }

  async insertsRunning(seconds: number): Promise<number> {
    const { cluster } = this.#options
    return (await this.#front.query(insertsSql, { cluster, seconds }))[0]?.running ?? 0
  }

  /** Every server has to answer, because without one of them both counts and inserts are incomplete. */
  async ping(request?: RequestOptions): Promise<void> {
    const settings = { connect_timeout_with_failover_ms: 500, handshake_timeout_ms: 1000 }
    const options = { timeoutMs: PING_TIMEOUT_MS, ...request, settings }
    await this.#front.query(aliveSql, { cluster: this.#options.cluster }, options)
  }

  createDatabase(): Promise<void> {
    return this.#front.createDatabase()
  }

  async isReplicated(): Promise<boolean> {
    return await this.#isReplicated(await this.#servers())
  }

  async dropDatabases(): Promise<void> {
    if (this.#prepared !== null) return await this.#prepared.reach.dropDatabases()
    // Only what the first steps of `prepare` make on this server was made.
    for (const name of [`${this.database}_local`, this.database])
      await this.#front.command(`DROP DATABASE IF EXISTS ${name} SYNC`)
  }

  async close(): Promise<void> {
    await this.#prepared?.reach.close()
    await this.#front.close()
  }

  /**
   * Queries all shards, or those that answer if the caller accepts partial results.
   *
   * @throws AppError that names the shards that do not answer
   */
  async #ask<T>(
    request: RequestOptions = {},
    ask: (request: RequestOptions) => Promise<T>,
  ): Promise<T> {
    const question = partialQuestion()
    const silent = question === null ? [] : await this.#silent(performance.now() - PROBE_LASTS_MS)
    const skip = silent.length > 0 ? PROBE_SETTINGS : {}
    try {
      const settings = { ...QUESTION_SETTINGS, ...request.settings, ...skip }
      const answer = await ask({ ...request, settings })
      if (question !== null && silent.length > 0) {
        for (const shard of silent) question.missing.add(shard)
        question.recheck = () => this.#silent(performance.now())
      }
      return answer
    } catch (error) {
      throw await this.#withSilent(error, request.signal)
    }
  }

  /** @param sinceMs the result of an older probe is not used */
  #silent(sinceMs: number): Promise<readonly number[]> {
    if (this.#probe === null || this.#probe.atMs < sinceMs)
      this.#probe = { atMs: performance.now(), silent: this.#findSilent() }
    return this.#probe.silent
  }

  async #findSilent(): Promise<readonly number[]> {
    const { cluster } = this.#options
    const options = { timeoutMs: PING_TIMEOUT_MS, settings: PROBE_SETTINGS }
    const [servers, answering] = await Promise.all([
      this.#front.query(serversSql, { cluster }, options),
      this.#front.query(answeringSql, { cluster }, options),
    ])
    const shards = new Set(servers.map(({ shard }) => shard))
    for (const { shard } of answering) shards.delete(shard)
    return [...shards]
  }

  async #withSilent(error: unknown, signal?: AbortSignal): Promise<unknown> {
    const isAway = error instanceof AppError && error.code === 'dependency_unavailable'
    if (!isAway || signal?.aborted === true) return error
    let silent: readonly number[]
    try {
      silent = await this.#silent(performance.now() - PROBE_LASTS_MS)
    } catch {
      return error
    }
    if (silent.length === 0) return error
    const names = `${silent.length === 1 ? 'shard' : 'shards'} ${silent.join(', ')}`
    return new AppError('dependency_unavailable', `clickhouse: no answer from ${names}`, {
      details: { dependency: 'clickhouse', shards: silent },
      retryAfterS: 2,
      cause: error,
    })
  }

  #target(table: string, shards: number | null): string {
    const prepared = this.#ready()
    const shard = prepared.tables.get(table)?.shard ?? 'home'
    const isKeyed = shard !== 'view' && !/^home\b/.test(shard)
    return isKeyed ? writeTable(table, shards ?? prepared.shards) : table
  }

  #ready(): Prepared {
    if (this.#prepared === null) throw new Error('bug: the cluster is not prepared')
    return this.#prepared
  }

  async #servers(): Promise<readonly ClusterServer[]> {
    const { cluster } = this.#options
    const servers = await this.#front.query(serversSql, { cluster })
    if (servers.length > 0) return servers
    throw new Error(
      `the ClickHouse server knows no cluster ${cluster}: ` +
        'define it in its remote_servers, or correct CLICKHOUSE_CLUSTER',
    )
  }

  async #open(servers: readonly ClusterServer[]): Promise<Reach> {
    const { cluster, database, nodes, url } = this.#options
    const options = {
      cluster,
      local: `${database}_local`,
      front: database,
      rewrite: (await this.#isReplicated(servers)) ? replicated : (sql: string) => sql,
      store: this.#options,
    }
    if (nodes.length > 0) return await reachNodes(options, nodes, servers)
    const byDdl = await reachByDdl(options, this.#front)
    return byDdl ?? (await reachNodes(options, addressesOf(servers, url), servers))
  }

  async #isReplicated(servers: readonly ClusterServer[]): Promise<boolean> {
    const { replication, cluster } = this.#options
    const [features] = await this.#front.query(featuresSql, {})
    const wanted = replication === 'on' || (replication === 'auto' && features?.coordination === 1)
    if (wanted && features?.macros !== 1)
      throw new Error(
        'replicated tables need the macros shard and replica on every ClickHouse server: ' +
          'define them, or set CLICKHOUSE_REPLICATION=off',
      )
    if (!wanted && servers.some(({ replica }) => replica > 1))
      throw new Error(
        `cluster ${cluster} has replicas, which needs a coordination service (ClickHouse Keeper or ` +
          'ZooKeeper) and CLICKHOUSE_REPLICATION other than off',
      )
    return wanted
  }
}

const PING_TIMEOUT_MS = 5_000

/** @returns the number of shards over which the rows of a batch are spread; null for a token that does not name it */
function shardsIn(token: string): number | null {
  const shards = /-to-(\d+)/.exec(token)?.[1]
  return shards === undefined ? null : Number(shards)
}

/** Assumes that all servers use the protocol and the HTTP port of the one at `url`. */
function addressesOf(servers: readonly ClusterServer[], url: string): readonly string[] {
  return servers.map(({ host, is_local: isLocal }) => {
    if (isLocal === 1) return url
    const address = new URL(url)
    address.hostname = host.includes(':') ? `[${host}]` : host
    return address.href
  })
}
