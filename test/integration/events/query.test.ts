/**
 * Random queries, in every order and depth, give the events that a comparison of each event in JavaScript gives: list, live tail
 * and export.
 */
import * as fc from 'fast-check'
import { t as suite, test } from 'tap'
import { createArrivalReader } from '../../../src/events/arrivals.js'
import { bound } from '../../../src/events/bind.js'
import { createEvents } from '../../../src/events/events.js'
import { toExportLines } from '../../../src/events/export-columns.js'
import type { EventQuery } from '../../../src/events/page.js'
import { resolveNames } from '../../../src/events/resolve.js'
import { rowCondition } from '../../../src/events/row-condition.js'
import { HOUR_MS } from '../../../src/model/time.js'
import type { Query } from '../../../src/query/ast.js'
import { parseQuery } from '../../../src/query/parser.js'
import { printQuery } from '../../../src/query/printer.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { filterOf } from '../../support/event-filter.js'
import { createClauses } from '../../support/found-clauses.js'
import { applySchema, seeded, tagColumns } from '../../support/landing.js'
import { END_MS, FROM_MS, firstRow, makeEvents, type MadeEvent } from '../../support/event-data.js'
import { NAMES, anyTellingQuery, modelOf } from '../../support/query-data.js'
import { isMeant, type ModelEvent } from '../../support/query-model.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

const SEED = Number(process.env['SEED'] ?? 3)
const RUNS = Number(process.env['RUNS'] ?? 160)
const EVENTS = 400
/** Of so many queries one is asked of the live tail, and one of the export. */
const EACH = Number(process.env['EACH'] ?? 4)
/** The most rows of a tail, few enough to be read whatever their size. */
const TAILED = 100

/** The rows of an event: some of its occurrences are repeats a second later. */
const rowsOf = (made: MadeEvent, id: number): readonly object[] => {
  const first = made.count > 2 ? 2 : 1
  const repeats = made.count - first
  const row = firstRow(made, id)
  const later = { ...row, is_new: 0, ts: new Date(made.tsMs + 1000).toISOString() }
  return [
    { ...row, n: first },
    ...(repeats > 0 ? [{ ...later, n: 1 }] : []),
    ...(repeats > 1 ? [{ ...later, n: repeats - 1 }] : []),
  ]
}

/** Conditions of one statement. */
const CLAUSES_AT_ONCE = 20

interface Compared {
  readonly all: readonly ModelEvent[]
  readonly wanted: readonly number[]
  readonly got: readonly number[]
}

function differenceOf(what: string, { all, wanted, got }: Compared): string {
  const missing = all.find(({ id }) => wanted.includes(id) && !got.includes(id))
  const surplus = all.find(({ id }) => !wanted.includes(id) && got.includes(id))
  return `${what}\nmissing ${JSON.stringify(missing)}\nsurplus ${JSON.stringify(surplus)}`
}

const plural = (n: number, what: string): string => `${n} ${what}`

void test('a query lists the events that a comparison of each event gives', async (t) => {
  t.comment(`SEED=${SEED} RUNS=${RUNS}`)
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const made = makeEvents(SEED, EVENTS)
  const stored = made.map((one, i): ModelEvent => ({ id: i + 1, ...one }))
  const rows = made.flatMap((one, i) => rowsOf(one, i + 1))
  for (let from = 0; from < rows.length; from += 150)
    await store.insertRows('landing', rows.slice(from, from + 150))
  const split = rows.filter((row) => 'constant_text' in row && row.constant_text !== '').length
  t.ok(split > 50, plural(split, 'rows have a constant text'))
  const events = createEvents(store)
  const corrected = stored.find(({ id }) => id === 7)
  if (corrected === undefined) throw new Error('bug: no event')
  const { tsMs, priority } = corrected
  await events.correct({ id: 7, tsMs, priority: priority as 'P1', reason: 'eu-west' })
  const all = stored.map((one) =>
    one.id === 7 ? { ...one, tags: { ...one.tags, correction_reason: 'eu-west' } } : one,
  )
  const model = modelOf(all)
  const names = { ...NAMES, applications: () => NAMES.applications }
  const list = async (q: string): Promise<readonly number[]> => {
    const filter = filterOf({ q }, names, NAMES.redirects)
    const ids: number[] = []
    for (let after: EventQuery['after'] = null; ;) {
      const { events: page } = await events.page({
        filter,
        fromMs: FROM_MS,
        toMs: END_MS,
        after,
        limit: 150,
      })
      ids.push(...page.map(({ id }) => id))
      const last = page.at(-1)
      if (page.length < 150 || last === undefined) return ids
      after = { tsMs: last.timestampMs, id: last.id }
    }
  }
  const arrivals = createArrivalReader(store)
  const newest = await arrivals.newest()
  const tailed = async (query: Query, wanted: number): Promise<readonly number[]> => {
    const { matched, events: arrived } = await arrivals.read({
      query: resolveNames(query, names),
      redirects: NAMES.redirects,
      after: newest.map(([shard]) => [shard, 0]),
      upTo: newest,
      limit: TAILED,
      nowMs: END_MS,
    })
    if (matched !== wanted) throw new Error(`${matched} matched in place of ${wanted}`)
    return arrived.map(({ id }) => id)
  }
  const exported = async (q: string): Promise<readonly number[]> => {
    const filter = filterOf({ q }, names, NAMES.redirects)
    const lines = toExportLines('ndjson', ['id'], NAMES.redirects)
    const query = { filter, fromMs: FROM_MS, toMs: END_MS, order: 'desc', after: null } as const
    const asker = {
      ask: <T>(work: () => Promise<T>) => work(),
      signal: new AbortController().signal,
    }
    let text = ''
    for await (const { bytes } of events.exported({ ...query, lines }, asker))
      text += Buffer.from(bytes).toString()
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).id)
  }
  let [some, most, asked] = [0, 0, 0]
  const isSame = async (query: Query): Promise<boolean> => {
    const line = printQuery(query)
    const { query: parsed } = parseQuery(line)
    if (parsed === null) throw new Error(`${line} is no query`)
    const wanted = all
      .filter((one) => one.tsMs < END_MS && isMeant(one, parsed, model))
      .toSorted((a, b) => b.tsMs - a.tsMs || b.id - a.id)
      .map(({ id }) => id)
    if (wanted.length > 0 && wanted.length < EVENTS) some += 1
    most = Math.max(most, wanted.length)
    compare('list', line, wanted, await list(line))
    asked += 1
    if (asked % EACH === 0)
      compare('tail', line, wanted.slice(0, TAILED), await tailed(parsed, wanted.length))
    if ((asked + 1) % EACH === 0) compare('export', line, wanted, await exported(line))
    return true
  }
  const compare = (
    what: string,
    line: string,
    wanted: readonly number[],
    got: readonly number[],
  ): void => {
    if (got.join() === wanted.join()) return
    throw new Error(differenceOf(`${what} of ${line}`, { all, wanted, got }))
  }
  await fc.assert(fc.asyncProperty(anyTellingQuery, isSame), { seed: SEED, numRuns: RUNS })
  t.ok(some > RUNS / 4, plural(some, 'queries told events apart'))
  t.ok(most > 150, plural(most, 'events matched one of them'))
})

void test('a clause made from what is stored finds what a comparison of each event gives', async (t) => {
  const clauses = Number(process.env['CLAUSES'] ?? 300)
  t.comment(`SEED=${SEED} CLAUSES=${clauses}`)
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const { makeEvent, makeClause } = createClauses(seeded(SEED))
  const all = Array.from({ length: 200 }, (_, i): ModelEvent & MadeEvent => ({
    id: i + 1,
    ...makeEvent(),
  }))
  await store.insertRows(
    'landing',
    all.map((event) => firstRow(event, event.id)),
  )
  const model = modelOf(all)
  let told = 0
  // Many conditions are asked for in one statement: this is about what they say of a row, and not about finding it.
  for (let from = 0; from < clauses; from += CLAUSES_AT_ONCE) {
    const asked = Array.from({ length: CLAUSES_AT_ONCE }, () => {
      const line = printQuery(makeClause(all))
      const { query } = parseQuery(line)
      if (query === null) throw new Error(`${line} is no query`)
      return { line, query }
    })
    const { sql, params } = bound('clause', (bind) =>
      asked
        .map(({ query }, i) => {
          const condition = rowCondition(query, { bind, endMs: END_MS, redirects: [] })
          return `arraySort(groupArrayIf(id, ${condition})) AS c${i}`
        })
        .join(', '),
    )
    const [found] = await store.query<typeof params, Readonly<Record<string, readonly unknown[]>>>(
      { name: 'clauses', sql: `SELECT ${sql} FROM events` },
      params,
    )
    asked.forEach(({ line, query }, i) => {
      const wanted = all.filter((event) => isMeant(event, query, model)).map(({ id }) => id)
      if (wanted.length > 0 && wanted.length < all.length) told += 1
      const got = (found?.[`c${i}`] ?? []).map(Number)
      if (got.join() !== wanted.join()) t.fail(differenceOf(line, { all, wanted, got }))
    })
  }
  t.ok(told > clauses / 2, plural(told, 'clauses told events apart'))
})

void test('the largest queries that are let through are answered', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const now = Date.now()
  const row = {
    id: 1,
    is_new: 1,
    n: 1,
    ts: new Date(now).toISOString(),
    received_at: new Date(now).toISOString(),
    source: 'web',
    variables: 'a message',
    ...tagColumns({ a: { a: { a: { a: { a: { a: { a: { a: { a: { a: 1 } } } } } } } } } }),
  }
  await store.insertRows('landing', [row])
  const events = createEvents(store)
  const deep = Array.from({ length: 10 }, () => 'a').join('.')
  const repeated = (count: number, clause: string) => `${clause} `.repeat(count)
  for (const q of [
    repeated(32, `has:${deep}`),
    repeated(32, `${deep}:1,2..3,x*,/y/`),
    repeated(32, `${deep}>0`),
    `${repeated(16, 'message')} ${repeated(140, 'source:web')}`,
    `${repeated(8, '-none-at-all')} ${repeated(8, '-"none at all"')} ${repeated(4, 'count:1')}`,
    repeated(4, '-new:1w'),
    `id:1${',1'.repeat(199)}`,
  ]) {
    const query = { filter: filterOf({ q }), fromMs: now - HOUR_MS, toMs: null, after: null }
    const { events: page } = await events.page({ ...query, limit: 5 })
    t.same(
      page.map(({ id }) => id),
      [1],
      q.slice(0, 40),
    )
  }
})
