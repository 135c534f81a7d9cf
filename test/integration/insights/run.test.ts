import { t as suite, test, type Test } from 'tap'
import { runInsights, type RunDeps, type RunTime } from '../../../src/insights/run.js'
import { SliceClock } from '../../../src/insights/slice-clock.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createRollups } from '../../../src/insights/rollups.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema, insertLanding, seeded, type LandingRow } from '../../support/landing.js'
import { HOUR_MS } from '../../../src/model/time.js'

const END = 20_000 * 24 + 12
const DAYS = 30
const SEED = 7
const SOURCES = ['api', 'db', 'mail', 'web', 'old']

const server = await startTestServer()
suite.teardown(() => server.stop())

const templateOf = (source: string, i: number): string =>
  (SOURCES.indexOf(source) * 16 + i + 1).toString(16).padStart(16, '0')

const row = (hour: number, source: string, fields: Partial<LandingRow> = {}): LandingRow => ({
  id: 1,
  isNew: true,
  n: 1,
  receivedMs: Date.now(),
  tsMs: hour * HOUR_MS + 1000,
  source,
  severity: 'INFO',
  priority: 'P4',
  confidence: 0.9,
  modelVersion: 'm',
  templateId: templateOf(source, 0),
  ...fields,
})

/** Four sources with a rhythm, errors, an outage of one and a burst of another. */
function history(): readonly LandingRow[] {
  const random = seeded(SEED)
  const rows: LandingRow[] = []
  for (let hour = END - DAYS * 24; hour < END; hour++)
    for (const source of SOURCES.slice(0, 4)) {
      if (source === 'mail' && hour >= END - 30 && hour < END - 20) continue
      const wave = 40 + 25 * Math.cos((hour % 24) / 4) + 10 * random()
      const host = `${source}-1`
      rows.push(row(hour, source, { n: Math.round(wave), host }))
      const errors = {
        severity: 'ERROR',
        priority: 'P2',
        templateId: templateOf(source, 1),
      } as const
      rows.push(row(hour, source, { ...errors, host, n: Math.round(3 + 2 * random()) }))
      if (source === 'api' && hour >= END - 6)
        rows.push(row(hour, source, { ...errors, host: 'api-2', n: 900 }))
    }
  return rows
}

const WEB_STEADY = templateOf('web', 0)
const WEB_MERGED = templateOf('web', 5)
const MERGES = { redirects: () => [{ from: WEB_MERGED, into: WEB_STEADY }] }

const depsOf = (store: Store, deps: Partial<RunDeps> = {}): RunDeps => ({
  rollups: createRollups(store, MERGES),
  isWatched: (source) => source !== 'gone',
  directory: {
    ...MERGES,
    describe: (id) => ({ id: id === WEB_MERGED ? WEB_STEADY : id, text: id, override: null }),
  },
  agreement: () => ({ corrections: 0, agreeing: 0 }),
  clock: new SliceClock([]),
  ...deps,
})

const NOW: RunTime = { endHour: END, withRunning: true, nowHour: END }

/** A database of rollups without the tables of events: a query that reads them fails. */
async function withoutEvents(t: Test): Promise<Store> {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  for (const table of ['events', 'event_occurrences']) {
    await store.command(`DROP TABLE ${table}_mv`)
    await store.command(`DROP TABLE ${table}`)
  }
  await insertLanding(store, history())
  return store
}

test('a run finds anomalies and what explains them, and reads no events', async (t) => {
  const store = await withoutEvents(t)
  const { snapshot, anomalies } = await runInsights(depsOf(store), NOW)
  t.ok(snapshot.ongoing > 0 && snapshot.over > 0)
  const burst = anomalies.find(({ scope, source }) => scope === 'severity' && source === 'api')
  t.match(burst, { severity: 'ERROR', kind: 'spike', state: 'ongoing' })
  t.equal(burst?.startedAtMs, (END - 6) * HOUR_MS)
  const cause = snapshot.correlations.find(({ anomalyId }) => anomalyId === burst?.id)
  t.match(cause?.templates, [{ name: templateOf('api', 1), explains: 1 }])
  t.match(cause?.hosts[0], { name: 'api-2', before: 0, during: 900, shareBefore: 0 })
  t.ok(
    anomalies.some(
      ({ scope, source, kind }) => scope === 'source' && source === 'mail' && kind === 'silence',
    ),
  )
  t.same((await runInsights(depsOf(store), NOW)).snapshot, snapshot, 'the same again')
  const pageSizes = { sources: 2, templates: 3 }
  const paged = await runInsights(depsOf(store, { pageSizes }), NOW)
  t.same(paged.snapshot, snapshot, 'the same page by page')
  const unpaired = { sources: 1, templates: 1 }
  t.same((await runInsights(depsOf(store, { pageSizes: unpaired }), NOW)).snapshot, snapshot)
})

test('late events, corrections and deleted sources are in the next run', async (t) => {
  const store = await withoutEvents(t)
  const run = async (endHour = END) =>
    await runInsights(depsOf(store), { endHour, withRunning: true, nowHour: endHour })
  const first = await run()
  await insertLanding(store, [
    row(END - 200, 'db', { n: -2, priority: 'P4' }),
    row(END - 200, 'db', { n: 2, priority: 'P1' }),
  ])
  t.same((await run()).anomalies, first.anomalies, 'a correction changes no counts')
  await insertLanding(store, [row(END - 60, 'web', { n: 5000 })])
  const late = (await run()).anomalies.find(
    ({ source, startedAtMs }) => source === 'web' && startedAtMs === (END - 60) * HOUR_MS,
  )
  t.match(late, { kind: 'spike', state: 'over' })
  for (const table of ['series_1h', 'template_stats', 'template_totals'])
    await store.command(`DELETE FROM ${table} WHERE source = 'mail'`)
  t.notOk((await run()).anomalies.some(({ source }) => source === 'mail'))
  await run(END + 40 * 24)
})

test('merged templates are one series, and sources that are not watched are left out', async (t) => {
  const store = await withoutEvents(t)
  const merged = Array.from({ length: 20 * 24 }, (_, i) =>
    row(END - 1 - i, 'web', { n: 7, templateId: WEB_MERGED }),
  )
  await insertLanding(store, merged)
  const { snapshot } = await runInsights(depsOf(store), NOW)
  await insertLanding(store, [row(END - 1, 'gone', { n: 4000, templateId: '00000000000000ff' })])
  const again = await runInsights(depsOf(store), NOW)
  t.same(again.snapshot, snapshot)
  const unmerged = { describe: () => null, redirects: () => [] }
  const apart = await runInsights(depsOf(store, { directory: unmerged }), NOW)
  t.equal(apart.snapshot.series, snapshot.series + 1)

  const rollups = createRollups(store, MERGES)
  const span = { earlier: [END - 4, END - 3], from: END - 2, until: END }
  const counted = await rollups.templateContributions({ ...span, source: 'web', severity: 'INFO' })
  t.same(
    counted.map(({ name }) => name),
    [WEB_STEADY],
  )
  t.equal(await rollups.latestHour(END), END - 1)
  t.equal(await rollups.latestHour(END - 31 * 24), null)
})
