import * as fc from 'fast-check'
import { test } from 'tap'
import { toKpiSnapshot, type KpiSurroundings } from '../../../src/events/kpi-snapshot.js'
import type { KpiCounts } from '../../../src/model/kpi.js'

const QUIET = { events: 0, eventsBefore: 0, errors: 0, errorsBefore: 0 }
const EMPTY: KpiCounts = {
  stored: { events: 0, occurrences: 0, errors: 0, routine: 0, unsure: 0, routineOccurrences: 0 },
  deadLetters: { total: 0, lastDay: 0 },
  lastMinute: { events: 0, errors: 0 },
  last5Minutes: 0,
  hour: QUIET,
  day: { ...QUIET, criticals: 0, p1: 0 },
  sparkline: [0, 0, 0, 0, 0, 0, 0],
  sources: new Map(),
  topErrors: [],
}
const ALONE: KpiSurroundings = {
  applications: [],
  alerts: { open: 0, recent: [] },
  templatesKnown: 0,
  textOfTemplate: () => null,
  mlHealth: null,
}

void test('nothing stored is a healthy state without figures', async (t) => {
  t.same(toKpiSnapshot(EMPTY, ALONE), {
    unique_events: 0,
    total_occurrences: 0,
    dedup_rate_pct: 0,
    success_rate_pct: 100,
    dlq_count: 0,
    error_events: 0,
    events_last_minute: 0,
    errors_last_minute: 0,
    events_last_5min: 0,
    events_per_second: 0,
    criticals_24h: 0,
    templates_known: 0,
    total_applications: 0,
    active_applications: 0,
    inactive_applications: 0,
    critical_applications: 0,
    open_alerts: 0,
    global_health_score: 100,
    top_critical_apps: [],
    recent_alerts: [],
    top_unstable_apps: [],
    top_errors: [],
    sparkline: [0, 0, 0, 0, 0, 0, 0],
    trends: { events: { '1h': 0, '24h': 0 }, errors: { '1h': 0, '24h': 0 } },
  })
})

void test('rates have two decimals and are made of the totals', async (t) => {
  const snapshot = toKpiSnapshot(
    {
      ...EMPTY,
      stored: { ...EMPTY.stored, events: 2, occurrences: 3, errors: 1 },
      deadLetters: { total: 4, lastDay: 2 },
      lastMinute: { events: 100, errors: 7 },
      last5Minutes: 300,
      hour: { events: 30, eventsBefore: 90, errors: 5, errorsBefore: 0 },
      day: { events: 0, eventsBefore: 8, errors: 4, errorsBefore: 3, criticals: 6, p1: 0 },
      sparkline: [1, 2, 3, 4, 5, 6, 7],
    },
    { ...ALONE, templatesKnown: 12, alerts: { open: 9, recent: [] } },
  )
  t.match(snapshot, {
    unique_events: 2,
    total_occurrences: 3,
    dedup_rate_pct: 33.33,
    success_rate_pct: 42.86,
    dlq_count: 2,
    error_events: 1,
    events_last_minute: 100,
    errors_last_minute: 7,
    events_last_5min: 300,
    events_per_second: 1.67,
    criticals_24h: 6,
    templates_known: 12,
    open_alerts: 9,
    sparkline: [1, 2, 3, 4, 5, 6, 7],
    trends: { events: { '1h': -66.67, '24h': -100 }, errors: { '1h': 100, '24h': 33.33 } },
  })
})

void test('applications are ranked by what their sources counted', async (t) => {
  const day = (occurrences: number, errors: number, p1: number) => ({ occurrences, errors, p1 })
  const sources = new Map([
    ['a1', day(100, 10, 3)],
    ['a2', day(100, 0, 4)],
    ['b', day(10, 5, 7)],
    ['c', day(1000, 0, 0)],
  ])
  const applications = [
    { name: 'quiet', sources: ['none'] },
    { name: 'calm', sources: ['c'] },
    { name: 'beta', sources: ['b'] },
    { name: 'alpha', sources: ['a1', 'a2', 'a1'] },
    { name: 'bare', sources: [] },
  ]
  const snapshot = toKpiSnapshot({ ...EMPTY, sources }, { ...ALONE, applications })
  t.match(snapshot, {
    total_applications: 5,
    active_applications: 3,
    inactive_applications: 2,
    critical_applications: 2,
    top_critical_apps: [
      { name: 'alpha', critical_count: 7, health_score: 85 },
      { name: 'beta', critical_count: 7, health_score: 71 },
    ],
    top_unstable_apps: [
      { name: 'beta', error_rate_pct: 50 },
      { name: 'alpha', error_rate_pct: 5 },
    ],
  })
  t.equal(snapshot.top_critical_apps.length, 2)
  t.equal(snapshot.top_unstable_apps.length, 2)
})

void test('lists hold the first five, ties by name', async (t) => {
  const names = ['g', 'b', 'f', 'a', 'e', 'c', 'd']
  const sources = new Map(names.map((name) => [name, { occurrences: 2, errors: 1, p1: 1 }]))
  const topErrors = [
    { templateId: 'unknown', count: 99 },
    ...names.map((name) => ({ templateId: name, count: 3 })),
    { templateId: 'z', count: 4 },
  ]
  const alert = (id: string) => ({ id, title: id, severity: 'P1', created_at: '' })
  const snapshot = toKpiSnapshot(
    { ...EMPTY, sources, topErrors },
    {
      ...ALONE,
      applications: names.map((name) => ({ name, sources: [name] })),
      alerts: { open: 7, recent: names.map(alert) },
      textOfTemplate: (id) => (id === 'unknown' ? null : `text ${id}`),
    },
  )
  t.same(
    snapshot.top_critical_apps.map(({ name }) => name),
    ['a', 'b', 'c', 'd', 'e'],
  )
  t.same(
    snapshot.top_unstable_apps.map(({ name }) => name),
    ['a', 'b', 'c', 'd', 'e'],
  )
  t.same(
    snapshot.top_errors.map(({ template_text }) => template_text),
    ['text z', 'text a', 'text b', 'text c', 'text d'],
  )
  t.same(
    snapshot.recent_alerts.map(({ id }) => id),
    names.slice(0, 5),
    'alerts stay newest first',
  )
})

const countsArbitrary = fc
  .record({
    routine: fc.nat(100_000),
    repeats: fc.nat(100_000),
    unsureShare: fc.double({ min: 0, max: 1, noNaN: true }),
    dead: fc.nat(10_000),
    p1: fc.nat(100_000),
    p1Events: fc.nat(1000),
    routineDay: fc.nat(100_000),
  })
  .map((made): KpiCounts => {
    const routineOccurrences = made.routine + made.repeats
    return {
      ...EMPTY,
      stored: {
        events: made.routine + made.p1Events,
        occurrences: routineOccurrences + made.p1,
        errors: 0,
        routine: made.routine,
        unsure: Math.floor(made.routine * made.unsureShare),
        routineOccurrences,
      },
      deadLetters: { total: made.dead, lastDay: made.dead },
      day: {
        ...EMPTY.day,
        events: Math.min(made.routineDay, routineOccurrences) + made.p1,
        p1: made.p1,
      },
    }
  })

const score = (counts: KpiCounts, mlHealth: number | null = null): number =>
  toKpiSnapshot(counts, { ...ALONE, mlHealth }).global_health_score

void test('more P1 never raise the health score, be they new, repeated or corrected', async (t) => {
  fc.assert(
    fc.property(
      countsArbitrary,
      fc.integer({ min: 1, max: 1000 }),
      fc.nat(),
      (counts, n, fresh) => {
        const { stored, day } = counts
        const before = score(counts)
        const more = {
          ...counts,
          stored: {
            ...stored,
            events: stored.events + (fresh % (n + 1)),
            occurrences: stored.occurrences + n,
          },
          day: { ...day, events: day.events + n, p1: day.p1 + n },
        }
        const moved = Math.min(n, stored.routineOccurrences, day.events - day.p1)
        const corrected = {
          ...counts,
          stored: { ...stored, routineOccurrences: stored.routineOccurrences - moved },
          day: { ...day, p1: day.p1 + moved },
        }
        return score(more) <= before && score(corrected) <= before && before >= 0 && before <= 100
      },
    ),
    { seed: 42, numRuns: 2000 },
  )
  t.pass()
})

void test('dead letters and unsure priorities cost health, repeats earn some', async (t) => {
  fc.assert(
    fc.property(countsArbitrary, fc.integer({ min: 1, max: 1000 }), (counts, n) => {
      const { stored, deadLetters } = counts
      const before = score(counts)
      const worse = [
        { ...counts, deadLetters: { ...deadLetters, lastDay: deadLetters.lastDay + n } },
        { ...counts, stored: { ...stored, unsure: Math.min(stored.routine, stored.unsure + n) } },
      ]
      const repeated = {
        ...counts,
        stored: { ...stored, routineOccurrences: stored.routineOccurrences + n },
      }
      return worse.every((each) => score(each) <= before) && score(repeated) >= before
    }),
    { seed: 42, numRuns: 2000 },
  )
  const busy: KpiCounts = {
    ...EMPTY,
    stored: {
      ...EMPTY.stored,
      events: 100,
      occurrences: 100,
      routine: 100,
      routineOccurrences: 100,
    },
    day: { ...EMPTY.day, events: 100 },
  }
  t.equal(score({ ...busy, deadLetters: { total: 100, lastDay: 100 } }), 80, 'half are dead')
  t.equal(score({ ...busy, stored: { ...busy.stored, unsure: 50 } }), 90, 'half are unsure')
  t.equal(score({ ...busy, stored: { ...busy.stored, unsure: 50 } }, 0.2), 84, 'the engine knows')
  t.equal(score({ ...busy, day: { ...busy.day, events: 199, p1: 99 } }), 70, '99 P1')
})
