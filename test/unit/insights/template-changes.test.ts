import { test } from 'tap'
import {
  changeOf,
  notableChanges,
  type TemplateSeries,
} from '../../../src/insights/template-changes.js'
import type { TemplateChange } from '../../../src/model/insights.js'
import { HOUR_MS } from '../../../src/model/time.js'

const HOURS = 40 * 24
const START = 20_000 * 24
const CONTEXT = { startHour: START, hours: HOURS, sourceFrom: 0 }

const template = (
  countAt: (hour: number) => number,
  fields: Partial<TemplateSeries> = {},
): TemplateSeries => ({
  templateId: '00000000000000aa',
  source: 'web',
  severity: 'INFO',
  counts: Float64Array.from({ length: HOURS }, (_, hour) => countAt(hour)),
  firstSeenMs: START * HOUR_MS,
  lastSeenMs: (START + HOURS) * HOUR_MS,
  ...fields,
})
const isLastDay = (hour: number): boolean => hour >= HOURS - 24
const kindOf = (series: TemplateSeries, context = CONTEXT): string | undefined =>
  changeOf(series, context)?.change

test('a template first seen in the last day of an older source is new', async (t) => {
  const firstSeenMs = (START + HOURS - 5) * HOUR_MS
  const series = template((hour) => (hour >= HOURS - 5 ? 2 : 0), { firstSeenMs })
  t.match(changeOf(series, CONTEXT), { change: 'new', count: 10 })
  t.equal(
    kindOf(series, { ...CONTEXT, sourceFrom: HOURS - 6 }),
    undefined,
    'of a new source all is',
  )
})

test('a template that comes back after a long silence has reappeared', async (t) => {
  const back = template((hour) => (hour < 10 * 24 || hour === HOURS - 3 ? 1 : 0))
  t.equal(kindOf(back), 'reappeared')
  const monthly = template((hour) =>
    hour % (13 * 24) === HOURS % (13 * 24) || hour === HOURS - 3 ? 1 : 0,
  )
  t.equal(kindOf(monthly), undefined, 'its pauses are as long as ever')
})

test('growth, decline and disappearance need significance, not just a ratio', async (t) => {
  t.equal(kindOf(template((hour) => (isLastDay(hour) ? 30 : 5))), 'grown')
  t.equal(kindOf(template((hour) => (isLastDay(hour) ? 1 : 20))), 'shrunk')
  t.equal(kindOf(template((hour) => (isLastDay(hour) ? 0 : 20))), 'vanished')
  t.equal(kindOf(template((hour) => (isLastDay(hour) ? 6 : 5))), undefined)
  t.equal(
    kindOf(template((hour) => (hour % 24 === 0 ? 1 : 0) + (hour === HOURS - 2 ? 3 : 0))),
    undefined,
  )
})

test('of many comparisons those are left out that chance brings about', async (t) => {
  const change = (chance: number, fields: Partial<TemplateChange> = {}): TemplateChange => ({
    change: 'grown',
    templateId: String(chance),
    source: 'web',
    severity: 'INFO',
    count: 10,
    expected: 1,
    chance,
    firstSeenMs: 0,
    lastSeenMs: 0,
    ...fields,
  })
  const changes = [change(1e-9), change(1e-5), change(1e-5, { change: 'new', severity: 'ERROR' })]
  const kinds = (compared: number): string[] =>
    notableChanges(changes, compared).map((each) => `${each.change} ${each.chance}`)
  t.same(kinds(100), ['new 0.00001', 'grown 1e-9', 'grown 0.00001'])
  t.same(kinds(100_000), ['new 0.00001', 'grown 1e-9'])
})
