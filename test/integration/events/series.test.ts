import { t as suite, test, type Test } from 'tap'
import { PRIORITIES, SEVERITIES } from '../../../src/model/event.js'
import {
  STEP_S,
  WINDOWS,
  alignDown,
  monthBefore,
  startOfWindow,
  type Granularity,
  type Window,
} from '../../../src/model/window.js'
import { createCalendar } from '../../../src/events/calendar.js'
import type { Store } from '../../../src/clickhouse/client.js'
import { createSeries, type Bucket, type SeriesQuery } from '../../../src/events/series.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import {
  applySchema,
  insertLanding,
  occurrences,
  randomRows,
  secondOf,
  type LandingRow,
} from '../../support/landing.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../../src/model/time.js'

const at = (text: string): number => Date.parse(text)
const isWindow = (name: string): name is Window => Object.hasOwn(WINDOWS, name)
const WINDOW_NAMES = Object.keys(WINDOWS).filter(isWindow)

const server = await startTestServer()
suite.teardown(() => server.stop())

/** A database of its own with the rows in it. */
async function stored(t: Test, rows: readonly LandingRow[]): Promise<Store> {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  await insertLanding(store, rows)
  return store
}

const ROW: LandingRow = {
  id: 1,
  isNew: true,
  n: 1,
  receivedMs: Date.now(),
  tsMs: at('2024-03-31T12:00:00Z'),
  source: 'web',
  severity: 'INFO',
  priority: 'P3',
  confidence: 0.9,
  modelVersion: 'rules-1',
  templateId: '00000000000000aa',
}
const event = (time: string, fields: Partial<LandingRow> = {}): LandingRow => ({
  ...ROW,
  tsMs: at(time),
  ...fields,
})

const QUERY: SeriesQuery = { window: '24h', granularity: 'auto', sources: [], limit: 10, offset: 0 }

/** The page that the rules of the interface give, from the rows one by one. */
function expected(
  rows: readonly LandingRow[],
  query: SeriesQuery,
  nowMs: number,
): { granularity: Granularity; buckets: Bucket[]; hasMore: boolean } {
  const nowS = Math.floor(nowMs / 1000)
  const mine = rows.filter(
    (row) => query.sources.length === 0 || query.sources.includes(row.source),
  )
  const has = (from: number, to: number): boolean =>
    mine.some((row) => secondOf(row) >= from && secondOf(row) <= to)
  const own = WINDOWS[query.window].granularity
  const order: readonly Granularity[] = ['second', 'minute', 'hour', 'day']
  const largest = { second: 5, minute: 900, hour: 86_400, day: 2_592_000 }
  const coarser = order.slice(order.indexOf(own) + 1)
  const auto = has(startOfWindow(query.window, nowS), nowS)
    ? own
    : (coarser.find((each) => has(nowS - largest[each], nowS)) ?? 'day')
  const granularity = query.granularity === 'auto' ? auto : query.granularity
  const past = mine.map(secondOf).filter((second) => second <= nowS + 300)
  if (past.length === 0) return { granularity, buckets: [], hasMore: false }
  const latest = Math.max(...past)
  const step = STEP_S[granularity]
  const [first, last] = [alignDown(monthBefore(latest), step), alignDown(latest, step)]
  const byStart = new Map<number, LandingRow[]>()
  for (const row of mine) {
    const start = alignDown(secondOf(row), step)
    const inside = byStart.get(start)
    if (inside === undefined) byStart.set(start, [row])
    else inside.push(row)
  }
  const starts = [...byStart.keys()]
    .filter((start) => start >= first && start <= last)
    .toSorted((a, b) => b - a)
  const page = starts.slice(query.offset, query.offset + query.limit).toReversed()
  return {
    granularity,
    buckets: page.map((start) => {
      const inside = byStart.get(start) ?? []
      const counters = [
        ...SEVERITIES.map((s) => [s, occurrences(inside, (row) => row.severity === s)]),
        ...PRIORITIES.map((p) => [p, occurrences(inside, (row) => row.priority === p)]),
      ]
      return { t: new Date(start * 1000).toISOString(), ...Object.fromEntries(counters) }
    }),
    hasMore: starts.length > query.offset + query.limit,
  }
}

void test('every window, granularity and page equals a count over the rows', async (t) => {
  const seed = 20_240_331
  t.comment(`seed ${seed}`)
  const end = at('2024-03-31T23:58:17.350Z')
  const rows = randomRows({
    seed,
    rows: 3000,
    startMs: at('2024-01-15T00:00:00Z'),
    // Some events are ahead of the clocks below.
    endMs: end + 8 * HOUR_MS,
    sources: ['web', 'db', 'rare one, with "signs" \\ and é'],
    templates: ['00000000000000aa'],
  })
  const store = await stored(t, rows)
  const nows = [
    end,
    at('2024-03-31T24:00:00.000Z'),
    at('2024-03-31T12:00:00.999Z'),
    at('2024-02-29T00:00:00.000Z'),
    at('2024-01-01T00:00:00.000Z'),
    at('2024-07-01T00:00:00.000Z'),
  ]
  for (const nowMs of nows) {
    const series = createSeries(store, () => nowMs)
    for (const sources of [[], ['db'], ['web', 'rare one, with "signs" \\ and é'], ['none']]) {
      const queries = WINDOW_NAMES.map((window) => ({ ...QUERY, window, sources }))
      const pages = await Promise.all(queries.map((query) => series.page(query)))
      queries.forEach((query, i) => {
        const name = `${query.window} of ${sources.join()} at ${nowMs}`
        t.same(pages[i], expected(rows, query, nowMs), name)
      })
    }
    for (const granularity of ['second', 'minute', 'hour', 'day'] as const) {
      for (const [limit, offset] of [
        [1, 0],
        [50, 0],
        [7, 3],
        [50, 120],
        [50, 1e9],
      ] as const) {
        const query = { ...QUERY, granularity, limit, offset }
        t.same(
          await series.page(query),
          expected(rows, query, nowMs),
          `${granularity} ${limit}+${offset} at ${nowMs}`,
        )
      }
    }
  }
})

void test('what flows in up to now, and what is a little ahead, equals a count over the rows', async (t) => {
  const seed = 17
  t.comment(`seed ${seed}`)
  const end = at('2024-03-31T00:07:31.350Z')
  const rows = randomRows({
    seed,
    rows: 2000,
    startMs: end - 70 * MINUTE_MS,
    endMs: end,
    sources: ['web', 'db'],
    templates: ['00000000000000aa'],
  })
  const store = await stored(t, [...rows, event('2024-02-29T00:00:00Z', { source: 'db' })])
  const all = [...rows, event('2024-02-29T00:00:00Z', { source: 'db' })]
  const asked = (['5s', '1m', '15m', '1h', '24h', '7d'] as const).flatMap((window) => [
    { ...QUERY, window },
    { ...QUERY, window, limit: 50 },
    { ...QUERY, window, sources: ['db'], limit: 1 },
  ])
  // After the latest event, before it by less and by more than the clock skew, and long after it.
  for (const laterMs of [3, -4, -400, 59, 199, 901, 3_601, 4_000_000]) {
    const nowMs = end + laterMs * 1000
    const series = createSeries(store, () => nowMs)
    const pages = await Promise.all(asked.map((query) => series.page(query)))
    pages.forEach((page, i) => {
      const query = asked[i] ?? QUERY
      const name = `${query.window} ${query.limit} of ${query.sources.join()} at ${nowMs - end}`
      t.same(page, expected(all, query, nowMs), name)
    })
  }
})

void test('the latest event is not searched where the newest buckets contain it', async (t) => {
  const end = at('2024-03-31T10:07:31Z')
  const times = Array.from({ length: 1_000 }, (_, hour) => end - hour * HOUR_MS)
  const recent = Array.from({ length: 300 }, (_, i) => end - i * 15_000)
  const rows = [...times, ...recent].map((tsMs) => ({ ...ROW, tsMs }))
  const store = await stored(t, rows)
  const asked: string[] = []
  const watched: Pick<Store, 'query'> = {
    query: (sql, ...rest) => {
      asked.push(sql.name)
      return store.query(sql, ...rest)
    },
  }
  for (const laterMs of [0, 240_000, 1_000_000]) {
    const series = createSeries(watched, () => end + laterMs)
    for (const window of ['5s', '1m', '15m', '1h', '2h', '24h'] as const) {
      asked.length = 0
      const query = { ...QUERY, window, limit: 5 }
      t.same(await series.page(query), expected(rows, query, end + laterMs))
      t.notOk(asked.includes('series_latest'), `${window} ${laterMs} ms later: ${asked.join()}`)
    }
  }
})

void test('an empty store has no buckets, whatever is asked for', async (t) => {
  const series = createSeries(await stored(t, []))
  t.same(await series.page(QUERY), { granularity: 'day', buckets: [], hasMore: false })
  t.same(await series.page({ ...QUERY, granularity: 'second', offset: 4 }), {
    granularity: 'second',
    buckets: [],
    hasMore: false,
  })
})

void test('the anchor is at most five minutes ahead of the clock', async (t) => {
  const nowMs = at('2024-03-31T12:00:30.500Z')
  const latest = async (...times: string[]): Promise<string | undefined> => {
    const store = await stored(
      t,
      times.map((time) => event(time)),
    )
    const page = await createSeries(store, () => nowMs).page({ ...QUERY, granularity: 'minute' })
    return page.buckets.at(-1)?.t
  }
  t.equal(await latest('2024-03-31T12:05:30.900Z'), '2024-03-31T12:05:00.000Z', 'just within')
  t.equal(await latest('2024-03-31T12:05:31.000Z'), undefined, 'just beyond')
  t.equal(
    await latest('2024-03-31T13:00:00Z', '2020-01-01T00:00:00Z'),
    '2020-01-01T00:00:00.000Z',
    'an old one when the only newer one is beyond',
  )
  t.equal(
    await latest('1970-01-01T00:00:00Z'),
    '1970-01-01T00:00:00.000Z',
    'the first second there is',
  )
})

void test('the history goes back one calendar month from the latest event', async (t) => {
  const days = async (...times: string[]): Promise<readonly string[]> => {
    const store = await stored(
      t,
      times.map((time) => event(time)),
    )
    const series = createSeries(store, () => at('2024-07-01T00:00:00Z'))
    const page = await series.page({ ...QUERY, granularity: 'day', limit: 50 })
    t.equal(page.hasMore, false)
    return page.buckets.map((bucket) => bucket.t.slice(0, 10))
  }
  t.same(
    await days('2024-02-28T23:59:59Z', '2024-02-29T00:00:00Z', '2024-03-31T10:00:00Z'),
    ['2024-02-29', '2024-03-31'],
    'from the last of March to the last of February',
  )
  t.same(
    await days('2024-01-14T23:00:00Z', '2024-01-15T01:00:00Z', '2024-02-15T10:00:00Z'),
    ['2024-01-15', '2024-02-15'],
    'a month of 31 days',
  )
})

void test('what a correction or a deletion leaves without counts is no bucket', async (t) => {
  const store = await stored(t, [
    event('2024-03-31T10:00:00Z', { n: 2 }),
    event('2024-03-31T11:00:00Z'),
    event('2024-03-31T11:00:00Z', { isNew: false, n: -1 }),
    event('2024-03-31T11:59:59Z', { source: 'gone' }),
  ])
  await store.command("DELETE FROM series_1s WHERE source = 'gone'")
  for (const table of ['series_1m', 'series_1h', 'series_1d'])
    await store.command(`DELETE FROM ${table} WHERE source = 'gone'`)
  const series = createSeries(store, () => at('2024-03-31T12:00:00Z'))
  for (const granularity of ['second', 'minute', 'hour'] as const) {
    const page = await series.page({ ...QUERY, granularity })
    t.same(
      page.buckets.map((bucket) => [bucket.t, bucket.INFO]),
      [['2024-03-31T10:00:00.000Z', 2]],
      granularity,
    )
  }
})

void test('the calendar counts occurrences per day and priority', async (t) => {
  const seed = 7
  t.comment(`seed ${seed}`)
  const nowMs = at('2024-03-01T00:00:05Z')
  const rows = randomRows({
    seed,
    rows: 1500,
    startMs: at('2022-02-20T00:00:00Z'),
    endMs: nowMs + DAY_MS,
    sources: ['web', 'db'],
    templates: ['00000000000000aa'],
  })
  const calendar = createCalendar(await stored(t, rows), () => nowMs)
  const today = alignDown(nowMs / 1000, 86_400)
  const expectedDays = (priorities: readonly string[], days: number): object[] => {
    const values = new Map<string, number>()
    for (const row of rows) {
      const day = alignDown(secondOf(row), 86_400)
      const isMeant = priorities.length === 0 || priorities.includes(row.priority)
      if (!isMeant || day > today || day <= today - days * 86_400) continue
      const key = new Date(day * 1000).toISOString().slice(0, 10)
      values.set(key, (values.get(key) ?? 0) + row.n)
    }
    return [...values]
      .filter(([, value]) => value > 0)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([day, value]) => ({ day, value }))
  }
  for (const priorities of [[], ['P1'], ['P4', 'P2']] as const) {
    for (const days of [1, 2, 31, 365, 730]) {
      t.same(
        await calendar.days({ priorities, days, sources: [] }),
        expectedDays(priorities, days),
        `${days} days of ${priorities.join()}`,
      )
    }
  }
})

void test('a filled page has every bucket of its span, the empty ones too', async (t) => {
  const times = ['2024-03-31T12:00:10Z', '2024-03-31T12:00:30Z', '2024-03-31T14:59:59Z']
  const store = await stored(
    t,
    times.map((time, i) => event(time, { id: i + 1 })),
  )
  const series = createSeries(store, () => at('2024-03-31T15:30:00Z'))
  const hours = { ...QUERY, granularity: 'hour' } as const
  const read = async (query: SeriesQuery) => {
    const { buckets, hasMore } = await series.filled(query)
    return { hasMore, counts: buckets.map(({ t: start, INFO }) => [start.slice(11, 16), INFO]) }
  }
  t.strictSame(await read({ ...hours, limit: 4 }), {
    hasMore: true,
    counts: [
      ['11:00', 0],
      ['12:00', 2],
      ['13:00', 0],
      ['14:00', 1],
    ],
  })
  t.strictSame((await read({ ...hours, limit: 2, offset: 1 })).counts, [
    ['12:00', 2],
    ['13:00', 0],
  ])
  const all: string[] = []
  for (let offset = 0; ; offset += 50) {
    const { buckets, hasMore } = await series.filled({ ...hours, limit: 50, offset })
    all.unshift(...buckets.map(({ t: start }) => start))
    if (!hasMore) break
  }
  t.equal(all[0], '2024-02-29T14:00:00.000Z', 'a month before the latest event')
  t.ok(all.every((start, i) => i === 0 || at(start) - at(all[i - 1] ?? '') === HOUR_MS))
  t.strictSame((await series.filled({ ...hours, sources: ['none'] })).buckets, [])
  t.strictSame((await series.filled({ ...hours, offset: 1_000_000 })).buckets, [])
})
