import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import { FixedColumn, toNativeBlock } from '../../../src/clickhouse/native-writer.js'
import type { Store } from '../../../src/clickhouse/client.js'
import {
  createTestDatabase,
  quietLog,
  startTestServer,
  type TestServer,
} from '../../support/clickhouse.js'
import { signal } from '../../support/signals.js'

const LSATTR = '/usr/bin/lsattr'
const TABLES = ['numbers', 'doubles'] as const

function blockOf(...values: readonly number[]): Uint8Array {
  const column = new FixedColumn('a', 'UInt64', 8)
  for (const value of values) column.data.u64(value)
  return toNativeBlock([column], values.length, new ByteBuffer()).bytes
}

/** A table that stores nothing and two that its views fill, as the service has them. */
async function createTables(store: Store): Promise<void> {
  await store.command('CREATE TABLE landing (a UInt64) ENGINE = Null')
  for (const table of TABLES) {
    await store.command(
      `CREATE TABLE ${table} (a UInt64) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100`,
    )
    await store.command(`CREATE MATERIALIZED VIEW ${table}_mv TO ${table} AS SELECT a FROM landing`)
  }
}

async function readTables(store: Store): Promise<Readonly<Record<string, unknown>>> {
  const found: Record<string, unknown> = {}
  for (const table of TABLES) {
    const [row] = await store.query<Record<string, never>, { all: number[] }>(
      { name: 'test', sql: `SELECT arraySort(groupArray(a)) AS all FROM ${table}` },
      {},
    )
    found[table] = row?.all
  }
  return found
}

/** Ends the engine as a crash does, and has `change` made to its files before the next one starts. */
async function crash(server: TestServer, change: () => void): Promise<void> {
  signal(server.engine.pid(), 'SIGKILL')
  const isReady = (): boolean => server.engine.state === 'ready'
  while (isReady()) await new Promise((resolve) => setImmediate(resolve))
  change()
  while (!isReady()) await new Promise((resolve) => setTimeout(resolve, 10))
}

/** The directory of a table. */
async function directoryOf({ store }: { store: Store }, table: string): Promise<string> {
  const [row] = await store.query<{ table: string }, { path: string }>(
    {
      name: 'test',
      sql: 'SELECT data_paths[1] AS path FROM system.tables WHERE database = currentDatabase() AND name = {table:String}',
    },
    { table },
  )
  return row?.path ?? ''
}

const logOf = (directory: string): string => {
  const logs = join(directory, 'deduplication_logs')
  return join(logs, readdirSync(logs).toSorted().at(-1) ?? '')
}

t.test(
  'a batch interrupted by a crash between token and part is accepted when it is sent again',
  async (t) => {
    const server = await startTestServer()
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    await createTables(store)
    await store.insertNative('landing', blockOf(1, 2), 'first')
    await store.insertNative('landing', blockOf(3, 4), 'second')
    const directory = await directoryOf({ store }, 'doubles')
    const [part = ''] = readFileSync(logOf(directory), 'utf8').trim().split('\t').slice(-2)
    await crash(server, () =>
      // The name of a part before it is moved into place.
      renameSync(join(directory, part), join(directory, `tmp_insert_${part}`)),
    )
    t.same(await readTables(store), { numbers: [1, 2, 3, 4], doubles: [1, 2] })
    for (const token of ['first', 'second'])
      await store.insertNative('landing', token === 'first' ? blockOf(1, 2) : blockOf(3, 4), token)
    t.same(await readTables(store), { numbers: [1, 2, 3, 4], doubles: [1, 2, 3, 4] })
  },
)

t.test(
  'tokens of parts that were merged, and all behind half a line, are remembered',
  async (t) => {
    const server = await startTestServer()
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    await createTables(store)
    const tokens = ['first', 'second', 'third']
    for (const [i, token] of tokens.entries())
      await store.insertNative('landing', blockOf(i), token)
    await store.command('OPTIMIZE TABLE numbers FINAL')
    const log = logOf(await directoryOf({ store }, 'numbers'))
    await crash(server, () => appendFileSync(log, '1\tall_9_9'))
    await store.insertNative('landing', blockOf(7), 'fourth')
    await crash(server, () => undefined)
    for (const token of [...tokens, 'fourth'])
      await store.insertNative('landing', blockOf(9), token)
    t.same(await readTables(store), { numbers: [0, 1, 2, 7], doubles: [0, 1, 2, 7] })
  },
)

t.test(
  'tokens are on disk before their parts are, as the file system has it',
  { skip: existsSync(LSATTR) ? false : `${LSATTR} is not there` },
  async (t) => {
    const warnings: string[] = []
    const log = { ...quietLog, warn: (_: object, text: string) => void warnings.push(text) }
    const server = await startTestServer({ log })
    t.teardown(() => server.stop())
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    await createTables(store)
    await server.engine.tablesMade()
    const attributesOf = (path: string): string => {
      const text = execFileSync(LSATTR, ['-d', path], { encoding: 'utf8' })
      return text.split(' ')[0] ?? ''
    }
    const table = await directoryOf({ store }, 'numbers')
    const log1 = logOf(table)
    // A temporary directory may be on a file system without the attribute, which is then reported.
    if (warnings.length > 0) return t.match(warnings, [/has no attribute for synchronous files/])
    t.match(attributesOf(log1), /S/, 'the log')
    t.match(attributesOf(dirname(log1)), /S/, 'and what comes after it')
    t.match(attributesOf(table), /T/, 'parts go to groups of blocks of their own')
    await store.insertNative('landing', blockOf(1), 'first')
    await store.insertNative('landing', blockOf(1), 'first')
    return t.same(await readTables(store), { numbers: [1], doubles: [1] })
  },
)
