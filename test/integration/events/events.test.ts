import { t as suite, test } from 'tap'
import type { Store } from '../../../src/clickhouse/client.js'
import type { EventQuery } from '../../../src/events/page.js'
import { createEvents } from '../../../src/events/events.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { filterOf, type Asked } from '../../support/event-filter.js'
import { applySchema, insertLanding, randomRows, type LandingRow } from '../../support/landing.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../../src/model/time.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

/** The store, which passes the parameters of each query of that name to `observe`. */
const watch = (
  store: Store,
  name: string,
  observe: (params: Readonly<Record<string, unknown>>) => void,
): Store => ({
  ...store,
  query: (statement, params, request) => {
    if (statement.name === name) observe(params)
    return store.query(statement, params, request)
  },
})

void test('pages of any filter hold every event once, newest first, however rare it is', async (t) => {
  const seed = 41
  t.comment(`seed ${seed}`)
  const end = Date.parse('2024-03-31T23:58:17.350Z')
  const rows: readonly LandingRow[] = randomRows({
    seed,
    rows: 1500,
    startMs: end - 60 * DAY_MS,
    endMs: end,
    sources: ['web', 'db'],
    templates: ['00000000000000aa', '00000000000000bb'],
  }).filter((row) => row.isNew)
  const [one] = rows
  if (one === undefined) throw new Error('no rows')
  const rare = [0, 3, 30].map((days, i) => {
    const tsMs = end - 5_000 - days * DAY_MS
    return { ...one, id: 9_000 + i, tsMs, source: 'rare', severity: 'CRITICAL' as const }
  })
  const all = [...rows, ...rare]
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  await insertLanding(store, all)
  const events = createEvents(store)
  const filters: readonly Asked[] = [
    {},
    { source: ['rare'] },
    { source: ['none'] },
    { source: ['web', 'rare'], severity: ['CRITICAL'] },
    { severity: ['ERROR'], priority: ['P1', 'P2'] },
    { priority: ['P4'], template_id: ['00000000000000bb'] },
    { severity: ['DEBUG'], search: 'message' },
  ]
  for (const part of filters) {
    const filter = filterOf(part)
    const fits = (wanted: readonly string[] | null, value: string): boolean =>
      wanted === null || wanted.includes(value)
    const [fromMs, toMs] = [end - 50 * DAY_MS + 1_234, end - 777]
    const expected = all
      .filter(
        (row) =>
          row.tsMs >= fromMs &&
          row.tsMs < toMs &&
          fits(filter.sources, row.source) &&
          fits(filter.severities, row.severity) &&
          fits(filter.priorities, row.priority) &&
          fits(filter.templateIds, row.templateId),
      )
      .toSorted((a, b) => b.tsMs - a.tsMs || b.id - a.id)
      .map(({ id }) => id)
    const limit = Math.max(2, Math.ceil(expected.length / 4))
    const got: number[] = []
    let after: EventQuery['after'] = null
    for (;;) {
      const { events: page } = await events.page({ filter, fromMs, toMs, after, limit })
      got.push(...page.map(({ id }) => id))
      const last = page.at(-1)
      if (page.length < limit || last === undefined) break
      after = { tsMs: last.timestampMs, id: last.id }
    }
    t.same(got, expected, JSON.stringify(part))
  }
})

void test('what came after a question is found by the next one, however late, early or many it is', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const fromOfPages: number[] = []
  const watched = watch(store, 'event_page', ({ from_ms: fromMs }) => {
    fromOfPages.push(Number(fromMs))
  })
  let events = createEvents(watched)
  const hour = HOUR_MS
  const now = Date.now()
  const row = (id: number, tsMs: number, other: Partial<LandingRow> = {}): LandingRow => ({
    id,
    isNew: true,
    n: 1,
    receivedMs: now,
    tsMs,
    source: 'web',
    severity: 'INFO',
    priority: 'P3',
    confidence: 1,
    modelVersion: 'rules-1',
    templateId: '00000000000000aa',
    host: 'web-1',
    ...other,
  })
  const stored: LandingRow[] = []
  const add = async (...rows: readonly LandingRow[]): Promise<void> => {
    stored.push(...rows)
    await insertLanding(store, rows)
  }
  const filters: readonly (readonly [Asked, (row: LandingRow) => boolean])[] = [
    [{}, () => true],
    [{ source: ['rare'] }, ({ source }) => source === 'rare'],
    [{ severity: ['INFO'] }, ({ severity }) => severity === 'INFO'],
    [{ search: 'message' }, () => true],
    [{ search: 'web' }, ({ host }) => host?.startsWith('web') === true],
    [{ search: 'far' }, ({ host }) => host === 'far-9'],
    [{ search: 'fa* message' }, ({ host }) => host === 'far-9'],
    [{ template_id: ['00000000000000bb'] }, ({ templateId }) => templateId.endsWith('bb')],
    [{ severity: ['ERROR'], search: 'far' }, (r) => r.severity === 'ERROR' && r.host === 'far-9'],
  ]
  const check = async (when: string): Promise<void> => {
    for (const limit of [2, 30])
      for (const [part, fits] of filters) {
        const filter = filterOf(part)
        const { events: page } = await events.page({
          filter,
          fromMs: 0,
          toMs: null,
          after: null,
          limit,
        })
        const wanted = stored.filter(fits).toSorted((a, b) => b.tsMs - a.tsMs || b.id - a.id)
        t.same(
          page.map(({ id }) => id),
          wanted.slice(0, limit).map(({ id }) => id),
          `${when}: ${limit} of ${JSON.stringify(part)}`,
        )
      }
  }
  await check('nothing stored')
  await add(...Array.from({ length: 20 }, (_, i) => row(i + 1, now - 3 * hour - i * MINUTE_MS)))
  await check('the first')
  await add(row(101, now + 20 * hour), row(102, now + 23 * hour, { host: 'far-9' }))
  await check('ahead of their time')
  const bb = { templateId: '00000000000000bb' }
  await add(row(201, now - 90 * 24 * hour, { host: 'far-9', severity: 'ERROR', ...bb }))
  await add(row(202, Date.parse('1999-05-05T05:05:05Z'), { source: 'rare', host: 'far-9' }))
  await check('late')
  await add(...Array.from({ length: 40 }, (_, i) => row(i + 301, now - i * 500, { ...bb })))
  await check('newer')

  // One second with far more events than a page.
  await add(row(401, now - 2_000))
  await insertLanding(store, [row(401, now - 2_000, { isNew: false, n: 300_000 })])
  await check('denser than the cached counts')
  events = createEvents(watched)
  fromOfPages.length = 0
  await check('dense')
  const isWithinSeconds = (fromMs: number): boolean => fromMs > now - 60_000
  t.ok(fromOfPages.filter(isWithinSeconds).length > 10, 'the newest seconds are read first')
  const far = async (fromMs: number, limit: number): Promise<readonly number[]> => {
    const filter = filterOf({ search: 'far' })
    const { events: page } = await events.page({ filter, fromMs, toMs: null, after: null, limit })
    return page.map(({ id }) => id)
  }
  t.same(await far(0, 30), [102, 201, 202])
  t.same(await far(now - hour, 29), [102])
  t.same(await far(now - 100 * 24 * hour, 29), [102, 201])
  await add(...Array.from({ length: 35 }, (_, i) => row(i + 501, now + i * 10, { host: 'far-9' })))
  await check('dense, and newer')
  await add(row(601, now - 10 * MINUTE_MS, { source: 'rare' }), row(602, now - 40 * 24 * hour, bb))
  await check('dense, and late')
  // The events that filled the page are deleted.
  await store.change(
    'ALTER TABLE events DELETE WHERE id > 500 AND id < 530',
    {},
    {
      settings: { mutations_sync: '2' },
    },
  )
  for (let at = stored.length - 1; at >= 0; at--) {
    const id = stored[at]?.id ?? 0
    if (id > 500 && id < 530) stored.splice(at, 1)
  }
  await check('dense, and fewer')
})

void test('pages of a dense minute go on without a gap', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const spansOfPages: number[] = []
  const events = createEvents(
    watch(store, 'event_page', ({ from_ms: fromMs, to_ms: toMs }) => {
      spansOfPages.push(Number(toMs) - Number(fromMs))
    }),
  )
  // The dense seconds are within one minute.
  const clockMs = Date.now()
  const sinceMinuteMs = clockMs % MINUTE_MS
  const now = sinceMinuteMs < 7_000 ? clockMs - sinceMinuteMs - 1 : clockMs
  const [one] = randomRows({
    seed: 45,
    rows: 1,
    startMs: now - 1_000,
    endMs: now,
    sources: ['web'],
    templates: ['00000000000000aa'],
  })
  if (one === undefined) throw new Error('no rows')
  const row = (id: number, tsMs: number): LandingRow => ({
    ...one,
    id,
    isNew: true,
    n: 1,
    receivedMs: now,
    tsMs,
  })
  // Half of them are in the dense seconds, half are hours before.
  const rows = Array.from({ length: 60 }, (_, i) =>
    row(i + 1, i < 30 ? now - i * 200 : now - i * 600_000),
  )
  await insertLanding(store, [...rows, { ...row(1, now - 1_000), isNew: false, n: 100_000_000 }])
  const walk = async (search = ''): Promise<readonly number[]> => {
    const ids: number[] = []
    const filter = filterOf({ search })
    for (let after: EventQuery['after'] = null; ;) {
      const { events: page } = await events.page({ filter, fromMs: 0, toMs: null, after, limit: 7 })
      ids.push(...page.map(({ id }) => id))
      const last = page.at(-1)
      if (page.length < 7 || last === undefined) return ids
      after = { tsMs: last.timestampMs, id: last.id }
    }
  }
  const wanted = rows.map(({ id }) => id)
  t.same(await walk(), wanted, 'of all')
  spansOfPages.length = 0
  t.same(await walk('message'), wanted, 'of a word')
  const narrow = spansOfPages.filter((ms) => ms < 10_000)
  t.ok(narrow.length >= 3, 'pages of the dense seconds read ranges of seconds')
})

void test('what is too much for the whole range is counted for its newest part, which is said', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const end = Math.floor((Date.now() - HOUR_MS) / 1000) * 1000
  const rows = randomRows({
    seed: 46,
    rows: 3_000,
    startMs: end - 10 * HOUR_MS,
    endMs: end,
    sources: ['web'],
    templates: ['00000000000000aa'],
  })
  await insertLanding(store, rows)
  // ClickHouse itself refuses the first question, which has more time than the second.
  let longestMs = 0
  const scarce: Store = {
    ...store,
    query: (asked, params, request = {}) => {
      longestMs = Math.max(longestMs, request.timeoutMs ?? 0)
      const isFirst = request.timeoutMs !== undefined && request.timeoutMs === longestMs
      const settings = { ...request.settings, ...(isFirst ? { max_memory_usage: '1000' } : {}) }
      return store.query(asked, params, { ...request, settings })
    },
  }
  const fromMs = end - 20 * HOUR_MS
  const question = { filter: filterOf({ search: 'message' }), fromMs, toMs: end }
  const asked = { question, field: null, top: 5, buckets: 100, counted: 'occurrences' } as const
  const names = { redirects: [], applications: [] }
  const { answer, completeFromMs } = await createEvents(scarce).histogram({ ...asked, names })
  t.ok(completeFromMs > fromMs && completeFromMs < end, `complete from ${end - completeFromMs} ms`)
  const part = { ...question, fromMs: completeFromMs }
  const whole = await createEvents(store).histogram({ ...asked, names, question: part })
  t.equal(whole.completeFromMs, completeFromMs)
  t.equal(answer.total, whole.answer.total)
  t.ok(answer.total > 0)
  const all = await createEvents(store).histogram({ ...asked, names })
  t.equal(all.completeFromMs, fromMs)
  t.ok(all.answer.total > 2 * answer.total)
})

void test('a long page of long messages ends early, and the next goes on', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const now = Date.now()
  const rows = Array.from({ length: 240 }, (_, i): LandingRow => {
    // The newest are long; five times as much as a page may hold.
    const message = `message ${i} ${'x'.repeat(i < 120 ? 700_000 : 10)}`
    return {
      id: i + 1,
      isNew: true,
      n: 1,
      receivedMs: now,
      tsMs: now - 60_000 - i * 40_000,
      source: 'web',
      severity: 'INFO',
      priority: 'P3',
      confidence: 1,
      modelVersion: 'rules-1',
      templateId: '00000000000000aa',
      message,
    }
  })
  await insertLanding(store, rows)
  const events = createEvents(store)
  for (const order of ['desc', 'asc'] as const)
    for (const search of ['', 'message']) {
      const ids: number[] = []
      const sizes: number[] = []
      const filter = filterOf({ search })
      for (let after: EventQuery['after'] = null; ;) {
        const query = { filter, fromMs: 0, toMs: null, after, order, limit: 200 }
        const { events: page, isCut } = await events.page(query)
        ids.push(...page.map(({ id }) => id))
        sizes.push(page.reduce((sum, { message }) => sum + message.length, 0))
        const last = page.at(-1)
        if ((!isCut && page.length < 200) || last === undefined) break
        after = { tsMs: last.timestampMs, id: last.id }
      }
      const wanted = rows.map(({ id }) => id)
      t.same(ids, order === 'desc' ? wanted : wanted.toReversed(), `${order} ${search}`)
      t.ok(sizes.length >= 5 && Math.max(...sizes) < 18_000_000, sizes.join())
    }
})

void test('an event and its repeats are found by id, whatever the days of others let guess', async (t) => {
  const seed = 43
  t.comment(`seed ${seed}`)
  const end = Date.now() - HOUR_MS
  const spread = randomRows({
    seed,
    rows: 400,
    startMs: end - 60 * DAY_MS,
    endMs: end,
    sources: ['web', 'db'],
    templates: ['00000000000000aa'],
  })
  // Arrivals do not grow with the id, and the ids are of several blocks.
  const rows = spread.map((row) => ({ ...row, id: row.id + (row.id % 3) * 1_000_000 }))
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  await insertLanding(store, rows)
  const events = createEvents(store)
  const wanted = new Map<number, number>()
  for (const { id, n } of rows) wanted.set(id, (wanted.get(id) ?? 0) + n)
  const got = await Promise.all(
    Array.from(wanted.keys(), async (id) => [id, (await events.get(id))?.occurrenceCount] as const),
  )
  t.same(new Map(got), wanted)
  t.equal(await events.get(500_000), null)
})
