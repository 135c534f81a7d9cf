import { join } from 'node:path'
import { startEmbedded, type Embedded } from '../../src/store/embedded.js'
import { readUsage } from './processes.js'

/** The embedded ClickHouse of a service that has ended, for checking and loading by SQL. */
export interface Engine {
  /** CPU seconds of its process up to now */
  cpuS(): number
  /** @returns one array per row, as strings or numbers */
  rows(sql: string): Promise<readonly (readonly unknown[])[]>
  stop(): Promise<void>
}

/** @throws Error when another process holds the directory */
export async function openEngine(serviceDataDir: string): Promise<Engine> {
  const silent = (): undefined => undefined
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  const embedded = await startEmbedded({ dataDir: join(serviceDataDir, 'clickhouse'), log })
  return {
    cpuS: () => readUsage(embedded.pid() ?? 0)?.cpuS ?? 0,
    rows: (sql) => query(embedded, sql),
    stop: () => embedded.stop(),
  }
}

async function query(embedded: Embedded, sql: string): Promise<readonly (readonly unknown[])[]> {
  const credentials = Buffer.from(`${embedded.username}:${embedded.password}`).toString('base64')
  const url = `${embedded.url}/?database=logs&output_format_json_quote_64bit_integers=0`
  const headers = { authorization: `Basic ${credentials}` }
  const reply = await fetch(url, { method: 'POST', body: sql, headers })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`the engine refused a query: ${text.slice(0, 500)}`)
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => toRow(JSON.parse(line)))
}

const toRow = (value: unknown): readonly unknown[] => {
  if (!Array.isArray(value)) throw new Error('bug: rows need FORMAT JSONCompactEachRow')
  return value
}
