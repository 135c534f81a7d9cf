import { join } from 'node:path'
import { INDEXES_OF_MERGES } from '../../src/clickhouse/client.js'
import { startEmbedded, type Embedded } from '../../src/clickhouse/embedded/embedded.js'
import { readUsage } from './processes.js'

/** The embedded ClickHouse of a stopped service, for checks and inserts by SQL. */
export interface Engine {
  /** CPU seconds of its process. */
  cpuS(): number
  /** @returns one array per row, as strings or numbers */
  rows(sql: string): Promise<readonly (readonly unknown[])[]>
  /** Inserts a block in the Native format; a repetition with the same token changes nothing. */
  insert(table: string, columns: readonly string[], block: Uint8Array, token: string): Promise<void>
  stop(): Promise<void>
}

/** @throws Error when another process holds the directory */
export async function openEngine(serviceDataDir: string): Promise<Engine> {
  const silent = (): undefined => undefined
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  const embedded = await startEmbedded({ dataDir: join(serviceDataDir, 'clickhouse'), log })
  return {
    cpuS: () => readUsage(embedded.pid() ?? 0)?.cpuS ?? 0,
    rows: async (sql) => toRows(await post(embedded, { sql, body: null, settings: '' })),
    insert: async (table, columns, block, token) => {
      const sql = `INSERT INTO ${table} (${columns.join(', ')}) FORMAT Native`
      const settings =
        `&insert_deduplicate=1&insert_deduplication_token=${encodeURIComponent(token)}` +
        '&deduplicate_blocks_in_dependent_materialized_views=1&max_insert_threads=1&parallel_view_processing=1' +
        '&min_insert_block_size_rows=10000000&min_insert_block_size_bytes=1073741824&optimize_on_insert=0'
      await post(embedded, { sql, body: block, settings })
    },
    stop: () => embedded.stop(),
  }
}

interface Post {
  readonly sql: string
  /** The data after the statement; null for none. */
  readonly body: Uint8Array | null
  readonly settings: string
}

async function post(embedded: Embedded, { sql, body, settings }: Post): Promise<string> {
  const credentials = Buffer.from(`${embedded.username}:${embedded.password}`).toString('base64')
  const statement = body === null ? '' : `&query=${encodeURIComponent(sql)}`
  // These are the settings of an insert of the service.
  const indexes = `&exclude_materialize_skip_indexes_on_insert=${INDEXES_OF_MERGES}`
  const url = `${embedded.url}/?database=logs&output_format_json_quote_64bit_integers=0${indexes}${settings}${statement}`
  // Making a block may take longer than the server keeps an idle connection.
  const headers = { authorization: `Basic ${credentials}`, connection: 'close' }
  const reply = await fetch(url, { method: 'POST', body: body ?? sql, headers })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`the engine refused a query: ${text.slice(0, 500)}`)
  return text
}

const toRows = (text: string): (readonly unknown[])[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => toRow(JSON.parse(line)))

const toRow = (value: unknown): readonly unknown[] => {
  if (!Array.isArray(value)) throw new Error('bug: rows need FORMAT JSONCompactEachRow')
  return value
}
