import { t as suite, test } from 'tap'
import { createMemory } from '../../../src/insights/counts.js'
import { runInsights, type RunParts } from '../../../src/insights/run.js'
import { SliceClock } from '../../../src/insights/slice-clock.js'
import { createInsightSeries } from '../../../src/insights/stored-series.js'
import { createInsightArchive, type AnomalyQuery } from '../../../src/insights/store.js'
import type { KeptAnomaly } from '../../../src/insights/store.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema, insertLanding, type LandingRow } from '../../support/landing.js'
import { HOUR_MS } from '../../../src/model/time.js'

const END = 20_000 * 24 + 12
const STEADY = '00000000000000aa'
const MERGED = '00000000000000bb'
const FAILURE = '00000000000000cc'

const server = await startTestServer()
suite.teardown(() => server.stop())

async function database(t: { teardown(end: () => Promise<void>): void }) {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  return store
}

const row = (hour: number, fields: Partial<LandingRow>): LandingRow => ({
  id: 1,
  isNew: true,
  n: 1,
  receivedMs: Date.now(),
  tsMs: hour * HOUR_MS + 1000,
  source: 'web',
  severity: 'INFO',
  priority: 'P4',
  confidence: 0.9,
  modelVersion: 'm',
  templateId: STEADY,
  ...fields,
})

/** Twenty days of a web server; in the last three hours a failure that was never seen before. */
function rows(): LandingRow[] {
  const all: LandingRow[] = []
  for (let hour = END - 20 * 24; hour < END; hour++) {
    all.push(row(hour, { n: 90 + (hour % 7) }), row(hour, { n: 10, templateId: MERGED }))
    if (hour >= END - 3)
      all.push(row(hour, { n: 70, severity: 'ERROR', priority: 'P2', templateId: FAILURE }))
  }
  all.push(row(END, { n: 400, source: 'gone' }))
  return all
}

const partsOf = (
  store: Awaited<ReturnType<typeof database>>,
  memory = createMemory(),
): RunParts => ({
  series: createInsightSeries(store, {
    redirects: () => [{ from: MERGED, into: STEADY }],
  }),
  isWatched: (source: string) => source === 'web',
  canonical: (id: string) => (id === MERGED ? STEADY : id),
  isCorrected: () => false,
  agreement: () => ({ corrections: 0, agreeing: 0 }),
  memory,
  clock: new SliceClock([]),
})

test('a failure never seen before is found, with its template as the cause', async (t) => {
  const store = await database(t)
  await insertLanding(store, rows())
  const moment = { endHour: END, withRunning: true, nowHour: END }
  const { snapshot, anomalies } = await runInsights(partsOf(store), moment)
  const errors = anomalies.find(({ scope }) => scope === 'severity')
  t.match(errors, { severity: 'ERROR', kind: 'spike', state: 'ongoing', observed: 210 })
  t.equal(errors?.startedAtMs, (END - 3) * HOUR_MS)
  const cause = snapshot.correlations.find(({ anomalyId }) => anomalyId === errors?.id)
  t.match(cause?.templates, [{ name: FAILURE, before: 0, during: 70, explains: 1 }])
  t.match(snapshot.templates, [{ change: 'new', templateId: FAILURE, count: 210 }])
  t.notOk(
    anomalies.some(({ source }) => source === 'gone'),
    'sources that are not watched are left out',
  )
  const again = await runInsights(partsOf(store), moment)
  t.same(again.snapshot, snapshot, 'the same data give the same snapshot')
})

test('merged templates are one series', async (t) => {
  const store = await database(t)
  await insertLanding(store, rows())
  const series = createInsightSeries(store, { redirects: () => [{ from: MERGED, into: STEADY }] })
  const span = {
    source: 'web',
    severity: 'INFO' as const,
    before: END - 4,
    from: END - 2,
    until: END,
  }
  const [part, ...others] = await series.parts(span)
  t.equal(part?.name, STEADY)
  t.same(
    others.filter(({ during }) => during > 0),
    [],
  )
  t.equal(await series.latestHour(END), END - 1)
  t.equal(await series.latestHour(END - 30 * 24), null)
})

const ANY: AnomalyQuery = {
  atMs: Number.MAX_SAFE_INTEGER,
  sinceMs: 0,
  after: null,
  states: [],
  scopes: [],
  kinds: [],
  sources: [],
  severities: [],
  templates: [],
  ids: [],
  leastScore: 0,
  wholeOnly: false,
  limit: 100,
}

const kept = (id: string, hour: number, fields: Partial<KeptAnomaly> = {}): KeptAnomaly => ({
  id,
  scope: 'source',
  kind: 'spike',
  state: 'over',
  source: 'web',
  severity: null,
  templateId: null,
  startedAtMs: hour * HOUR_MS,
  endedAtMs: (hour + 4) * HOUR_MS,
  detectedAtMs: (hour + 1) * HOUR_MS,
  observed: 10,
  expected: 1.5,
  expectedLeast: 0,
  expectedMost: 4,
  score: 8,
  partOf: null,
  alertedAtMs: 0,
  ...fields,
})

test('anomalies are listed by beginning, filtered, and shown as they were at a moment', async (t) => {
  const archive = createInsightArchive(await database(t))
  const all = [kept('a', END), kept('b', END), kept('c', END + 2, { source: 'db', score: 20 })]
  await archive.saveAnomalies(all, Date.now())
  await archive.saveAnomalies([kept('a', END, { observed: 99 })], Date.now() + 1000)
  const ids = async (query: Partial<AnomalyQuery>): Promise<string> =>
    (await archive.anomalies({ ...ANY, ...query })).map(({ id }) => id).join('')
  t.equal(await ids({}), 'cba')
  t.equal(await ids({ after: { startedAtMs: END * HOUR_MS, id: 'b' } }), 'a')
  t.equal(await ids({ sources: ['db'] }), 'c')
  t.equal(await ids({ leastScore: 9 }), 'c')
  t.equal(await ids({ atMs: (END + 1) * HOUR_MS }), 'ba', 'c was not detected yet')
  const [then] = await archive.anomalies({ ...ANY, ids: ['a'], atMs: (END + 2) * HOUR_MS })
  t.match(then, { state: 'ongoing', observed: 99 })
  t.same((await archive.anomalies({ ...ANY, ids: ['a'] }))[0], kept('a', END, { observed: 99 }))
  await archive.removeSources(['web'])
  t.equal(await ids({}), 'c')
  await archive.clear()
  t.equal(await ids({}), '')
})

test('the snapshot of a moment is the last one at or before it', async (t) => {
  const archive = createInsightArchive(await database(t))
  t.equal(await archive.snapshotAt(Date.now()), null)
  const save = (hour: number, generatedAtMs: number, json: string): Promise<void> =>
    archive.saveSnapshot(hour * HOUR_MS, { generatedAtMs, json })
  const now = Date.now()
  await save(END, now, '"first"')
  await save(END, now + 5, '"again"')
  await save(END + 3, now + 9, '"later"')
  const at = async (hour: number): Promise<string | undefined> =>
    (await archive.snapshotAt(hour * HOUR_MS))?.json
  t.equal(await at(END - 1), undefined)
  t.equal(await at(END + 2), '"again"')
  t.equal(await at(END + 9), '"later"')
})
