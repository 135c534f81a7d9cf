import { t as suite, test } from 'tap'
import { MARK } from '../../../src/model/stored-message.js'
import type { Priority, Severity } from '../../../src/model/event.js'
import { createAnswers } from '../../../src/events/query-cache.js'
import type { Store } from '../../../src/clickhouse/client.js'
import type { EventQuery } from '../../../src/events/page.js'
import { createLookedThrough } from '../../../src/events/event-parts.js'
import { createEvents } from '../../../src/events/events.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { NO_FILTER } from '../../support/event-filter.js'
import { applySchema, seeded } from '../../support/landing.js'
import { MINUTE_MS, DAY_MS } from '../../../src/model/time.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

interface Stored {
  readonly id: number
  readonly tsMs: number
  readonly receivedMs: number
  readonly severity: Severity
  readonly priority: Priority
  /** skeleton, value and host */
  readonly words: string
}

const sourceOf = (words: string): string => (words.includes('lion') ? 'rare' : 'web')

const toRow = ({ id, tsMs, receivedMs, severity, priority, words }: Stored): object => {
  const [skeleton = '', value = '', host = ''] = words.split('|')
  return {
    id,
    is_new: 1,
    n: 1,
    received_at: new Date(receivedMs).toISOString(),
    ts: new Date(tsMs).toISOString(),
    source: sourceOf(words),
    type: 'log',
    severity,
    priority,
    skeleton: `${skeleton} ${MARK} z`,
    message: value,
    host,
  }
}

/** Notes which parts each page was not asked of. */
function watched(store: Store): { readonly store: Store; readonly passed: number[] } {
  const passed: number[] = []
  const query: Store['query'] = async (question, params, options) => {
    const names = params['passed']
    if (Array.isArray(names)) passed.push(names.length)
    return await store.query(question, params, options)
  }
  return { store: Object.create(store, { query: { value: query } }) as Store, passed }
}

void test('searches that are asked again find what came, was merged, corrected or dropped meanwhile', async (t) => {
  const seed = Number(process.env['SEED'] ?? 11)
  t.comment(`seed ${seed}`)
  const random = seeded(seed)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const { store: bare, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(bare)
  const { store, passed } = watched(bare)
  const startMs = Date.now()
  // so many that the newest of them are not all there is
  await store.command(
    `INSERT INTO landing (id, is_new, n, received_at, ts, source, severity, priority, message, skeleton, host)
     SELECT 1000000 + number, 1, 1, fromUnixTimestamp64Milli(${startMs}), fromUnixTimestamp64Milli(${startMs} - number * 16000),
       'web', 'INFO', 'P4', toString(number), 'horse ${MARK} z', 'h1' FROM numbers(200000)`,
  )
  let stored: Stored[] = []
  const events = createEvents(store)
  const insert = async (): Promise<void> => {
    const batch: readonly Stored[] = Array.from(
      { length: 1 + Math.floor(random() * 9) },
      (_, i) => {
        const receivedMs = startMs - pick([0, 1, 2]) * DAY_MS
        return {
          id: 10 + stored.length + i,
          tsMs: Math.floor(receivedMs - random() ** 3 * 37 * DAY_MS + random() * MINUTE_MS),
          receivedMs,
          severity: pick<Severity>(['INFO', 'ERROR']),
          priority: pick<Priority>(['P2', 'P4']),
          words: pick([
            'cow|zebra|h1',
            'zebra|1|h1',
            'cow|2|zebra-1',
            'cow|3|h1',
            'donkey|lion|h2',
          ]),
        }
      },
    )
    stored = [...stored, ...batch]
    for (const receivedMs of new Set(batch.map((one) => one.receivedMs))) {
      const rows = batch.filter((one) => one.receivedMs === receivedMs).map(toRow)
      await store.insertRows('landing', rows)
    }
  }
  const gone = new Set<number>()
  const priorities = new Map<number, Priority>()
  const correct = async (): Promise<void> => {
    const one = pick(stored)
    const { id, tsMs } = one
    if (gone.has(id)) return
    const priority = pick<Priority>(['P1', 'P3'])
    await events.correct({ id, tsMs, priority, reason: 'seen' })
    const before = priorities.get(id) ?? one.priority
    const moved = [
      { ...toRow({ ...one, priority: before }), n: -1 },
      { ...toRow({ ...one, priority }), n: 1 },
    ]
    await store.insertRows(
      'landing',
      moved.map((row) => ({ ...row, is_new: 0 })),
    )
    priorities.set(id, priority)
  }
  const dropDay = async (): Promise<void> => {
    const day = new Date(startMs - DAY_MS).toISOString().slice(0, 10)
    await store.command(`ALTER TABLE events DROP PARTITION '${day}'`)
    for (const { id, receivedMs } of stored)
      if (new Date(receivedMs).toISOString().startsWith(day)) gone.add(id)
  }
  const questions: readonly (readonly [Partial<EventQuery['filter']>, number])[] = [
    [{ search: 'zebra' }, 1000],
    [{ search: 'zebra' }, 9],
    [{ search: 'zeb*' }, 1000],
    [{ search: '"zebra"' }, 30],
    [{ search: 'lion' }, 1000],
    [{ search: 'lion', severities: ['ERROR'] }, 1000],
    [{ search: 'zebra', severities: ['ERROR'] }, 7],
    [{ search: 'zebra', priorities: ['P1', 'P2'] }, 1000],
    [{ search: 'zebra', sources: ['web'] }, 1000],
    [{ sources: ['rare'] }, 1000],
    [{ sources: ['rare'], severities: ['ERROR'] }, 1000],
    [{ search: 'unicorn' }, 1000],
  ]
  const ask = async (): Promise<void> => {
    for (const [filter, limit] of questions) {
      const fromMs =
        random() < 0.6 ? Date.now() - 30 * DAY_MS : startMs - pick([3, 35, 50]) * DAY_MS
      const query = { filter: { ...NO_FILTER, ...filter }, fromMs, toMs: null, after: null, limit }
      const page = await events.page(query)
      const found = page.map(({ id, priority }) => `${id} ${priority}`)
      const wanted = expected(query)
      if (found.join() !== wanted.join()) t.same(found, wanted, JSON.stringify({ filter, limit }))
    }
  }
  const expected = ({ filter, fromMs, limit }: EventQuery): string[] => {
    const word = filter.search.replaceAll(/[*"]/g, '')
    return stored
      .map((one) => ({ ...one, priority: priorities.get(one.id) ?? one.priority }))
      .filter(({ id, tsMs, words, severity, priority }) =>
        [
          !gone.has(id),
          tsMs >= fromMs,
          words.includes(word),
          filter.sources?.includes(sourceOf(words)) !== false,
          filter.severities.length === 0 || filter.severities.includes(severity),
          filter.priorities.length === 0 || filter.priorities.includes(priority),
        ].every(Boolean),
      )
      .toSorted((a, b) => b.tsMs - a.tsMs || b.id - a.id)
      .slice(0, limit)
      .map(({ id, priority }) => `${id} ${priority}`)
  }
  await insert()
  const merge = (): Promise<void> => store.command('OPTIMIZE TABLE events FINAL')
  const steps = [insert, correct, insert, merge, insert, insert, correct, dropDay]
  for (const step of [...steps, ...steps]) {
    await step()
    await ask()
  }
  t.ok(gone.size > 0 && priorities.size > 0 && stored.length > gone.size)
  const spared = passed.filter((count) => count > 0).length
  t.ok(spared > 50, `parts were left out of ${spared} of ${passed.length} questions`)
})

void test('a kept answer is not taken for one about parts that were listed later', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  let nowMs = 0
  const answers = createAnswers(store, {
    // another instance has stored something and not told yet
    mark: { read: async () => 'same', renew: async () => {} },
    maxAgeMs: 2000,
    nowMs: () => nowMs,
    onError: (error) => t.fail(String(error)),
  })
  const events = createEvents(store, answers)
  const atMs = Date.now()
  const find = async (filter: Partial<EventQuery['filter']>): Promise<readonly number[]> => {
    const query = { fromMs: atMs - DAY_MS, toMs: null, after: null, limit: 50 }
    const page = await events.page({ ...query, filter: { ...NO_FILTER, ...filter } })
    return page.map(({ id }) => id)
  }
  const insert = (id: number): Promise<void> => {
    const words = `cow|zebra${id}|h1`
    const row = { id, tsMs: atMs, receivedMs: atMs, words } as const
    return store.insertRows('landing', [toRow({ ...row, severity: 'INFO', priority: 'P4' })])
  }
  await insert(1)
  t.same(await find({ search: 'zebra1' }), [1])
  nowMs = 1500
  for (const when of ['first', 'again, of what came since'])
    t.same(await find({ search: 'zebra2' }), [], when)
  await insert(2)
  nowMs = 2100 // only the list of parts is too old
  await find({ search: 'zebra2' })
  nowMs = 5000
  t.same(await find({ search: 'zebra2' }), [2])
})

void test('what was looked through is remembered while the parts can not be listed', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const atMs = Date.now()
  const row = { tsMs: atMs, receivedMs: atMs, severity: 'INFO', priority: 'P4' } as const
  await store.insertRows('landing', [toRow({ ...row, id: 1, words: 'zebra|1|h1' })])
  let nowMs = 0
  let isFailing = false
  const query: Store['query'] = async (question, params, options) => {
    if (isFailing) throw new Error('too much to do')
    return await store.query(question, params, options)
  }
  const lookedThrough = createLookedThrough({ query }, () => nowMs)
  const page = { fromMs: atMs - DAY_MS, toMs: null, after: null, limit: 50 }
  /** how many parts were left out; null when none could be */
  const passed = async (): Promise<number | null> => {
    const seen: unknown[] = []
    await lookedThrough.page(
      { ...page, filter: { ...NO_FILTER, search: 'zebra' } },
      {
        range: page,
        arrivedMs: atMs,
        conditions: Promise.resolve([]),
        options: {},
        ask: async (conditions) => {
          seen.push(conditions.find(({ sql }) => sql.startsWith('_part NOT IN'))?.params['passed'])
          return []
        },
      },
    )
    const [names] = seen
    return Array.isArray(names) ? names.length : null
  }
  t.same([await passed(), await passed()], [0, 1])
  isFailing = true
  t.equal(await passed(), null)
  isFailing = false
  t.equal(await passed(), null, 'not tried at once')
  nowMs += MINUTE_MS
  t.equal(await passed(), 1)
})

void test('parts are looked through again when their words are found elsewhere than before', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const events = createEvents(store)
  const atMs = Date.now()
  const row = { tsMs: atMs, receivedMs: atMs, severity: 'INFO', priority: 'P4' } as const
  const find = async (): Promise<readonly number[]> => {
    const query = { fromMs: atMs - DAY_MS, toMs: null, after: null, limit: 50 }
    const page = await events.page({ ...query, filter: { ...NO_FILTER, search: 'zebra' } })
    return page.map(({ id }) => id)
  }
  // as while an insert has come to this table and not yet to that of the skeletons
  const { is_new: _, ...first } = toRow({ ...row, id: 1, words: 'zebra|1|h1' }) as { is_new: 1 }
  await store.insertRows('events', [first])
  t.same(await find(), [])
  t.same(await find(), [])
  await store.insertRows('landing', [toRow({ ...row, id: 2, words: 'zebra|2|h1' })])
  t.same(await find(), [2, 1])
})
