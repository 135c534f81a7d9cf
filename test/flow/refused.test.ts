import { join } from 'node:path'
import { test } from 'tap'
import { encodeRecord } from '../../src/wal/record.js'
import { createStore } from '../../src/clickhouse/client.js'
import { startTestServer } from '../support/clickhouse.js'
import { seeded } from '../support/landing.js'
import { createTestWal } from '../support/pipeline.js'
import { refusableEntry, refusableRows } from '../support/refused-rows.js'
import {
  countOf,
  ingest,
  KNOWN,
  logIn,
  runAndKill,
  startService,
  tempDataDir,
} from '../support/service.js'

const ENTRIES = 12
const ROLLUPS = [
  'series_1s',
  'series_1m',
  'series_1h',
  'series_1d',
  'template_stats',
  'template_totals',
]

void test('rows that ClickHouse refuses are set aside, whenever the service is killed over it', async (t) => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
  t.comment(`seed ${seed}`)
  const random = seeded(seed)
  const dataDir = tempDataDir(t)
  const env = { DATA_DIR: dataDir, ...KNOWN }
  const first = await startService(t, env)
  const line = (i: number): string => JSON.stringify({ source: 'shop', message: `order ${i} sent` })
  const good = Array.from({ length: 20 }, (_, i) => line(i)).join('\n')
  t.equal((await ingest(first, good)).status, 202)
  await first.stop()

  const rows = Array.from({ length: ENTRIES }, (_, i) =>
    refusableRows(random, { rows: 60, firstId: 2 ** 52 + i * 1000, oneIn: 20 }),
  )
  const wal = await createTestWal(t, join(dataDir, 'wal'))
  for (const entry of rows) await wal.append(encodeRecord(refusableEntry(entry))).durable
  await wal.close()
  for (let kill = 0; kill < 4; kill++) await runAndKill(env, 600 + random() * 2_000)

  const service = await startService(t, env)
  const caller = await logIn(service)
  t.equal((await ingest(service, line(99))).status, 202, 'and new messages are taken')
  const sum = (isMeant: (row: (typeof rows)[number][number]) => boolean): number =>
    rows.flat().reduce((n, row) => (isMeant(row) ? n + row.n : n), 0)
  const stored = sum((row) => row.severity !== 'BOGUS')
  const refused = sum((row) => row.severity === 'BOGUS')
  t.ok(refused > 0, `${refused} are refused`)
  const count = async (): Promise<number> =>
    (await countOf(caller, 'shop')) + (await countOf(caller, 'bank'))
  for (let found = 0; found < stored + 21; found = await count())
    await new Promise((resolve) => setTimeout(resolve, 100))
  t.equal(await count(), stored + 21)
  const health = await caller.get<{ status: string }>('/api/monitoring/health')
  t.equal(health.status, 'ok')
  const letters = await caller.get<{ items: readonly { reason: string; raw: string }[] }>(
    '/api/monitoring/dead-letters?reason=store_refused&limit=200',
  )
  t.equal(letters.items.length, refused)
  t.ok(letters.items.every(({ raw }) => raw.includes('BOGUS')))
  await service.stop()

  const server = await startTestServer({ dataDir: join(dataDir, 'clickhouse') })
  const { url, username, password } = server.engine
  const store = createStore({ url, username, password, database: 'logs' })
  for (const table of ROLLUPS) {
    const sql = `SELECT sum(p1 + p2 + p3 + p4) AS n, sum(debug + info + warning + error + critical) AS s FROM ${table}`
    t.same(await store.query({ name: table, sql }, {}), [{ n: stored + 21, s: stored + 21 }], table)
  }
  const sql = 'SELECT sum(n) AS n, count() = uniqExact(id) AS once FROM events'
  t.same(await store.query({ name: 'events', sql }, {}), [{ n: stored + 21, once: 1 }])
  await store.close()
  await server.stop()
})
