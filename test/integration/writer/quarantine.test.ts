import { readdirSync } from 'node:fs'
import { test, type Test } from 'tap'
import { SEVERITIES } from '../../../src/model/event.js'
import { encodeRecord, type LogRecord } from '../../../src/wal/record.js'
import { startBackend } from '../../support/cluster.js'
import { createBatchStore } from '../../../src/writer/batch-store.js'
import { openRig, STEPS, type Rig } from '../../support/ingestion.js'
import { seeded } from '../../support/landing.js'
import {
  refusableBlock,
  refusableEntry,
  refusableRows,
  type RefusableRow,
} from '../../support/refused-rows.js'

const TABLES = [
  'events',
  'event_occurrences',
  ...Object.keys(STEPS),
  'template_stats',
  'template_totals',
  'host_stats',
]

const sum = (rows: readonly RefusableRow[]): number => rows.reduce((total, { n }) => total + n, 0)

async function write(rig: Rig, records: readonly LogRecord[]): Promise<void> {
  const { wal, writer } = rig
  const appended = records.map((record) => wal.append(encodeRecord(record)))
  await Promise.all(appended.map(({ durable }) => durable))
  await writer.flush(appended.at(-1)?.seq ?? 0)
}

/** Every table holds exactly these rows. */
async function holds(t: Test, rig: Rig, rows: readonly RefusableRow[]): Promise<void> {
  const [events] = await rig.rows(
    'SELECT count() AS count, sum(n) AS n, uniqExact(id) AS ids FROM events',
  )
  t.same(events, { count: rows.length, n: sum(rows), ids: rows.length })
  for (const table of [...Object.keys(STEPS), 'template_stats', 'template_totals']) {
    const [counted] = await rig.rows(`
      SELECT sum(p1 + p2 + p3 + p4) AS n,
        ${SEVERITIES.map((name) => `sum(${table}.${name.toLowerCase()}) AS ${name}`).join(', ')}
      FROM ${table}`)
    const under = SEVERITIES.map((name) => [name, sum(rows.filter((row) => row.severity === name))])
    t.same(counted, { n: sum(rows), ...Object.fromEntries(under) }, table)
  }
  const hosts = await rig.rows('SELECT host, sum(host_stats.n) AS n FROM host_stats GROUP BY host')
  t.same(hosts, rows.length === 0 ? [] : [{ host: 'web-1', n: sum(rows) }], 'host_stats')
}

void test('ClickHouse refuses rows, and everything else is counted exactly', async (t) => {
  const server = await startBackend()
  t.teardown(() => server.stop())
  const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
  t.comment(`seed ${seed}`)
  const random = seeded(seed)

  await t.test('a refused insert leaves nothing in any table', async (t) => {
    const rig = await openRig(t, server)
    const [good, bad] = [
      refusableBlock(refusableRows(random, { rows: 100, firstId: 1, oneIn: 1e9 })),
      refusableBlock(refusableRows(random, { rows: 2, firstId: 500, oneIn: 1 })),
    ]
    const { insert, wouldTake } = createBatchStore(rig.store)
    // The quarantine relies on it: ClickHouse reads a batch to its end before a view sees it.
    for (const parts of [
      [bad],
      [good, bad],
      [good, good, bad, good],
      [good, Buffer.from('no block')],
    ])
      await t.rejects(insert('landing', parts, 'token'), { name: 'StoreError' })
    for (const table of TABLES)
      t.same(await rig.rows(`SELECT count() AS n FROM ${table}`), [{ n: 0 }], table)
    t.equal(await wouldTake('landing', [good, good]), true)
    t.equal(await wouldTake('landing', [good, bad]), false)
    t.equal(await wouldTake('dead_letters', [Buffer.from('no block')]), false)
    for (const table of TABLES)
      t.same(await rig.rows(`SELECT count() AS n FROM ${table}`), [{ n: 0 }], table)
  })

  await t.test('rows among many records', async (t) => {
    const rig = await openRig(t, server)
    const all = [40, 1, 700, 3].map((rows, i) =>
      refusableRows(random, { rows, firstId: 1 + i * 1000, oneIn: 50 }),
    )
    await write(rig, all.map(refusableEntry))
    const rows = all.flat()
    const bad = rows.filter(({ severity }) => severity === 'BOGUS')
    await holds(
      t,
      rig,
      rows.filter(({ severity }) => severity !== 'BOGUS'),
    )
    const deadLetters = await rig.rows('SELECT reason, source, raw, id FROM dead_letters')
    t.equal(deadLetters.length, sum(bad))
    t.ok(deadLetters.every(({ reason }) => reason === 'store_refused'))
    t.equal(new Set(deadLetters.map(({ id }) => id)).size, deadLetters.length)
    const texts = deadLetters.map(
      ({ raw }) => (JSON.parse(String(raw)) as { message: string }).message,
    )
    t.same([...new Set(texts)].sort(), bad.map(({ message }) => message).sort())
    t.same(rig.wal.waiting, [])

    const [deadLetter = {}] = deadLetters.map(({ raw }) => JSON.parse(String(raw)) as object)
    await rig.send([{ ...deadLetter, severity: 'INFO' }])
    t.pass('a corrected dead letter can be ingested')
  })

  await t.test('an unreadable block', async (t) => {
    const rig = await openRig(t, server)
    const good = refusableRows(random, { rows: 30, firstId: 1, oneIn: 1e9 })
    const whole = refusableBlock(refusableRows(random, { rows: 2, firstId: 100, oneIn: 1e9 }))
    const broken = whole.subarray(0, whole.length - 5)
    await write(rig, [
      refusableEntry(good.slice(0, 10)),
      { ...refusableEntry([]), landing: broken, landingRows: 2 },
      refusableEntry(good.slice(10)),
    ])
    await holds(t, rig, good)
    const deadLetters = await rig.rows('SELECT raw, detail FROM dead_letters')
    t.equal(deadLetters.length, 2)
    const file = /wal\/(refused-[\w-]+\.native)/.exec(String(deadLetters[0]?.['detail']))?.[1]
    t.ok(readdirSync(rig.walDir).includes(file ?? ''), 'its bytes are in the file')
  })

  await t.test('counts of later batches stay right', async (t) => {
    const rig = await openRig(t, server)
    await write(rig, [refusableEntry(refusableRows(random, { rows: 5, firstId: 1, oneIn: 1 }))])
    await rig.send([{ source: 'a', message: 'after it' }])
    await rig.pipeline.settle()
    t.same(await rig.rows('SELECT sum(p1 + p2 + p3 + p4) AS n FROM series_1s'), [{ n: 1 }])
    t.same(await rig.rows('SELECT count() AS n FROM events'), [{ n: 1 }])
  })
})
