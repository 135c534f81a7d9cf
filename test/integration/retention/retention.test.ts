import { test } from 'tap'
import { migrate, readMigrations, type Migration } from '../../../src/clickhouse/migrate.js'
import { createEntities } from '../../../src/coordination/entities.js'
import type { Severity } from '../../../src/model/event.js'
import { DAY_MS } from '../../../src/model/time.js'
import { createPartitions } from '../../../src/retention/partitions.js'
import { createRetentionPolicy } from '../../../src/retention/policy.js'
import { createSweep, RetentionDoc, type Dropped } from '../../../src/retention/sweep.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { startBackend } from '../../support/cluster.js'
import { openRig, type Rig } from '../../support/ingestion.js'
import { mutated } from '../../support/mutated.js'
import { bodyOf, SUBMISSION } from '../../support/pipeline.js'

function filterOf(sources: readonly string[] | null) {
  const none = { severities: null, priorities: null, templateIds: null }
  return { sources, ...none, terms: [], clauses: [], redirects: [] }
}

/** What is stored, as `source severity`, with the repeats and dead letters of each source. */
async function stored(rig: Pick<Rig, 'rows'>) {
  const list = async (sql: string): Promise<readonly string[]> =>
    (await rig.rows(`SELECT DISTINCT x FROM (${sql}) ORDER BY x`)).map(({ x }) => String(x))
  return {
    events: await list("SELECT concat(source, ' ', toString(severity)) AS x FROM events"),
    repeats: await list('SELECT source AS x FROM event_occurrences'),
    dead: await list('SELECT source AS x FROM dead_letters'),
  }
}

const message = (source: string, severity: string) => ({ source, severity, message: 'x y' })

void test('events go when the retention of their source, application or severity is over', async (t) => {
  const backend = await startBackend()
  t.teardown(() => backend.stop())
  const rig = await openRig(t, backend, {
    RETENTION_DAYS: '60',
    RETENTION_DAYS_BY_SEVERITY: 'DEBUG=3',
  })
  const { sources, applications, corrections } = rig.services
  const nowMs = Date.now()
  const dayMs = Math.floor(nowMs / DAY_MS) * DAY_MS
  /** So many days after the end of today. */
  const after = (days: number): Promise<void> => rig.retention.sweep(dayMs + (days + 1) * DAY_MS)
  const made = { type: 'push', connector: 'custom', applicationId: null } as const
  const short = await applications.create({
    name: 'short',
    environment: '',
    hosts: [],
    retentionDays: 7,
  })
  await sources.create({ ...made, name: 'linked', applicationId: short.id })
  await sources.create({ ...made, name: 'own', applicationId: short.id, retentionDays: 14 })
  await sources.create({ ...made, name: 'long', retentionDays: 3650 })
  // What arrives from here on arrived under this policy.
  await rig.retention.sweep(nowMs - 5 * DAY_MS)
  const all = ['plain', 'linked', 'own', 'long']
  const sent = all.flatMap((source) => [message(source, 'DEBUG'), message(source, 'INFO')])
  await rig.send(sent)
  await rig.send(sent)
  for (const source of all)
    await rig.pipeline.submit({ ...SUBMISSION, bytes: bodyOf(`{"source":"${source}"}`) })
  await rig.pipeline.settle()

  await t.test('in partitions of their class', async (t) => {
    const rows = await rig.rows(`
      SELECT splitByChar('-', _partition_id)[2] AS class, count() AS n FROM events GROUP BY class
      ORDER BY toUInt16(class)`)
    t.same(rows, [
      { class: '0', n: 1 },
      { class: '3', n: 1 },
      { class: '7', n: 2 },
      { class: '14', n: 2 },
      { class: '3650', n: 2 },
    ])
    const same = await rig.rows(`
      SELECT uniqExact(_partition_id) AS classes FROM event_occurrences`)
    t.same(same, [{ classes: 5 }])
    const [event] = await rig.rows("SELECT id FROM events WHERE source = 'own' LIMIT 1")
    await corrections.correct(Number(event?.['id']), 'P1', '')
    const own = await rig.rows(`
      SELECT DISTINCT splitByChar('-', _partition_id)[2] AS class FROM event_occurrences
      WHERE source = 'own'`)
    t.same(own, [{ class: '14' }], 'what corrects them too')
  })

  await t.test('a histogram is of the events where some may be gone', async (t) => {
    const histogram = async (source: string, days: number, endDays = 0) => {
      const toMs = nowMs - endDays * DAY_MS
      const { answer } = await rig.services.events.histogram({
        question: { filter: filterOf([source]), fromMs: nowMs - days * DAY_MS, toMs },
        field: null,
        top: 1,
        buckets: 10,
        counted: 'occurrences',
        names: { applications: () => new Map(), templateTexts: () => new Map() } as never,
      })
      return answer.answeredFrom
    }
    t.equal(await histogram('own', 12), 'rollup')
    t.equal(await histogram('own', 14, 13), 'events')
    t.equal(await histogram('own', 14), 'rollup', 'and of the rollups for the rest')
    t.equal(await histogram('plain', 3, 2), 'events')
    t.equal(await histogram('long', 50), 'rollup')
  })

  await t.test('what an earlier retention dropped is counted nowhere again', async (t) => {
    const days = { RETENTION_DAYS: '60', RETENTION_DAYS_BY_SEVERITY: 'DEBUG=3' }
    const other = await openRig(t, backend, days)
    const from = async (severity: Severity, startDays: number): Promise<string> => {
      const filter = { ...filterOf(['changed']), severities: [severity] }
      const at = (daysAgo: number): number => Date.now() - daysAgo * DAY_MS
      const question = { filter, fromMs: at(startDays), toMs: at(startDays - 2) }
      const names = { applications: () => new Map(), templateTexts: () => new Map() } as never
      const counted = 'occurrences'
      const asked = { question, field: null, top: 1, buckets: 1, counted, names } as const
      return (await other.services.events.histogram(asked)).answer.answeredFrom
    }
    const { sources } = other.services
    await sources.create({ ...made, name: 'changed', retentionDays: 14 })
    await other.retention.sweep()
    t.equal(await from('INFO', 12), 'rollup')
    t.equal(await from('INFO', 20), 'events')
    await sources.change('changed', { retentionDays: 30 })
    await other.retention.sweep()
    t.equal(await from('INFO', 12), 'rollup')
    t.equal(await from('INFO', 20), 'events', 'a longer retention brings nothing back')
    await sources.change('changed', { retentionDays: 7 })
    await other.retention.sweep()
    await sources.change('changed', { retentionDays: null })
    await other.retention.sweep()
    t.equal(await from('INFO', 6), 'rollup')
    t.equal(await from('INFO', 20), 'events')
  })

  await t.test('by their class', async (t) => {
    await after(2.9)
    t.equal((await stored(rig)).events.length, 8)
    await after(3)
    t.same((await stored(rig)).events, [
      'linked DEBUG',
      'linked INFO',
      'long DEBUG',
      'long INFO',
      'own DEBUG',
      'own INFO',
      'plain INFO',
    ])
    await after(7)
    t.same(await stored(rig), {
      events: ['long DEBUG', 'long INFO', 'own DEBUG', 'own INFO', 'plain INFO'],
      repeats: ['long', 'own', 'plain'],
      dead: ['long', 'own', 'plain'],
    })
  })

  await t.test('what changes holds for what is stored', async (t) => {
    await sources.change('own', { retentionDays: null })
    await sources.change('plain', { retentionDays: 30 })
    await after(8)
    await mutated(rig.store)
    t.same(await stored(rig), {
      events: ['long DEBUG', 'long INFO', 'plain INFO'],
      repeats: ['long', 'plain'],
      dead: ['long', 'plain'],
    })
    await sources.change('plain', { retentionDays: 14 })
    await sources.change('long', { retentionDays: 14 })
    await applications.change(short.id, { retentionDays: null })
    await after(13)
    t.equal((await stored(rig)).events.length, 3)
    await sources.change('long', { retentionDays: null })
    await after(14)
    await mutated(rig.store)
    t.same((await stored(rig)).events, ['long INFO'], 'the severity decides')
    await after(60)
    t.same(await stored(rig), { events: [], repeats: [], dead: [] }, 'and RETENTION_DAYS at last')
    const [left] = await rig.rows('SELECT sum(p1 + p2 + p3 + p4) AS n FROM series_1d')
    t.same(left, { n: 16 }, 'the rollups keep the counts')
  })
})

/** The schema without retention classes, in which events had a TTL. */
const before1018 = (): readonly Migration[] =>
  readMigrations()
    .filter(({ version }) => version < 1018)
    .map((migration) => ({
      ...migration,
      statements: migration.statements.map((sql) =>
        sql
          .replaceAll(/^ +kept_days UInt16.*\n/gm, '')
          .replaceAll(/ kept_days,/g, '')
          .replaceAll(', kept_days)\nORDER', ')\nORDER')
          .replace(', kept_days)\nSETTINGS', ')\nSETTINGS')
          .replace(
            /(ORDER BY \((?:ts, id|received_at, id|id, t, priority, source, arrival)\)\n)/,
            (_, order: string) =>
              `${order}TTL ${sql.includes('    arrival Date') ? 'arrival' : 'toDateTime(received_at)'} + INTERVAL {{rollup_days}} DAY\n`,
          ),
      ),
    }))

void test('a database from before the classes keeps its events, and loses them by row', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { store } = await createTestDatabase(server)
  t.teardown(() => store.close())
  const options = { numbers: { rollup_days: 91 }, log: quietLog }
  await migrate(store, { ...options, migrations: before1018() })
  const row = {
    is_new: 1,
    n: 1,
    ts: new Date().toISOString(),
    received_at: new Date().toISOString(),
  }
  await store.insertRows('landing', [{ ...row, id: 1, source: 'plain' }])
  const ttls = (): Promise<readonly unknown[]> =>
    store.query(
      {
        name: 'test',
        sql: `SELECT name FROM system.tables WHERE database = currentDatabase()
          AND name IN ('events', 'event_occurrences', 'dead_letters') AND create_table_query LIKE '% TTL %'`,
      },
      {},
    )
  t.equal((await ttls()).length, 3)
  await migrate(store, options)
  t.same(await ttls(), [])
  await migrate(store, options)
  await store.insertRows('landing', [
    { ...row, id: 2, source: 'short', kept_days: 3 },
    { ...row, id: 3, source: 'plain', is_new: 1 },
    { ...row, id: 2, is_new: 0, source: 'short', kept_days: 3 },
  ])
  const dropped: Dropped[] = []
  const short = { name: 'short', retentionDays: 3, applicationId: null } as never
  const sweep = createSweep({
    policy: createRetentionPolicy({
      config: { retentionDays: 60, retentionBySeverity: new Map() },
      sources: {
        list: () => [short],
        get: (name) => (name === 'short' ? short : undefined),
      },
      applications: { get: () => null },
    }),
    partitions: createPartitions(store),
    records: (await createEntities(store, { log: quietLog })).collection('retention', RetentionDoc),
    onDropped: (one) => dropped.push(one),
  })
  const rows = (sql: string) => store.query({ name: 'test', sql }, {})
  await sweep(Date.now() + 4 * DAY_MS)
  await mutated(store)
  t.same(await rows('SELECT id FROM events ORDER BY id'), [{ id: 1 }, { id: 3 }])
  t.same(await rows('SELECT count() AS n FROM event_occurrences'), [{ n: 0 }])
  await sweep(Date.now() + 61 * DAY_MS)
  t.same(await rows('SELECT count() AS n FROM events'), [{ n: 0 }])
  t.match(dropped, [
    { table: 'events', rows: null },
    { table: 'event_occurrences', rows: 1 },
    { table: 'events' },
  ])
})
