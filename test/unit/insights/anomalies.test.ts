import fc from 'fast-check'
import { test } from 'tap'
import { findAnomalies, type Finding } from '../../../src/insights/anomalies.js'
import { generate, seeded } from '../../../bench/insights/generate.js'

const MONDAY = 4 * 24
const WEEK = 168
const SEED = 20

/** Counts around a mean by hour, of a source with a noise of a tenth. */
function counts(weeks: number, meanAt: (hour: number) => number): Float64Array {
  const random = seeded(SEED)
  const gauss = (): number =>
    Array.from({ length: 12 }, random).reduce((sum, each) => sum + each, 0) - 6
  return Float64Array.from({ length: weeks * WEEK }, (_, hour) => {
    const mean = meanAt(hour)
    return Math.max(0, Math.round(mean + gauss() * Math.hypot(Math.sqrt(mean), mean / 10)))
  })
}

const find = (series: Float64Array, from = 4 * WEEK): readonly Finding[] =>
  findAnomalies({ counts: series, startHour: MONDAY }, { from, hours: series.length })

const daily = (hour: number): number => 500 + 300 * Math.cos((2 * Math.PI * (hour % 24)) / 24)
const AT = 5 * WEEK + 60

test('a daily rhythm with weekends and a weekly job is no anomaly', async (t) => {
  const office = (hour: number): number =>
    daily(hour) * (Math.floor(hour / 24) % 7 >= 5 ? 0.2 : 1) + (hour % WEEK === 150 ? 5000 : 0)
  t.same(find(counts(7, office)), [])
})

test('a burst is one spike with its span, and over when it is', async (t) => {
  const series = counts(7, (hour) => daily(hour) + (hour >= AT && hour < AT + 3 ? 4000 : 0))
  const found = find(series)
  t.match(found, [
    { kind: 'spike', direction: 'up', from: AT, to: AT + 3, noticedAt: AT, isOngoing: false },
  ])
  const [spike] = found
  t.ok(spike !== undefined && spike.observed > 12_000)
  t.ok(spike !== undefined && spike.range[0] <= spike.expected && spike.expected <= spike.range[1])
})

test('a source that stops is silent, and still is at the end', async (t) => {
  const end = AT + 5
  const series = counts(7, (hour) => (hour >= AT ? 0 : daily(hour))).slice(0, end)
  t.match(find(series), [{ kind: 'silence', from: AT, to: end, observed: 0, isOngoing: true }])
})

test('half of the usual for half a day is a drop', async (t) => {
  const series = counts(7, (hour) => daily(hour) * (hour >= AT && hour < AT + 12 ? 0.4 : 1))
  const [drop, ...others] = find(series)
  t.same(others, [])
  t.equal(drop?.kind, 'drop')
  t.ok(drop !== undefined && drop.from <= AT + 1 && drop.to >= AT + 10 && drop.to <= AT + 14)
})

test('a rare template is noticed missing by the sum of many hours', async (t) => {
  const series = counts(7, (hour) => (hour >= AT ? 0 : 3)).slice(0, AT + 24)
  t.match(find(series), [{ kind: 'silence', isOngoing: true }])
})

test('anomalies with a short gap between them are one', async (t) => {
  const isOut = (hour: number): boolean => [0, 1, 4, 5].includes(hour - AT)
  t.match(find(counts(7, (hour) => daily(hour) + (isOut(hour) ? 4000 : 0))), [
    { from: AT, to: AT + 6 },
  ])
})

test('a level shift is found once and is the new level after some days', async (t) => {
  const found = find(counts(9, (hour) => daily(hour) * (hour >= AT ? 3 : 1)))
  t.equal(found[0]?.from, AT)
  t.ok(
    found.every(({ to }) => to <= AT + 5 * 24),
    JSON.stringify(found),
  )
})

test('the running hour counts when it is too much already, never for being too little', async (t) => {
  const whole = counts(7, daily)
  const options = { from: 4 * WEEK, hours: whole.length }
  const withRunning = (count: number): Float64Array => Float64Array.from([...whole, count])
  const judge = (count: number): readonly Finding[] =>
    findAnomalies({ counts: withRunning(count), startHour: MONDAY }, options)
  t.same(judge(0), [])
  t.match(judge(9000), [{ kind: 'spike', from: whole.length, isOngoing: true }])
})

test('what is found of an hour does not change when more hours come', async (t) => {
  const [web, office, machine] = generate({ seed: 5, series: 3, weeks: 9, quietWeeks: 4 })
  for (const { counts: series } of [web, office, machine].filter((each) => each !== undefined)) {
    const all = find(series)
    t.ok(all.length > 0)
    fc.assert(
      fc.property(fc.integer({ min: 5 * WEEK, max: series.length }), (end) => {
        const before = find(series.slice(0, end))
        const ended = (each: Finding): boolean => each.to + 24 < end
        t.same(before.filter(ended), all.filter(ended))
      }),
      { numRuns: 8 },
    )
  }
})

test('nothing, a single event and a short history give nothing', async (t) => {
  t.same(find(new Float64Array(6 * WEEK)), [])
  t.same(find(new Float64Array(6 * WEEK).fill(1, 900, 901)), [])
  t.same(find(new Float64Array(0)), [])
  t.same(find(counts(1, daily), 0), [])
})
