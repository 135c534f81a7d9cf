import { t as suite, test } from 'tap'
import { Analysis } from '../../../src/insights/analysis.js'
import {
  ANY_ANOMALY,
  createInsightStore,
  type AnomalyQuery,
  type StoredAnomaly,
} from '../../../src/insights/store.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema } from '../../support/landing.js'
import { HOUR_MS } from '../../../src/model/time.js'

const END = 20_000 * 24 + 12

const server = await startTestServer()
suite.teardown(() => server.stop())

async function database(t: { teardown(end: () => Promise<void>): void }) {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  return store
}

const stored = (id: string, hour: number, fields: Partial<StoredAnomaly> = {}): StoredAnomaly => ({
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
  gravity: 8,
  partOf: null,
  ...fields,
})

test('anomalies are listed by beginning, filtered, and shown in their state at a time', async (t) => {
  const insights = createInsightStore(await database(t))
  const all = [
    stored('a', END),
    stored('b', END),
    stored('c', END + 2, { source: 'db', score: 20 }),
  ]
  await insights.saveAnomalies(all, Date.now())
  await insights.saveAnomalies([stored('a', END, { observed: 99 })], Date.now() + 1000)
  const ids = async (query: Partial<AnomalyQuery>): Promise<string> =>
    (await insights.anomalies({ ...ANY_ANOMALY, limit: 100, ...query }))
      .map(({ id }) => id)
      .join('')
  t.equal(await ids({}), 'cba')
  t.equal(await ids({ after: { startedAtMs: END * HOUR_MS, id: 'b' } }), 'a')
  t.equal(await ids({ sources: ['db'] }), 'c')
  t.equal(await ids({ leastScore: 9 }), 'c')
  t.equal(await ids({ atMs: (END + 1) * HOUR_MS }), 'ba', 'c was not detected yet')
  const [then] = await insights.anomalies({
    ...ANY_ANOMALY,
    limit: 100,
    ids: ['a'],
    atMs: (END + 2) * HOUR_MS,
  })
  t.match(then, { state: 'ongoing', observed: 99 })
  t.same(
    (await insights.anomalies({ ...ANY_ANOMALY, limit: 100, ids: ['a'] }))[0],
    stored('a', END, { observed: 99 }),
  )
  await insights.removeSources(['web'])
  t.equal(await ids({}), 'c')
  await insights.clear()
  t.equal(await ids({}), '')
})

test('the snapshot of a time is the last one whose data end then or before', async (t) => {
  const insights = createInsightStore(await database(t))
  t.equal(await insights.snapshotAt(Date.now()), null)
  const save = (hour: number, generatedAtMs: number, series: number): Promise<void> => {
    const analysis = new Analysis({ startHour: hour - 24, hours: 24 }, 24)
    const facts = { dataAgeHours: 0, corrections: 0, agreeing: 0 }
    const snapshot = analysis.snapshot({ ...facts, anomalies: [], correlations: [] })
    return insights.saveSnapshot({ generatedAtMs, snapshot: { ...snapshot, series } })
  }
  const now = Date.now()
  await save(END, now, 1)
  await save(END, now + 5, 2)
  await save(END + 3, now + 9, 3)
  const at = async (hour: number): Promise<number | undefined> =>
    (await insights.snapshotAt(hour * HOUR_MS))?.snapshot.series
  t.equal(await at(END - 1), undefined)
  t.equal(await at(END + 2), 2, 'the newer one of the same hour')
  t.equal(await at(END + 9), 3)
  t.equal((await insights.snapshotAt(now))?.generatedAtMs, now + 9)
})
