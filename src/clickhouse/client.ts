import { randomUUID } from 'node:crypto'
import type { Agent } from 'node:http'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import {
  type ClickHouseClient,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client'
import { readBlocks, type NativeBlock } from './native-reader.js'
import { joinBlocks } from './native-writer.js'
import { toStoreFailure } from './failure.js'
import { inShortParams } from './long-params.js'
import { statement, type Statement } from './statement.js'

export interface StoreOptions {
  readonly url: string
  readonly username: string
  /** The password, or a function that is called before each request for one that changes. */
  readonly password: string | (() => string)
  /** Creates the agent that opens at most this many sockets to the server. Default: plain sockets to `url`. */
  readonly openAgent?: (maxSockets: number) => Agent
  readonly database: string
  /** The CA certificate in PEM; absent: the system's authorities, or plain HTTP. */
  readonly tls?: { readonly caCert: Buffer }
  /** The most sockets for searches, for other queries and for changes, each; further requests wait in the process. Default 20. */
  readonly maxConnections?: number
  /** Settings that are added to every request. */
  readonly settings?: ClickHouseSettings
}

export interface RequestOptions {
  /** When it is aborted, the call rejects with its reason. */
  readonly signal?: AbortSignal
  readonly settings?: ClickHouseSettings
  /** The longest time until the answer is complete. */
  readonly timeoutMs?: number
  /** Whether the query reads events. Such searches have connections of their own, so no other query waits for them. */
  readonly isSearch?: boolean
}

/** Values for `{name:Type}`; a Date is sent with its milliseconds, so it needs DateTime64. */
export type QueryParams = Readonly<Record<string, unknown>>

/**
 * A connection to ClickHouse that any number of callers may use at once.
 *
 * Every method rejects with `AppError('dependency_unavailable')` when the same call may succeed
 * later, with `StoreError` when ClickHouse refuses it, and with the signal's reason when aborted.
 *
 * Rows are JSON: 64-bit integers are numbers, so what may exceed 2^53-1 (hashes, template ids) must
 * be made text in SQL (`hex(x)`, `toString(x)`). Times are ISO 8601 text in UTC; the time zone of
 * the session is UTC.
 */
export interface Store {
  readonly database: string
  /** Whether the tables are spread over several servers. */
  readonly isSharded: boolean
  /** Returns every row; the statement bounds how many. Default timeout 30 s. */
  query<Params extends QueryParams, Row>(
    statement: Statement<Params, Row>,
    params: Params,
    options?: RequestOptions,
  ): Promise<Row[]>
  /** Returns columns in the Native format, for large numeric results and long texts. Default timeout 30 s. */
  queryColumns<Params extends QueryParams, Columns>(
    statement: Statement<Params, Columns>,
    params: Params,
    options?: RequestOptions,
  ): Promise<readonly NativeBlock[]>
  /** Runs a statement that returns nothing. Default timeout 120 s. */
  command(sql: string, params?: QueryParams, options?: RequestOptions): Promise<void>
  /**
   * Runs an UPDATE, DELETE or TRUNCATE on the tables that hold the rows, in a cluster on every shard. When it fails,
   * some shards may have run it already, so repeating it must be harmless. Default timeout 120 s.
   */
  change(sql: string, params?: QueryParams, options?: RequestOptions): Promise<void>
  /** Makes the deduplication token of a new batch, greater than earlier ones; in a cluster it names the number of shards. */
  newToken(): string
  /**
   * Inserts a batch in the Native format; resolves when it is stored, views included.
   * A repetition with the same token is harmless, provided that the bytes are the same.
   */
  insertNative(
    table: string,
    bytes: Uint8Array | readonly Uint8Array[],
    token: string,
    options?: RequestOptions,
  ): Promise<void>
  /** @returns the sources, among the given ones, whose rows of the batch with this token are stored */
  sourcesStored(token: string, sources: readonly string[]): Promise<ReadonlySet<string>>
  /** Inserts a few rows, given as objects by column name. Resolves when they are stored. */
  insertRows(table: string, rows: readonly object[], options?: RequestOptions): Promise<void>
  /** The partitions of these tables, in a cluster those of one replica of each shard. */
  partitions(tables: readonly string[]): Promise<readonly PartitionRow[]>
  /** Counts the batch inserts that have run for longer than this many seconds, on any server. */
  insertsRunning(seconds: number): Promise<number>
  /** Resolves when the server answers a query. Default timeout 5 s. */
  ping(options?: RequestOptions): Promise<void>
  createDatabase(): Promise<void>
  close(): Promise<void>
}

export interface PartitionRow {
  readonly table_name: string
  readonly id: string
  /** The values of the partition key. */
  readonly key: string
  /** Rows, deleted ones included. */
  readonly stored: number
  readonly bytes: number
  /** The part of `bytes` that is in cold storage. */
  readonly cold_bytes: number
}

const insertsSql = statement<{ readonly seconds: number }, { readonly running: number }>(
  'inserts_running',
)

const takenSql = statement<
  { readonly token: string; readonly sources: readonly string[] },
  { readonly source: string }
>('batch_sources')
const partitionsSql = statement<
  { readonly database: string; readonly tables: readonly string[] },
  PartitionRow
>('partitions')

const QUERY_TIMEOUT_MS = 30_000
const WRITE_TIMEOUT_MS = 120_000
const PING_TIMEOUT_MS = 5_000

const COMMON_SETTINGS: ClickHouseSettings = {
  // The status line shows the outcome, so an incomplete result is never taken for a complete one.
  wait_end_of_query: 1,
  // ClickHouse buffers a result in memory up to this size, and in a temporary file beyond it. No result is this large: on a full
  // disk the file would be cut off, and ClickHouse would send it as if it were complete.
  http_response_buffer_size: String(2 ** 40),
  output_format_json_quote_64bit_integers: 0,
  date_time_output_format: 'iso',
  date_time_input_format: 'best_effort',
  session_timezone: 'UTC',
}

const READ_SETTINGS: ClickHouseSettings = {
  // ClickHouse cancels a read-only query when the client disconnects, so an aborted request frees the server.
  cancel_http_readonly_queries_on_client_close: 1,
  readonly: '2',
}

/**
 * Indexes of `events` that only merges build. A new part has a few dozen granules, whose columns
 * are read as fast as an index.
 */
export const INDEXES_OF_MERGES =
  'by_constant_text,by_template,by_source,by_host,by_trace_id,by_attribute'

const INSERT_SETTINGS: ClickHouseSettings = {
  async_insert: 0,
  // A batch becomes one block while it is read, hence one part a table and one entry in the deduplication log. If it
  // became one block only later, ClickHouse would know it by its token and by the number of blocks it came in.
  use_strict_insert_block_limits: 1,
  max_insert_block_size: '10000000',
  min_insert_block_size_rows: '10000000',
  min_insert_block_size_bytes: '1073741824',
  max_insert_threads: '1',
  // Writes the tables of a batch in parallel, which takes 0.75 of the time for the same CPU.
  parallel_view_processing: 1,
  exclude_materialize_skip_indexes_on_insert: INDEXES_OF_MERGES,
}

export function createStore(options: StoreOptions): Store {
  const asking = connect(options, options.database)
  const searching = connect(options, options.database)
  // Inserts and changes have sockets of their own, so they never wait for queries.
  const changing = connect(options, options.database)
  const reads = createReads({ asking, searching })
  const { command, ping } = createCommands(changing)
  return {
    database: options.database,
    isSharded: false,
    ...reads,
    command,
    ping,
    ...createInserts(changing),
    change: command,
    newToken,
    sourcesStored: async (token, sources) => {
      const rows = await reads.query(takenSql, { token, sources })
      return new Set(rows.map(({ source }) => source))
    },
    partitions: (tables) => reads.query(partitionsSql, { database: options.database, tables }),
    insertsRunning: async (seconds) =>
      (await reads.query(insertsSql, { seconds }))[0]?.running ?? 0,
    createDatabase: () => createDatabase(options),
    close: async () => {
      await Promise.all([asking.close(), searching.close(), changing.close()])
    },
  }
}

/** A token begins with the time, so that later tokens are greater. */
const newToken = (): string => `${Date.now().toString(16).padStart(12, '0')}-${randomUUID()}`

type Client = Pick<ClickHouseClient, 'query' | 'exec' | 'command' | 'insert' | 'close'>

function connect(options: StoreOptions, database: string): Client {
  const { url, username, password, openAgent, maxConnections = 20 } = options
  const client = createClient({
    url,
    username,
    ...(typeof password === 'string' ? { password } : {}),
    ...(openAgent === undefined ? {} : { http_agent: openAgent(maxConnections) }),
    database,
    application: 'log-analytics-engine',
    max_open_connections: maxConnections,
    // Each call has its own timeout; this one ends silent sockets.
    request_timeout: 600_000,
    // Below what servers grant (10 s), so that a socket is never reused as it is being closed.
    keep_alive: { enabled: true, idle_socket_ttl: 2_500, eagerly_destroy_stale_sockets: true },
    compression: { request: false, response: false },
    log: { level: ClickHouseLogLevel.OFF },
    // Long lists of ids would exceed the length of a URL.
    use_multipart_params_auto: true,
    clickhouse_settings: { ...COMMON_SETTINGS, ...options.settings },
    ...(options.tls === undefined ? {} : { tls: { ca_cert: options.tls.caCert } }),
  })
  if (typeof password === 'string') return client
  const withPassword = <Asked>(asked: Asked) => ({
    ...asked,
    auth: { username, password: password() },
  })
  return {
    query: (asked) => client.query(withPassword(asked)),
    exec: (asked) => client.exec(withPassword(asked)),
    command: (asked) => client.command(withPassword(asked)),
    insert: (asked) => client.insert(withPassword(asked)),
    close: () => client.close(),
  }
}

interface Reading {
  readonly asking: Client
  readonly searching: Client
}

function createReads({ asking, searching }: Reading): Pick<Store, 'query' | 'queryColumns'> {
  return {
    queryColumns: (asked, params, request = {}) =>
      perform(`query ${asked.name}`, request, QUERY_TIMEOUT_MS, async (signal) => {
        const client = request.isSearch === true ? searching : asking
        const result = await client.exec({
          ...inShortParams(`${asked.sql}\nFORMAT Native`, params),
          abort_signal: signal,
          clickhouse_settings: { ...readSettings(request), ...request.settings },
        })
        return readBlocks(await readWhole(result.stream))
      }),
    query: (asked, params, request = {}) =>
      perform(`query ${asked.name}`, request, QUERY_TIMEOUT_MS, async (signal) => {
        const client = request.isSearch === true ? searching : asking
        const result = await client.query({
          ...inShortParams(asked.sql, params),
          format: 'JSONEachRow',
          abort_signal: signal,
          clickhouse_settings: { ...readSettings(request), ...request.settings },
        })
        return await result.json()
      }),
  }
}

/** The `buffer` of node:stream/consumers copies everything twice more. */
async function readWhole(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/**
 * Limits the execution time in ClickHouse to the client's timeout, because ClickHouse may not
 * notice that the connection was closed.
 */
const readSettings = ({ timeoutMs = QUERY_TIMEOUT_MS }: RequestOptions): ClickHouseSettings => ({
  ...READ_SETTINGS,
  max_execution_time: Math.ceil(timeoutMs / 1000),
})

function createCommands(client: Client): Pick<Store, 'command' | 'ping'> {
  return {
    command: (sql, params = {}, request = {}) =>
      perform('a command', request, WRITE_TIMEOUT_MS, async (signal) => {
        await client.command({
          ...inShortParams(sql, params),
          abort_signal: signal,
          clickhouse_settings: request.settings ?? {},
        })
      }),
    ping: (request = {}) =>
      perform('ping', request, PING_TIMEOUT_MS, async (signal) => {
        await client.command({ query: 'SELECT 1', abort_signal: signal })
      }),
  }
}

function createInserts(client: Client): Pick<Store, 'insertNative' | 'insertRows'> {
  return {
    insertNative: (table, bytes, token, request = {}) =>
      perform(`insert into ${table}`, request, WRITE_TIMEOUT_MS, async (signal) => {
        const blocks = bytes instanceof Uint8Array ? [bytes] : bytes
        const result = await client.exec({
          query: `INSERT INTO ${identifier(table)} FORMAT Native`,
          values: Readable.from(joinBlocks(blocks), { objectMode: false }),
          abort_signal: signal,
          clickhouse_settings: {
            ...INSERT_SETTINGS,
            insert_deduplicate: 1,
            insert_deduplication_token: token,
            deduplicate_blocks_in_dependent_materialized_views: 1,
            // Views group their rows already. ClickHouse would sum them again row by row, which costs a batch over a
            // wide span of time, whose seconds have few events each, 0.8 CPU s/M (bench/NOTES.md).
            optimize_on_insert: 0,
            ...request.settings,
          },
        })
        // The response is empty; reading it to the end releases the connection.
        await finished(result.stream.resume())
      }),
    insertRows: (table, rows, request = {}) =>
      perform(`insert into ${table}`, request, WRITE_TIMEOUT_MS, async (signal) => {
        if (rows.length === 0) return
        await client.insert({
          table: identifier(table),
          values: [...rows],
          format: 'JSONEachRow',
          abort_signal: signal,
          clickhouse_settings: { ...INSERT_SETTINGS, ...request.settings },
        })
      }),
  }
}

/** Uses a connection of its own, because a connection that names a database is refused until the database exists. */
async function createDatabase(options: StoreOptions): Promise<void> {
  const client = connect(options, 'default')
  const query = `CREATE DATABASE IF NOT EXISTS ${identifier(options.database)}`
  try {
    await perform('create database', {}, WRITE_TIMEOUT_MS, async (signal) => {
      await client.command({ query, abort_signal: signal })
    })
  } finally {
    await client.close()
  }
}

/** Runs one request under its timeout and the caller's signal, and translates a failure. */
async function perform<T>(
  action: string,
  request: RequestOptions,
  defaultTimeoutMs: number,
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal: caller, timeoutMs = defaultTimeoutMs } = request
  caller?.throwIfAborted()
  // Not AbortSignal.any: Node 20 keeps every combined signal for as long as the caller's lives.
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const timer = setTimeout(abort, timeoutMs)
  caller?.addEventListener('abort', abort, { once: true })
  try {
    return await send(controller.signal)
  } catch (error) {
    caller?.throwIfAborted()
    throw toStoreFailure(action, error, controller.signal.aborted ? timeoutMs : null)
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', abort)
  }
}

/** Names of tables and databases cannot be bound, so only plain words are let through. */
function identifier(name: string): string {
  if (/^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/.test(name)) return name
  throw new RangeError(`bug: ${JSON.stringify(name)} is not a plain table or database name`)
}
