import fc from 'fast-check'
import { test } from 'tap'
import { findAnomalies, type Finding } from '../../../src/insights/anomalies.js'
import { frameEndingAt, reportedFrom } from '../../../src/insights/frame.js'
import { generate } from '../../../bench/insights/generate.js'
import { seeded } from '../../../bench/insights/random.js'
import { simulate } from '../../../bench/insights/simulate.js'

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
  t.match(found, [{ kind: 'spike', from: AT, to: AT + 3, noticedAt: AT, isOngoing: false }])
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

/** The findings that a run at an hour reports, with hours from the beginning of the counts. */
function findAsOf(series: Float64Array, end: number): readonly Finding[] {
  const frame = frameEndingAt(MONDAY + end)
  const offset = frame.startHour - MONDAY
  const own = new Float64Array(frame.hours)
  own.set(series.subarray(Math.max(0, offset), end), Math.max(0, -offset))
  const options = { from: reportedFrom(frame), hours: frame.hours }
  const found = findAnomalies({ counts: own, startHour: frame.startHour }, options)
  return found.map((each) => ({
    ...each,
    from: each.from + offset,
    to: each.to + offset,
    noticedAt: each.noticedAt + offset,
    course: each.course.map((step) => ({ ...step, to: step.to + offset })),
  }))
}

test('a finding is a function of the counts up to its end, whenever it is asked for', async (t) => {
  const generated = generate({ seed: 5, series: 7, weeks: 11, quietWeeks: 4 })
  const outage = counts(11, (hour) => (hour >= AT && hour < AT + 20 * 24 ? 0 : daily(hour)))
  const growing = counts(11, (hour) => 20 * 1.6 ** Math.max(0, (hour - AT) / 24))
  let compared = 0
  for (const series of [...generated.map((each) => each.counts), outage, growing]) {
    const known = new Map<number, Finding>()
    const asked = fc.sample(fc.integer({ min: 6 * WEEK, max: series.length }), {
      numRuns: 16,
      seed: SEED,
    })
    for (const end of asked) {
      for (const one of findAsOf(series, end)) {
        // Asked when it ended, and by whoever asks later, it is the same.
        const final = findAsOf(series, one.to).find(
          ({ from, kind }) => from === one.from && kind === one.kind,
        )
        t.same(
          { ...final, isOngoing: false },
          { ...one, isOngoing: false },
          `${one.from} as of ${end}`,
        )
        const before = known.get(one.from * 2 + (one.kind === 'spike' ? 1 : 0))
        if (before?.to === one.to)
          t.same({ ...before, isOngoing: false }, { ...one, isOngoing: false })
        known.set(one.from * 2 + (one.kind === 'spike' ? 1 : 0), one)
        compared++
      }
    }
  }
  t.ok(compared > 40, `${compared}`)
})

test('the score grows while an outage lasts', async (t) => {
  const scores = [1, 3, 12, 48].map((hours) => {
    const series = counts(7, (hour) => (hour >= AT ? 0 : 30)).slice(0, AT + hours)
    return find(series)[0]?.score ?? 0
  })
  t.ok(
    scores.every((score, i) => i === 0 || score > (scores[i - 1] ?? 0)),
    scores.join(' '),
  )
  t.ok((scores[3] ?? 0) > 20, scores.join(' '))
})

test('a job that moved and a clock that was shifted are told once', async (t) => {
  const moved = counts(9, (hour) => 40 + (hour % 24 === (hour >= AT ? 9 : 2) ? 400 : 0))
  const found = find(moved)
  t.ok(found.length >= 1 && found.length <= 2)
  t.ok(
    found.every(({ from }) => from < AT + 24),
    JSON.stringify(found.map(({ from }) => from - AT)),
  )
  const shifted = find(counts(9, (hour) => daily(hour + (hour >= AT ? 3 : 0))))
  t.ok(
    shifted.length <= 4 && shifted.every(({ from }) => from < AT + 72),
    JSON.stringify(shifted.map(({ from }) => from - AT)),
  )
})

test('a job that runs some minutes early or late once is no anomaly, one that is left out is', async (t) => {
  const nightly = (): Float64Array =>
    Float64Array.from({ length: 7 * WEEK }, (_, hour) => (hour % 24 === 2 ? 300 + (hour % 7) : 0))
  const midnight = 5 * WEEK + 48
  const moved = (...hours: readonly number[]): readonly Finding[] => {
    const series = nightly()
    series.set(hours, midnight + 1)
    return find(series)
  }
  for (const hours of [
    [305, 0, 0],
    [160, 140],
    [40, 262],
    [0, 180, 110],
    [0, 0, 295],
  ])
    t.same(moved(...hours), [], hours.join(' '))
  t.match(moved(0, 0, 0), [{ kind: 'silence', noticedAt: midnight + 3 }])
  t.match(moved(0, 4000, 0), [{ kind: 'spike', from: midnight + 2 }])
})

test('a moved job of a template that has nothing else is told once, also when it lasts longer one day', async (t) => {
  const runs = [33, 21, 67, 14, 36, 28, 44, 47]
  const series = new Float64Array(7 * WEEK)
  const moves = 5 * WEEK + 4 * 24
  for (let midnight = 0; midnight < series.length; midnight += 24) {
    const at = midnight + (midnight >= moves ? 18 : 16)
    const first = runs[(midnight / 24) % runs.length] ?? 0
    series.set([first, 170 - first], at)
  }
  series[moves + WEEK + 20] = 4
  const found = find(series)
  t.ok(found.length > 0)
  t.same(
    found.filter(({ from }) => from >= moves + 24),
    [],
  )
})

test('a clock that was shifted is not told again after the next weekend', async (t) => {
  const day = [
    10, 10, 10, 10, 10, 10, 130, 260, 400, 500, 500, 500, 500, 500, 500, 450, 300, 150, 90, 50, 20,
    10, 10, 10,
  ]
  const office = (local: number): number =>
    Math.floor(local / 24) % 7 >= 5 ? 12 : (day[local % 24] ?? 0)
  for (const ahead of [0, 8, 13]) {
    const shifts = 5 * WEEK + 24 + 6
    const found = find(counts(9, (hour) => office(hour + ahead + (hour >= shifts ? 2 : 0))))
    t.ok(found.length > 0, `${ahead}`)
    t.same(
      found.filter(({ from }) => from >= shifts + 72),
      [],
      `${ahead}`,
    )
  }
})

test('simulated jobs that moved and clocks that were shifted are not told again after two days', async (t) => {
  for (const [seed, source, template] of [
    // The job's old hours end at midnight, and from then on the clock is taken to be shifted.
    [6, 3, 1],
    // Both one hour and two explain the first day after the shift.
    [701, 9, 5],
  ] as const) {
    const all = simulate({ seed, sources: 12, weeks: 11, quietWeeks: 5 })
    const { labels = [], templates = [] } = all[source] ?? {}
    const change = labels.findLast(({ kind }) => kind === 'job_moved' || kind === 'clock_shifted')
    const found = find(templates[template]?.counts ?? new Float64Array(0), 5 * WEEK)
    t.ok(change !== undefined && found.length > 0, `${seed}`)
    const { from = 0, to = 0 } = change ?? {}
    t.same(
      found.filter((each) => each.from >= to && each.from < from + 9 * 24),
      [],
      `${seed}`,
    )
  }
})

test('a weekend is that of the senders, wherever they are', async (t) => {
  for (const ahead of [9, -8]) {
    const office = (hour: number): number => {
      const local = hour + ahead + WEEK
      const isFree = Math.floor(local / 24) % 7 >= 5
      return isFree ? 20 : local % 24 >= 8 && local % 24 < 19 ? 400 : 40
    }
    t.same(find(counts(9, office)), [], `${ahead}`)
    // Half of what their Monday has, at a time that is a Sunday in UTC or the other way round.
    const monday = 6 * WEEK - ahead + 9
    const less = find(
      counts(9, (hour) => office(hour) * (hour >= monday && hour < monday + 6 ? 0.4 : 1)),
    )
    t.match(less, [{ kind: 'drop' }], `${ahead}`)
    t.ok(Math.abs((less[0]?.from ?? 0) - monday) <= 1, `${ahead}`)
  }
})

test('of a source with bursts a greater one is told but not sure, and one that lasts is sure', async (t) => {
  const random = seeded(7)
  const bursts = Array.from({ length: 9 * WEEK }, () =>
    random() < 0.03 ? 100 * (1 - random()) ** -0.7 : 0,
  )
  const withMore = (hours: number, more: number): readonly Finding[] => {
    const isIn = (hour: number): boolean => hour >= AT && hour < AT + hours
    const all = counts(9, (hour) => 5 + (bursts[hour] ?? 0) + (isIn(hour) ? more : 0))
    return find(all).filter(({ from, to }) => from < AT + hours && to > AT)
  }
  const [burst] = withMore(1, 8000)
  t.ok(burst !== undefined && burst.score < 7, JSON.stringify(burst?.score))
  const [lasting] = withMore(8, 300)
  t.ok(lasting !== undefined && lasting.score > 7, JSON.stringify(lasting?.score))
  // No hour of it is greater than an ordinary burst.
  const [row] = withMore(4, 60)
  t.match(row, { kind: 'spike', from: AT, noticedAt: AT + 2 })
  const others = find(counts(9, (hour) => 5 + (bursts[hour] ?? 0)))
  // Three of them in a row by chance are the one that lasts.
  const sure = others.filter(({ score }) => score >= 6)
  t.ok(sure.length <= 1 && others.length <= 6, JSON.stringify(others.map(({ score }) => score)))
})

test('the first weekend, and a nightly job in the first days, are no anomalies', async (t) => {
  const office = (hour: number): number =>
    (Math.floor(hour / 24) % 7 >= 5 ? 3 : 100) + (hour % 24 === 2 ? 300 : 0)
  for (const begins of [0, 3, 5, 6]) {
    const series = counts(4, (hour) => (hour < begins * 24 ? 0 : office(hour)))
    t.same(find(series, 0), [], `from day ${begins} on`)
  }
})

test('nothing, a single event and a short history give nothing', async (t) => {
  t.same(find(new Float64Array(6 * WEEK)), [])
  t.same(find(new Float64Array(6 * WEEK).fill(1, 900, 901)), [])
  t.same(find(new Float64Array(0)), [])
  t.same(find(counts(1, daily), 0), [])
})
