import { t as suite, test, type Test } from 'tap'
import { createMemory } from '../../../src/insights/counts.js'
import { runInsights, type RunParts } from '../../../src/insights/run.js'
import { SliceClock } from '../../../src/insights/slice-clock.js'
import type { InsightSnapshot } from '../../../src/model/insights.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createInsightSeries, type InsightSeries } from '../../../src/insights/stored-series.js'
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

/** Hours that were read, and by which statements. */
interface Watched {
  readonly parts: (memory?: ReturnType<typeof createMemory>) => RunParts
  hoursRead(): number
}

function watch(store: Store): Watched {
  const plain = createInsightSeries(store, { redirects: () => [] })
  let read = 0
  const series: InsightSeries = {
    ...plain,
    sources: (span, range) => {
      read += span.until - span.from
      return plain.sources(span, range)
    },
    templates: (span, range) => {
      read += span.until - span.from
      return plain.templates(span, range)
    },
  }
  return {
    parts: (memory = createMemory()) => ({
      series,
      isWatched: () => true,
      canonical: (id) => id,
      isCorrected: () => false,
      agreement: () => ({ corrections: 0, agreeing: 0 }),
      memory,
      clock: new SliceClock([]),
    }),
    hoursRead: () => {
      const hours = read
      read = 0
      return hours
    },
  }
}

/** A database that has no events any more, only their rollups: whatever reads events fails. */
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

test('a look finds the same with and without what is kept from the looks before, and reads no events', async (t) => {
  const store = await withoutEvents(t)
  const { parts, hoursRead } = watch(store)
  const memory = createMemory()
  const look = async (endHour: number, title: string): Promise<InsightSnapshot> => {
    const moment = { endHour, withRunning: true, nowHour: endHour }
    hoursRead()
    const { snapshot } = await runInsights(parts(memory), moment)
    const hours = hoursRead()
    const fresh = await runInsights(parts(), moment)
    t.same(snapshot, fresh.snapshot, title)
    t.comment(`${title}: ${hours} hours read, ${hoursRead()} without memory`)
    readHours = hours
    return snapshot
  }
  let readHours = 0
  const first = await look(END - 1, 'the first look')
  t.ok(first.ongoing > 0 && first.over > 0, 'there is something to find')
  const burst = first.anomalies.find(
    ({ scope, source }) => scope === 'severity' && source === 'api',
  )
  const cause = first.correlations.find(({ anomalyId }) => anomalyId === burst?.id)
  t.match(cause?.templates, [{ name: templateOf('api', 1), explains: 1 }], 'and to explain')
  t.match(cause?.hosts[0], { name: 'api-2', before: 0, during: 900, shareBefore: 0 })
  const paged = await runInsights(parts(createMemory({ sources: 2, templates: 3 })), {
    endHour: END - 1,
    withRunning: true,
    nowHour: END - 1,
  })
  t.same(paged.snapshot, first, 'of more series than are kept, page by page is looked at')
  await look(END - 1, 'nothing came')
  t.equal(readHours, 0, 'nothing is read again')
  await insertLanding(store, [row(END - 1, 'web', { n: 7 })])
  await look(END - 1, 'events of the running hour came')
  t.equal(readHours, 2, 'that hour of both rollups is read')
  await look(END, 'the hour turned')
  await insertLanding(store, [
    row(END - 200, 'web', { n: 5000 }),
    row(END - 200, 'db', { n: -2, priority: 'P4' }),
    row(END - 200, 'db', { n: 2, priority: 'P1' }),
  ])
  await look(END, 'late events and a correction')
  t.equal(readHours, 2, 'the hour they are of is read')
  await insertLanding(store, [row(END - 26 * 24, 'old', { n: 40 })])
  await look(END, 'a source with events of weeks ago')
  for (const table of ['series_1h', 'template_stats', 'template_totals'])
    await store.command(`DELETE FROM ${table} WHERE source = 'mail'`)
  const without = await look(END, 'a deleted source')
  t.notOk(without.anomalies.some(({ source }) => source === 'mail'))
  await insertLanding(store, [row(END + 14, 'web', { n: 70 })])
  await look(END + 14, 'a day passed')
  await look(END + 40 * 24, 'nothing came for weeks')
})

test('two rollups that were read half way are read again', async (t) => {
  const store = await withoutEvents(t)
  const { parts, hoursRead } = watch(store)
  const memory = createMemory()
  const moment = { endHour: END, withRunning: true, nowHour: END }
  await store.command(`DELETE FROM template_stats WHERE t = toDateTime(${(END - 5) * 3600})`)
  await runInsights(parts(memory), moment)
  hoursRead()
  const late = row(END - 5, 'api', { n: 900, templateId: templateOf('api', 1) })
  await insertLanding(store, [
    late,
    { ...late, n: -900 },
    ...SOURCES.map((name) => row(END - 5, name)),
  ])
  await store.command(`DELETE FROM series_1h WHERE t = toDateTime(${(END - 5) * 3600})`)
  const before = await runInsights(parts(memory), moment)
  t.equal(hoursRead(), 2, 'the hour whose sums differ')
  t.same(before.snapshot, (await runInsights(parts(), moment)).snapshot)
  hoursRead()
  await runInsights(parts(memory), moment)
  await runInsights(parts(memory), moment)
  hoursRead()
  await runInsights(parts(memory), moment)
  t.equal(hoursRead(), 0, 'what does not add up for good is kept as it is')
})
