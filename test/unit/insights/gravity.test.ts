import { test } from 'tap'
import { usualHours } from '../../../src/insights/explanation.js'
import { gravityOf } from '../../../src/insights/gravity.js'
import { newErrorsOf, notableErrors } from '../../../src/insights/new-errors.js'
import { HOUR_MS } from '../../../src/model/time.js'

const WEEK = 168
const change = {
  observed: 0,
  expected: 60,
  score: 8,
  scope: 'source',
  severity: null,
  startedAtMs: 0,
  endedAtMs: HOUR_MS,
} as const

test('gravity weighs severity, scope, size and how long a spike lasts', async (t) => {
  const silent = gravityOf({ ...change, kind: 'silence' })
  t.equal(silent, 16)
  t.ok(gravityOf({ ...change, kind: 'drop', observed: 38 }) < silent, 'a small drop')
  t.ok(gravityOf({ ...change, kind: 'silence', scope: 'template' }) < silent)
  const critical = { ...change, scope: 'template', severity: 'CRITICAL', score: 2 } as const
  t.ok(gravityOf({ ...critical, kind: 'new', observed: 1, expected: 0.1 }) >= 10)
  t.equal(gravityOf({ ...critical, kind: 'silence' }), 1)
  const errors = { ...change, kind: 'spike', severity: 'ERROR', scope: 'severity' } as const
  t.equal(gravityOf({ ...errors, observed: 200 }), 11.2)
  t.equal(gravityOf({ ...errors, observed: 200, endedAtMs: 2 * HOUR_MS }), 16)
})

test('a template is new to two weeks of a known source, unless there are new ones all the time', async (t) => {
  const sourceCounts = new Float64Array(5 * WEEK).fill(10)
  const at = 4 * WEEK
  const found = (hours: readonly number[], name = 'a') => {
    const counts = new Float64Array(5 * WEEK)
    for (const hour of hours) counts[hour] = 3
    const series = {
      templateId: name,
      source: 'web',
      severity: 'ERROR',
      counts,
      sourceCounts,
    } as const
    return newErrorsOf(series, 2 * WEEK, 5 * WEEK)
  }
  t.match(found([at, at + 2]), [{ finding: { kind: 'new', from: at, to: at + 3, observed: 6 } }])
  t.same(
    found([at - WEEK, at - WEEK + 100, at]).map(({ finding }) => finding.from),
    [at - WEEK],
  )
  const many = [1, 2, 3, 4, 5].flatMap((i) => found([at + i * 20], `${i}`))
  t.equal(notableErrors(many).length, 4, 'the fifth is usual')
  const young = new Float64Array(5 * WEEK).fill(10, at - 30)
  const counts = new Float64Array(5 * WEEK).fill(1, at)
  const early = {
    templateId: 'a',
    source: 'web',
    severity: 'ERROR',
    counts,
    sourceCounts: young,
  } as const
  t.same(newErrorsOf(early, 2 * WEEK, 5 * WEEK), [], 'everything of a new source is new')
})

test('an anomaly is compared with the same hours of weeks, else of days, else with those before', async (t) => {
  const from = 1000 * WEEK
  t.same(
    usualHours(from, from + 2, 0),
    [3, 2, 1].flatMap((i) => [from - i * WEEK, from - i * WEEK + 1]),
  )
  t.same(usualHours(from, from + 1, from - 50), [from - 48, from - 24])
  t.same(
    usualHours(from, from + 30, from - 60),
    Array.from({ length: 30 }, (_, i) => from - 48 + i),
  )
  t.same(
    usualHours(from, from + 2, from - 5),
    [6, 5, 4, 3, 2, 1].map((i) => from - i),
  )
})
