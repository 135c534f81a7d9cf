import { t as suite, test, type Test } from 'tap'
import { agreementOf } from '../../../src/insights/ml-health.js'
import { runInsights, type RunDeps } from '../../../src/insights/run.js'
import { SliceClock } from '../../../src/insights/slice-clock.js'
import { toKpiSnapshot } from '../../../src/events/kpi-snapshot.js'
import { PriorityModel } from '../../../src/priority/model.js'
import type { Priority } from '../../../src/model/event.js'
import type { MlHealth } from '../../../src/model/insights.js'
import { createRollups } from '../../../src/insights/rollups.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema, insertLanding, type LandingRow } from '../../support/landing.js'
import { HOUR_MS } from '../../../src/model/time.js'

const END = 20_000 * 24 + 12

const server = await startTestServer()
suite.teardown(() => server.stop())

const row = (hour: number, fields: Partial<LandingRow> = {}): LandingRow => ({
  id: 1,
  isNew: true,
  n: 100,
  receivedMs: Date.now(),
  tsMs: hour * HOUR_MS + 1000,
  source: 'web',
  severity: 'INFO',
  priority: 'P4',
  confidence: 0.9,
  modelVersion: 'm',
  templateId: '00000000000000aa',
  ...fields,
})

interface Change {
  readonly hoursLater?: number
  readonly agreement?: RunDeps['agreement']
  readonly isCorrected?: boolean
}

interface Scores {
  readonly health: MlHealth
  /** The global health score of the KPIs when all else is well. */
  readonly score: number
}

const agreed = { corrections: 0, agreeing: 0 }

/** Twenty days of a source that is well, and other rows beside them. */
async function open(
  t: Test,
  rows: readonly LandingRow[],
): Promise<(change?: Change) => Promise<Scores>> {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const days = Array.from({ length: 20 * 24 }, (_, i) => row(END - 1 - i))
  await insertLanding(store, [...days, ...rows])
  return async ({ hoursLater = 0, agreement = () => agreed, isCorrected = false } = {}) => {
    const { snapshot } = await runInsights(
      {
        rollups: createRollups(store, { redirects: () => [] }),
        isWatched: () => true,
        directory: {
          describe: (id) => ({ id, text: id, override: isCorrected ? 'P3' : null }),
          redirects: () => [],
        },
        agreement,
        clock: new SliceClock([]),
      },
      { endHour: END, withRunning: true, nowHour: END + hoursLater },
    )
    return { health: snapshot.health, score: scoreWith(snapshot.health.score) }
  }
}

const QUIET = { events: 0, eventsBefore: 0, errors: 0, errorsBefore: 0 }

const scoreWith = (mlHealth: number): number =>
  toKpiSnapshot(
    {
      stored: {
        events: 0,
        occurrences: 0,
        errors: 0,
        routine: 0,
        unsure: 0,
        routineOccurrences: 0,
      },
      deadLetters: { total: 0, lastDay: 0 },
      lastMinute: { events: 0, errors: 0 },
      last5Minutes: 0,
      hour: QUIET,
      day: { ...QUIET, criticals: 0, p1: 0 },
      sparkline: [0, 0, 0, 0, 0, 0, 0],
      sources: new Map(),
      topErrors: [],
    },
    {
      applications: [],
      alerts: { open: 0, recent: [] },
      templatesKnown: 0,
      textOfTemplate: () => null,
      mlHealth,
    },
  ).global_health_score

test('each input of ML health moves the global health score', async (t) => {
  const well = await open(t, [])
  t.match(await well(), {
    score: 100,
    health: { score: 1, drift: 0, lowConfidence: 0, agreement: null },
  })

  const hours = Array.from({ length: 24 }, (_, i) => END - 1 - i)
  const unsure = hours.map((hour) => row(hour, { confidence: 0.1 }))
  const doubtful = await open(t, unsure)
  const low = await doubtful()
  t.match(low.health, { lowConfidence: 0.5, drift: 0, score: 0.8 })
  t.equal(low.score, 96, 'half of the events have a low confidence')
  const settled = await doubtful({ isCorrected: true })
  t.equal(settled.score, 100, 'what a person has settled is not unsure')

  const strange = hours
    .slice(0, 20)
    .map((hour, i) => row(hour, { templateId: `00000000000001${(i + 16).toString(16)}`, n: 115 }))
  const drifted = await (await open(t, strange))()
  t.match(drifted.health, { drift: 0.5, score: 0.8 })
  t.equal(drifted.score, 96, 'half of the messages are of templates never seen before')

  const stale = await well({ hoursLater: 30 })
  t.match(stale.health, { dataAgeHours: 30, score: 0.9 })
  t.equal(stale.score, 98, 'nothing came for more than a day')
  t.equal((await well({ hoursLater: 1 })).score, 100, 'an hour is nothing')

  const disputed = await well({ agreement: () => ({ corrections: 9, agreeing: 3 }) })
  t.match(disputed.health, { corrections: 9, agreement: 0.333, score: 0.85 })
  t.equal(disputed.score, 97, 'people corrected what the model still gets wrong')

  const flood = unsure.map((each) => ({ ...each, n: 100_000, priority: 'P1' as const }))
  t.equal((await (await open(t, flood))()).health.score, 1, 'P1 moves none of the shares')
})

function agreementAfter(corrections: readonly (readonly [string, Priority])[]) {
  const model = new PriorityModel()
  for (const [i, [text, priority]] of corrections.entries())
    model.learn(i + 1, 'INFO', priority, text)
  return agreementOf(model)
}

test('agreement is how often the model by itself gives what people gave', async (t) => {
  t.same(agreementAfter([]), agreed)
  const learned = agreementAfter([['certificate of the vault expires', 'P2']])
  t.match(learned, { corrections: 1 })
  const words = 'alpha beta gamma delta epsilon zeta eta theta'.split(' ')
  const same = words.map((word) => `${word} was rotated by the keeper`)
  const opposed = agreementAfter(same.map((text, i) => [text, i % 2 === 0 ? 'P1' : 'P4']))
  const united = agreementAfter(same.map((text) => [text, 'P3']))
  t.equal(opposed.corrections, same.length)
  t.equal(united.agreeing, same.length, 'of one mind')
  t.ok(opposed.agreeing < same.length, `${opposed.agreeing} of ${same.length} that contradict`)
})
