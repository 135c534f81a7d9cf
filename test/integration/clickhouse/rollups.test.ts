import { t as suite, test, type Test } from 'tap'
import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../../../src/model/event.js'
import { WINDOWS, alignDown, startOfWindow, type Window } from '../../../src/model/window.js'
import { createAnalytics } from '../../../src/events/analytics.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createDeadLetters } from '../../../src/records/dead-letters.js'
import { readKpiCounts } from '../../../src/events/kpi-counts.js'
import { createSourceStats } from '../../../src/events/source-stats.js'
import { createTemplateStats, type TemplateView } from '../../../src/events/template-stats.js'
import type { TemplateDirectory } from '../../../src/templates/directory.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import {
  applySchema,
  insertLanding,
  isError,
  occurrences,
  randomRows,
  secondOf,
  type LandingRow,
} from '../../support/landing.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../../src/model/time.js'

const isWindow = (name: string): name is Window => Object.hasOwn(WINDOWS, name)
const WINDOW_NAMES = Object.keys(WINDOWS).filter(isWindow)
const SOURCES = ['web', 'db', 'rare']
const TEMPLATES = ['aaaaaaaaaaaaaaaa', 'bb00000000000001', '00000000000000cc', '000000000000dddd']

const server = await startTestServer()
suite.teardown(() => server.stop())

async function stored(t: Test, rows: readonly LandingRow[]): Promise<Store> {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  await insertLanding(store, rows)
  return store
}

/** Rows up to a day ahead of `nowMs`, most of them in the last days. */
const rowsAround = (seed: number, nowMs: number): readonly LandingRow[] =>
  randomRows({
    seed,
    rows: 4000,
    startMs: nowMs - 40 * DAY_MS,
    endMs: nowMs + DAY_MS,
    sources: SOURCES,
    templates: TEMPLATES,
  }).concat(
    // Times near the edges of every window.
    [60, 300, 3600, 7200, 86_400, 172_800, 7 * 86_400].flatMap((seconds, i) =>
      randomRows({
        seed: seed + 1 + i,
        rows: 150,
        startMs: nowMs - seconds * 1000 - 5000,
        endMs: nowMs - seconds * 1000 + 5000,
        sources: SOURCES,
        templates: TEMPLATES,
      }),
    ),
    randomRows({
      seed: seed + 100,
      rows: 400,
      startMs: nowMs - 10 * MINUTE_MS,
      endMs: nowMs + 10 * MINUTE_MS,
      sources: SOURCES,
      templates: TEMPLATES,
    }),
  )

interface DeadRow {
  readonly id: number
  readonly receivedMs: number
  readonly reason: string
  readonly source: string
}

const insertDead = (store: Store, rows: readonly DeadRow[]): Promise<void> =>
  store.insertRows(
    'dead_letters',
    rows.map(({ id, receivedMs, reason, source }) => ({
      id,
      received_at: new Date(receivedMs).toISOString(),
      protocol: 'ingest',
      key_id: `key ${id}`,
      source,
      reason,
      detail: `detail ${id}`,
      line: id,
      raw: `raw "${id}"`,
    })),
  )

/** Whole hours and minutes, their edges, and a month end. */
const NOWS = [
  Date.now(),
  alignDown(Date.now(), HOUR_MS),
  alignDown(Date.now(), MINUTE_MS) - 1,
  alignDown(Date.now(), DAY_MS) - 1,
  alignDown(Date.now(), MINUTE_MS) + 1,
]

/** Both kinds of counts by the start of their bucket, ascending. */
function bothByBucket(
  rows: readonly LandingRow[],
  deadMs: readonly number[],
  stepS: number,
): object[] {
  const buckets = new Map<number, { stored: number; dlq: number }>()
  const bucketAt = (second: number): { stored: number; dlq: number } => {
    const start = alignDown(second, stepS)
    const bucket = buckets.get(start) ?? { stored: 0, dlq: 0 }
    buckets.set(start, bucket)
    return bucket
  }
  for (const row of rows) bucketAt(secondOf(row)).stored += row.n
  for (const ms of deadMs) bucketAt(Math.floor(ms / 1000)).dlq += 1
  return [...buckets]
    .filter(([, bucket]) => bucket.stored > 0 || bucket.dlq > 0)
    .toSorted(([first], [second]) => first - second)
    .map(([start, bucket]) => ({ t: new Date(start * 1000).toISOString(), ...bucket }))
}

void test('analytics equal a count over the rows in every window', async (t) => {
  const [base = 0] = NOWS
  t.comment(`seed ${base}`)
  const rows = rowsAround(base, base)
  const store = await stored(t, rows)
  const dead = Array.from({ length: 300 }, (_, i) => ({
    id: i + 1,
    receivedMs: base - Math.floor((i / 300) ** 6 * 20 * DAY_MS),
    reason: 'invalid_json',
    source: i % 2 === 0 ? '' : 'db',
  }))
  await insertDead(store, dead)
  for (const nowMs of NOWS) {
    const analytics = createAnalytics({
      store,
      sourceStats: createSourceStats(store),
      nowMs: () => nowMs,
    })
    const nowS = Math.floor(nowMs / 1000)
    for (const window of WINDOW_NAMES) {
      const step = { second: 1, minute: 60, hour: 60, day: 3600 }[WINDOWS[window].granularity]
      const from = alignDown(startOfWindow(window, nowS), step)
      const inside = rows.filter((row) => secondOf(row) >= from && secondOf(row) <= nowS)
      const name = `${window} at ${nowMs}`

      for (const sources of [[], ['db', 'rare']]) {
        const mine = inside.filter((row) => sources.length === 0 || sources.includes(row.source))
        t.same(
          await analytics.severities(window, sources),
          SEVERITIES.map((severity) => ({
            severity,
            count: occurrences(mine, (row) => row.severity === severity),
          })),
          `severities in ${name}`,
        )
      }

      const top = SOURCES.map((source) => ({
        source,
        count: occurrences(inside, (row) => row.source === source),
        errors: occurrences(inside, (row) => row.source === source && isError(row)),
        deadLetters: dead.filter(
          (one) =>
            one.source === source && one.receivedMs >= from * 1000 && one.receivedMs <= nowMs,
        ).length,
        lastEventAtMs: Math.max(
          ...rows.filter((row) => row.source === source).map((row) => row.tsMs),
        ),
      }))
        .filter(({ count }) => count > 0)
        .toSorted((a, b) => b.count - a.count || (a.source < b.source ? -1 : 1))
      t.same(await analytics.topSources(window, 2), top.slice(0, 2), `sources in ${name}`)

      const bucketS = { second: 5, minute: 60, hour: 3600, day: 86_400 }[
        WINDOWS[window].granularity
      ]
      const deadMs = dead
        .map((row) => row.receivedMs)
        .filter((ms) => ms >= from * 1000 && ms <= nowMs)
      t.same(
        await analytics.deadVsStored(window),
        bothByBucket(inside, deadMs, bucketS),
        `stored and dead in ${name}`,
      )
    }
  }
})

/** What the KPI counts should be, from the rows one by one. */
function expectedCounts(rows: readonly LandingRow[], nowMs: number): object {
  const stop = Math.floor(nowMs / 1000) + 1
  const within =
    (from: number, to: number, also: (row: LandingRow) => boolean = () => true) =>
    (row: LandingRow): boolean =>
      secondOf(row) >= stop - from && secondOf(row) < stop - to && also(row)
  const count = (from: number, to = 0, also: (row: LandingRow) => boolean = () => true): number =>
    occurrences(rows, within(from, to, also))
  const period = (span: number): object => ({
    events: count(span),
    eventsBefore: count(span * 2, span),
    errors: count(span, 0, isError),
    errorsBefore: count(span * 2, span, isError),
  })
  const minute = alignDown(stop - 1, 60)
  const routine = rows.filter((row) => row.isNew && row.priority !== 'P1')
  const days = SOURCES.map((source) => {
    const own = (also: (row: LandingRow) => boolean = () => true): number =>
      count(86_400, 0, (row) => row.source === source && also(row))
    return [
      source,
      { occurrences: own(), errors: own(isError), p1: own((row) => row.priority === 'P1') },
    ] as const
  })
  return {
    stored: {
      events: rows.filter((row) => row.isNew).length,
      occurrences: occurrences(rows),
      errors: occurrences(rows, isError),
      routine: routine.length,
      unsure: routine.filter((row) => row.confidence < 0.5).length,
      routineOccurrences: occurrences(rows, (row) => row.priority !== 'P1'),
    },
    lastMinute: { events: count(60), errors: count(60, 0, isError) },
    last5Minutes: count(300),
    hour: period(3600),
    day: {
      ...period(86_400),
      criticals: count(86_400, 0, (row) => row.severity === 'CRITICAL'),
      p1: count(86_400, 0, (row) => row.priority === 'P1'),
    },
    sparkline: Array.from({ length: 7 }, (_, i) => {
      const start = minute - (6 - i) * 60
      return occurrences(
        rows,
        (row) => secondOf(row) >= start && secondOf(row) < start + 60 && secondOf(row) < stop,
      )
    }),
    sources: new Map(days.filter(([, day]) => day.occurrences > 0)),
  }
}

void test('KPI counts equal a count over the rows, to the second', async (t) => {
  const [base = 0] = NOWS
  t.comment(`seed ${base}`)
  const rows = rowsAround(base + 7, base)
  const store = await stored(t, rows)
  for (const nowMs of [...NOWS, base - 12_345_678, base - 3 * DAY_MS]) {
    // Which templates have errors depends on the random rows; a test of its own holds them.
    const {
      topErrors: _,
      deadLetters,
      ...counts
    } = await readKpiCounts(
      store,
      { redirects: () => [] },
      { nowMs, sources: [...SOURCES, 'none'] },
    )
    t.same(counts, expectedCounts(rows, nowMs), `at ${nowMs}`)
    t.same(deadLetters, { total: 0, lastDay: 0 })
  }
})

void test('KPI counts of an empty store are zeros', async (t) => {
  const store = await stored(t, [])
  const nowMs = Date.now()
  const counts = await readKpiCounts(store, { redirects: () => [] }, { nowMs, sources: ['web'] })
  const zeros = { events: 0, eventsBefore: 0, errors: 0, errorsBefore: 0 }
  t.same(counts, {
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
    hour: zeros,
    day: { ...zeros, criticals: 0, p1: 0 },
    sparkline: [0, 0, 0, 0, 0, 0, 0],
    sources: new Map(),
    topErrors: [],
  })
})

void test('dead letters count for a day', async (t) => {
  const store = await stored(t, [])
  const nowMs = Date.now()
  await insertDead(
    store,
    [0, 1000, DAY_MS - 1, DAY_MS, DAY_MS + 1, 3 * DAY_MS].map((ago, i) => ({
      id: i + 1,
      receivedMs: nowMs - ago,
      reason: 'invalid_json',
      source: 'web',
    })),
  )
  const counts = await readKpiCounts(store, { redirects: () => [] }, { nowMs, sources: [] })
  t.same(counts.deadLetters, { total: 6, lastDay: 3 })
})

void test('the templates with the most errors of the last 24 h come first', async (t) => {
  const nowMs = alignDown(Date.now(), HOUR_MS) + 30 * MINUTE_MS
  const row = (
    templateId: string,
    agoMs: number,
    fields: Partial<LandingRow> = {},
  ): LandingRow => ({
    id: 1,
    isNew: true,
    n: 1,
    receivedMs: nowMs,
    tsMs: nowMs - agoMs,
    source: 'web',
    severity: 'ERROR',
    priority: 'P2',
    confidence: 1,
    modelVersion: 'rules-1',
    templateId,
    ...fields,
  })
  const store = await stored(t, [
    row('aaaaaaaaaaaaaaaa', 1000, { n: 3 }),
    row('bb00000000000001', DAY_MS - 1000, { n: 4, severity: 'CRITICAL' }),
    row('00000000000000cc', 2000, { n: 2 }),
    row('000000000000dddd', 3000, { n: 50, severity: 'WARNING' }),
    row('00000000000000e1', DAY_MS + 10 * MINUTE_MS, { n: 60 }),
    row('00000000000000e2', -10 * MINUTE_MS, { n: 70 }),
    row('0000000000000000', 1000, { n: 80 }),
  ])
  const redirects = [{ from: '00000000000000cc', into: 'aaaaaaaaaaaaaaaa' }]
  const { topErrors } = await readKpiCounts(
    store,
    { redirects: () => redirects },
    { nowMs, sources: [] },
  )
  t.same(topErrors, [
    { templateId: 'aaaaaaaaaaaaaaaa', count: 5 },
    { templateId: 'bb00000000000001', count: 4 },
  ])
})

/** The most frequent, the worse of equals. */
function mostFrequent<T extends string>(
  names: readonly T[],
  count: (name: T) => number,
): T | undefined {
  return names.toSorted((a, b) => count(b) - count(a))[0]
}

void test('templates equal a count over the rows, merged ones included', async (t) => {
  const seed = 11
  t.comment(`seed ${seed}`)
  const rows = rowsAround(seed, Date.now()).concat({
    ...(rowsAround(seed, Date.now())[0] as LandingRow),
    templateId: '0000000000000000',
    n: 9999,
  })
  const store = await stored(t, rows)
  const canonical = (id: string): string => (id === TEMPLATES[2] ? (TEMPLATES[0] ?? '') : id)
  const override: Readonly<Record<string, Priority>> = { bb00000000000001: 'P1' }
  const directory: TemplateDirectory = {
    describe: (id) => ({
      id: canonical(id),
      text: `text of ${canonical(id)}`,
      override: override[canonical(id)] ?? null,
    }),
    redirects: () => [{ from: TEMPLATES[2] ?? '', into: TEMPLATES[0] ?? '' }],
  }
  const stats = createTemplateStats(store, directory)
  const expected = [TEMPLATES[0] ?? '', TEMPLATES[1] ?? '', TEMPLATES[3] ?? '']
    .map((id) => {
      const mine = rows.filter((row) => canonical(row.templateId) === id)
      const fresh = mine.filter((row) => row.isNew)
      const mean = fresh.reduce((sum, row) => sum + row.confidence, 0) / fresh.length
      const isCorrected = id in override
      const worst: readonly Severity[] = SEVERITIES.toReversed()
      return {
        id,
        text: `text of ${id}`,
        firstSeenMs: Math.min(...mine.map((row) => row.tsMs)),
        lastSeenMs: Math.max(...mine.map((row) => row.tsMs)),
        occurrences: occurrences(mine),
        severity: mostFrequent(worst, (s) => occurrences(mine, (row) => row.severity === s)),
        priority:
          override[id] ??
          mostFrequent(PRIORITIES, (p) => occurrences(mine, (row) => row.priority === p)),
        confidence: isCorrected ? 1 : Math.round(mean * 10_000) / 10_000,
        modelVersion: isCorrected ? 'manual' : 'rules-2',
      }
    })
    .toSorted((a, b) => b.occurrences - a.occurrences)
  /** A template of the test has rows of any source. */
  const withoutSource = (view: TemplateView | null | undefined) => {
    if (view === null || view === undefined) return null
    const { source, ...rest } = view
    const mine = rows.filter((row) => canonical(row.templateId) === view.id)
    t.ok(mine.some((row) => row.source === source))
    return rest
  }
  const top = async (query: Parameters<typeof stats.top>[0]) =>
    (await stats.top(query)).map(withoutSource)
  t.same(await top({ limit: 200 }), expected)
  t.same(await top({ limit: 1 }), expected.slice(0, 1))
  const newest = expected.toSorted((a, b) => b.firstSeenMs - a.firstSeenMs)
  t.same(await top({ limit: 200, order: 'first_seen' }), newest)
  for (const { firstSeenMs } of expected) {
    const from = { limit: 200, firstSeenFromMs: firstSeenMs }
    t.same(
      await top(from),
      expected.filter((each) => each.firstSeenMs >= firstSeenMs),
    )
    const until = { limit: 200, firstSeenUntilMs: firstSeenMs }
    t.same(
      await top(until),
      expected.filter((each) => each.firstSeenMs < firstSeenMs),
    )
  }
  for (const each of expected)
    t.same(withoutSource(await stats.one(each.id)), each, `one of ${each.id}`)
  t.same(
    withoutSource(await stats.one(TEMPLATES[2] ?? '')),
    expected.find(({ id }) => id === TEMPLATES[0]),
  )

  const first = rows.filter((row) => canonical(row.templateId) === TEMPLATES[0])
  const starts = [...new Set(first.map((row) => alignDown(row.tsMs, HOUR_MS)))].toSorted(
    (a, b) => a - b,
  )
  const hours = await stats.hours(TEMPLATES[2] ?? '', 744)
  t.same(
    hours.map((hour) => [hour.t, hour.ERROR, hour.P1]),
    starts.map((start) => {
      const inside = first.filter((row) => alignDown(row.tsMs, HOUR_MS) === start)
      return [
        new Date(start).toISOString(),
        occurrences(inside, (row) => row.severity === 'ERROR'),
        occurrences(inside, (row) => row.priority === 'P1'),
      ]
    }),
  )
  t.same(await stats.hours(TEMPLATES[0] ?? '', 3), hours.slice(-3))
})

void test('a template that nobody knows or that has no rows is none', async (t) => {
  const store = await stored(t, [])
  const unknown = createTemplateStats(store, { describe: () => null, redirects: () => [] })
  t.same(await unknown.top({ limit: 20 }), [])
  t.equal(await unknown.one('00000000000000aa'), null)
  const known = createTemplateStats(store, {
    describe: (id) => ({ id, text: 'a text', override: null }),
    redirects: () => [],
  })
  t.equal(await known.one('00000000000000aa'), null)
})

void test('totals of the sources are those of the rows', async (t) => {
  const rows = rowsAround(5, Date.now())
  const store = await stored(t, rows)
  const stats = createSourceStats(store)
  const expected = (all: readonly LandingRow[]): Map<string, object> =>
    new Map(
      SOURCES.map((source) => {
        const mine = all.filter((row) => row.source === source)
        return [
          source,
          {
            events: mine.filter((row) => row.isNew).length,
            occurrences: occurrences(mine),
            lastEventAtMs: Math.max(...mine.map((row) => row.tsMs)),
          },
        ] as const
      }),
    )
  t.same(await stats.totals(null), expected(rows))
  const more = rowsAround(6, Date.now())
  await insertLanding(store, more)
  const both = expected([...rows, ...more])
  t.same(await stats.totals(null), both, 'after a batch')
  const [first = '', second = ''] = both.keys()
  const some = await stats.totals([second, 'none', first])
  t.same(some, new Map([...both].filter(([name]) => [first, second].includes(name))))
  t.same(await stats.totals([]), new Map())
})

void test('dead letters are walked page by page, each once, newest first', async (t) => {
  const store = await stored(t, [])
  const nowMs = Date.now()
  const all = Array.from({ length: 50 }, (_, i) => ({
    id: i + 1,
    // Several dead letters in one millisecond.
    receivedMs: nowMs - Math.floor(i / 7) * 1000,
    reason: i % 3 === 0 ? 'invalid_json' : 'unknown_source',
    source: i % 2 === 0 ? 'web' : '',
  }))
  await insertDead(store, all)
  const letters = createDeadLetters(store)
  const walk = async (
    reasons: readonly string[],
    sources: readonly string[],
  ): Promise<number[]> => {
    const ids: number[] = []
    let after: { receivedAtMs: number; id: number } | null = null
    for (;;) {
      const page = await letters.page({ reasons, sources, after, limit: 4 })
      ids.push(...page.map((letter) => letter.id))
      const last = page.at(-1)
      if (last === undefined) return ids
      after = last
    }
  }
  const expected = (reasons: readonly string[], sources: readonly string[]): number[] =>
    all
      .filter((row) => reasons.length === 0 || reasons.includes(row.reason))
      .filter((row) => sources.length === 0 || sources.includes(row.source))
      .toSorted((a, b) => b.receivedMs - a.receivedMs || b.id - a.id)
      .map((row) => row.id)
  for (const reasons of [[], ['invalid_json'], ['none']])
    for (const sources of [[], ['web'], ['', 'web']])
      t.same(
        await walk(reasons, sources),
        expected(reasons, sources),
        `${reasons.join()} of ${sources.join()}`,
      )

  t.same(await letters.byIds([3, 999, 1]), [
    {
      id: 1,
      receivedAtMs: nowMs,
      protocol: 'ingest',
      keyId: 'key 1',
      source: 'web',
      reason: 'invalid_json',
      detail: 'detail 1',
      line: 1,
      raw: 'raw "1"',
    },
    {
      id: 3,
      receivedAtMs: nowMs,
      protocol: 'ingest',
      keyId: 'key 3',
      source: 'web',
      reason: 'unknown_source',
      detail: 'detail 3',
      line: 3,
      raw: 'raw "3"',
    },
  ])
  t.same(await letters.byIds([]), [])
  t.equal(await letters.countSince(nowMs - 1000), 14)
})
