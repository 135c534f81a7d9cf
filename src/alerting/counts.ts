/*
 * Reads the counts of rules from ClickHouse. A message is counted in the slot of its arrival,
 * whatever its own time. A message that was more than an hour old on arrival, such as one of an
 * uploaded old file, is not counted. First occurrences are rows of `events`, repeats are in
 * `repeat_arrivals`.
 *
 * Rules with the same slots and groups share a query, which reads each row once and has a column
 * for each condition.
 */

import type { RequestOptions } from '../clickhouse/client.js'
import { StoreError } from '../clickhouse/failure.js'
import { statement } from '../clickhouse/statement.js'
import { bound, type Bind, type Condition } from '../events/bind.js'
import { rowCondition, type Arrival } from '../events/row-condition.js'
import { DAY_MS, HOUR_MS } from '../model/time.js'
import type { Count, CountDeps } from './count.js'
import { countDeadLetters } from './dead-letter-counts.js'
import { countFindings } from './finding-counts.js'
import { groupsSql } from './group-sql.js'
import type { Counter } from './counter.js'
import {
  columnsOf,
  MAX_SHARED_ROWS,
  shareOut,
  toShared,
  type SharedColumns,
  valuesSql,
  type SharedRequest,
  type SharedRow,
} from './shared-counts.js'
import { isEmpty, listsOf, MAX_ATTRIBUTES, sizeOf } from './attributes.js'
import { createQueryMatchers, type QueryMatchers } from './query-matcher.js'
import { windowsOf } from './past-windows.js'
import { MAX_TEXTS } from './texts.js'
import { unseen } from './unseen.js'
import { countByValues } from './value-counts.js'

/** One count of a rule. */
export interface CountRequest {
  readonly counter: Counter
  readonly groupBy: readonly string[]
  readonly everyMs: number
  /** The greatest age on arrival of a message that is counted; default an hour. */
  readonly maxAgeMs?: number
  /** Whether messages are counted by their own time instead of their arrival. */
  readonly isByEventTime?: boolean
  /** Whether only the last slot of each group is wanted. */
  readonly isLast: boolean
}

/** Messages that arrived in a range of whole seconds. */
export interface ArrivalRange {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  /**
   * Whether the range may be older than two days. `repeat_arrivals` holds two days; older repeats
   * are counted by the time of the messages.
   */
  readonly isPast?: boolean
}

/** The error of a query with more than `MAX_ROWS` groups and slots. */
export class TooManyGroups extends Error {
  constructor() {
    super(`it has more than ${MAX_ROWS.toLocaleString('en')} groups and time slots`)
  }
}

/** A row of counts. A row without counts says that events of the range were repeated. */
interface Row {
  readonly slot: number
  readonly group_values: readonly string[]
  readonly counts: readonly (readonly [number, number])[]
}
type Params = Readonly<Record<string, unknown>>

const eventsSql = statement<Params, Row>('alert_counts')
const pastRepeatsSql = statement<Params, Row>('alert_past_repeats')
const repeatsSql = statement<Params, Row>('alert_repeat_counts')

const DEFAULT_AGE_MS = HOUR_MS
/** The longest time between the first occurrence of an event and a repeat: the maximum of the deduplication window. */
const MAX_REPEAT_MS = DAY_MS
/** The most conditions of a query, because ClickHouse limits the size of a statement. */
const CONDITIONS_AT_ONCE = 100
const MAX_ROWS = 200_000
const SETTINGS = { max_threads: 2 }

/** The counts of each request, by its index, or the error of its query. */
export type Answers = readonly (readonly Count[] | Error)[]

export type CountReader = ReturnType<typeof createCountReader>

type Found = readonly (readonly [index: number, count: Count])[]

export function createCountReader(deps: CountDeps) {
  /**
   * Reads the counts of several requests in one query. When that fails, each request is tried
   * alone, so that one bad condition does not fail the others.
   */
  const ask = async (
    some: readonly Indexed[],
    asked: Asked,
  ): Promise<readonly (readonly [index: number, answer: Error | Found])[]> => {
    try {
      return [[-1, await askTogether(deps, some, asked)]]
    } catch (error) {
      const isMany = error instanceof TooManyGroups
      if (!isMany && !(error instanceof StoreError)) throw error
      const [first] = some
      if (some.length === 1 && first !== undefined && isMany) return [[first.index, error]]
      if (some.length === 1 && first !== undefined)
        return [[first.index, new Error('the query cannot be answered', { cause: error })]]
    }
    const answers: (readonly [number, Error | Found])[] = []
    for (const one of some) answers.push(...(await ask([one], asked)))
    return answers
  }

  const matchers = createQueryMatchers(deps.resolve)
  return {
    /** Whether the request shares a query with those of other rules. */
    canShare: (request: CountRequest): boolean =>
      sharedOf(matchers, { request, index: 0 }).length > 0,

    /** @throws AppError dependency_unavailable */
    async read(
      requests: readonly CountRequest[],
      range: ArrivalRange,
      options: RequestOptions = {},
    ): Promise<Answers> {
      const counts = requests.map((): Count[] => [])
      const errors = new Map<number, Error>()
      const all = requests.map((request, index) => ({ request, index }))
      const shared = options.isSearch === true ? [] : all.flatMap((one) => sharedOf(matchers, one))
      const { found, answered } = await askShared(deps, shared, { range, options })
      for (const [index, count] of found) counts[index]?.push(count)
      for (const some of sharesOf(all.filter(({ index }) => !answered.has(index)))) {
        const answers = await ask(some, { range, options })
        for (const [index, answer] of answers)
          if (answer instanceof Error) errors.set(index, answer)
        const single = answers.flatMap(([, answer]) => (answer instanceof Error ? [] : answer))
        for (const [index, count] of single) counts[index]?.push(count)
      }
      return counts.map((own, index) => errors.get(index) ?? own)
    },
  }
}

interface Asked {
  readonly range: ArrivalRange
  readonly options: RequestOptions
}

/** Reads the counts of requests with the same kind of counter. */
async function askTogether(
  deps: CountDeps,
  some: readonly Indexed[],
  asked: Asked,
): Promise<Found> {
  const ofEvents = some.filter(isOfEvents)
  if (ofEvents.length > 0) return await askEvents(deps, ofEvents, asked)
  const found: (readonly [number, Count])[] = []
  for (const { request, index } of some)
    for (const count of await askAlone(deps, request, asked)) found.push([index, count])
  return found
}

async function askAlone(
  deps: CountDeps,
  request: CountRequest,
  asked: Asked,
): Promise<readonly Count[]> {
  const { counter } = request
  switch (counter.kind) {
    case 'events': {
      const found = await askEvents(deps, [{ request: { ...request, counter }, index: 0 }], asked)
      return found.map(([, count]) => count)
    }
    case 'past':
      return await askPast(deps, { ...request, counter }, asked)
    case 'value':
      return await askValues(deps, { ...request, counter }, asked)
    case 'findings': {
      const { fromMs, toMs, isPast = false } = asked.range
      const range = { fromMs, toMs, isPast, everyMs: request.everyMs }
      return await countFindings(deps, counter, range, asked.options.signal)
    }
    case 'dead letters':
      return await askDead(deps, request, asked)
  }
}

async function askEvents(
  deps: CountDeps,
  some: readonly EventsIndexed[],
  { range, options }: Asked,
): Promise<Found> {
  const [first] = some
  const isLast = first?.request.isLast === true
  const found: (readonly [number, Count])[] = []
  let hasRepeats = false
  for (const question of questionsOf(deps, some, range)) {
    if (question.isOfRepeats && !hasRepeats) continue
    const { rows, ...answer } = await askQuestion(deps, question, options)
    hasRepeats = answer.hasRepeats
    if (rows.length > MAX_ROWS) throw new TooManyGroups()
    for (const { slot, group_values: group, counts } of rows)
      for (const [index, count] of counts)
        found.push([index, isLast ? { slot: count, group, count: 1 } : { slot, group, count }])
  }
  return found
}

async function askQuestion(
  { store }: CountDeps,
  { statement: sql, params }: Question,
  options: RequestOptions,
): Promise<{ readonly rows: readonly Row[]; readonly hasRepeats: boolean }> {
  const all = await store.query(sql, params, { ...options, settings: SETTINGS })
  const rows = all.filter(({ counts }) => counts.length > 0)
  return { rows, hasRepeats: rows.length < all.length }
}

async function askValues(
  deps: CountDeps,
  { counter, groupBy, everyMs, maxAgeMs = DEFAULT_AGE_MS }: RequestOf<'value'>,
  { range: { fromMs, toMs, isPast = false }, options }: Asked,
): Promise<readonly Count[]> {
  const asked = { fromMs, toMs, isPast, options: { ...options, settings: SETTINGS } }
  const counts = await countByValues(deps, { counter, groupBy, everyMs, maxAgeMs }, asked)
  if (counts.length > MAX_ROWS) throw new TooManyGroups()
  return counts
}

/** Counts earlier windows: for each slot of the range, the window that ended `agoMs` before it. */
async function askPast(
  deps: CountDeps,
  request: RequestOf<'past'>,
  asked: Asked,
): Promise<readonly Count[]> {
  const { counter, everyMs } = request
  const { query, agoMs, windowMs } = counter
  const first = Math.floor(asked.range.fromMs / everyMs)
  const end = Math.floor(asked.range.toMs / everyMs)
  if (first === end) return []
  const range = {
    fromMs: (first + 1) * everyMs - windowMs - agoMs,
    toMs: end * everyMs - agoMs,
    isPast: true,
  }
  const events = { kind: 'events', query, of: 'occurrences' } as const
  const counts = await askAlone(
    deps,
    { ...request, counter: events },
    { range, options: { ...asked.options, isSearch: true } },
  )
  return windowsOf(counts, { first, end, length: windowMs / everyMs, ago: agoMs / everyMs })
}

async function askDead(
  deps: CountDeps,
  { everyMs, groupBy }: CountRequest,
  { range: { fromMs, toMs }, options }: Asked,
): Promise<readonly Count[]> {
  const isGrouped = groupBy.length > 0
  const asked = { fromMs, toMs, everyMs, isGrouped, maxRows: MAX_ROWS + 1 }
  const counts = await countDeadLetters(deps, asked, options)
  if (counts.length > MAX_ROWS) throw new TooManyGroups()
  return counts
}

type RequestOf<K extends Counter['kind']> = CountRequest & {
  readonly counter: Extract<Counter, { readonly kind: K }>
}

interface Indexed {
  readonly request: CountRequest
  readonly index: number
}

interface EventsIndexed extends Indexed {
  readonly request: RequestOf<'events'>
}

const isOfEvents = (one: Indexed): one is EventsIndexed => one.request.counter.kind === 'events'

/** Requests that can share a query. */
function sharesOf(requests: readonly Indexed[]): readonly (readonly Indexed[])[] {
  const shares = new Map<string, Indexed[]>()
  for (const { request, index } of requests) {
    const { counter, everyMs, groupBy, isLast, maxAgeMs = DEFAULT_AGE_MS } = request
    const { isByEventTime = false } = request
    const of = [counter.kind, everyMs, isLast, maxAgeMs, isByEventTime, ...groupBy].join('\n')
    const share = shares.get(of)
    if (share === undefined) shares.set(of, [{ request, index }])
    else share.push({ request, index })
  }
  return [...shares.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / CONDITIONS_AT_ONCE) }, (_, i) =>
      all.slice(i * CONDITIONS_AT_ONCE, (i + 1) * CONDITIONS_AT_ONCE),
    ),
  )
}

interface Question {
  readonly statement: typeof eventsSql
  readonly params: Params
  /** Whether the query reads `repeat_arrivals`. It is skipped when the query before found no repeats. */
  readonly isOfRepeats: boolean
}

function questionsOf(
  deps: CountDeps,
  some: readonly EventsIndexed[],
  range: ArrivalRange,
): readonly Question[] {
  const [first] = some
  if (first === undefined) return []
  const { groupBy, everyMs, isLast, maxAgeMs = DEFAULT_AGE_MS } = first.request
  const time: Time = first.request.isByEventTime === true ? 'ts' : 'received_at'
  const groups = bound('group', (bind) => groupsSql(groupBy, bind, deps.redirects()))
  const firstsOrRepeats = (
    base: typeof eventsSql,
    requests: readonly EventsIndexed[],
  ): Question => {
    const arrival = { sql: arrivalOf(base, time), fromMs: range.fromMs }
    const slot = `intDiv(toUnixTimestamp(${arrival.sql}), ${everyMs / 1000})`
    const weight = (of: 'occurrences' | 'events'): string =>
      base === eventsSql ? (of === 'events' ? '1' : 'n') : 'repeats'
    const counts = bound('count', (bind) =>
      countsSql(deps, requests, {
        bind,
        count: (of, condition) =>
          isLast ? `maxIf(${slot}, ${condition})` : `sumIf(${weight(of)}, ${condition})`,
        endMs: range.toMs,
        arrival,
      }),
    )
    const fragments = { base, time, slot: isLast ? '0' : slot, groups, counts, maxAgeMs }
    return toQuestion(fragments, range)
  }
  const firsts = firstsOrRepeats(eventsSql, some)
  const repeated = some.filter(({ request: { counter } }) => counter.of === 'occurrences')
  if (repeated.length === 0) return [firsts]
  const isByOwnTime = range.isPast === true || time === 'ts'
  return [firsts, firstsOrRepeats(isByOwnTime ? pastRepeatsSql : repeatsSql, repeated)]
}

type Time = 'received_at' | 'ts'

const arrivalOf = (base: typeof eventsSql, time: Time = 'received_at'): string =>
  base === eventsSql ? time : 'arrived'

interface Fragments {
  /** The statement of first occurrences or of repeats. */
  readonly base: typeof eventsSql
  /** The time column of first occurrences. */
  readonly time?: Time
  readonly slot: string
  readonly groups: Condition
  readonly counts: Condition
  readonly maxAgeMs: number
  /** The most rows; default `MAX_ROWS`. One more is read to detect that there are too many. */
  readonly maxRows?: number
}

function toQuestion(
  { base, time = 'received_at', slot, groups, counts, maxAgeMs, maxRows = MAX_ROWS }: Fragments,
  { fromMs, toMs }: ArrivalRange,
): Question {
  const isOfFirsts = base === eventsSql
  const sql = base.sql
    .replace('/*slot*/', () => slot)
    .replaceAll('/*time*/', () => time)
    .replace('/*groups*/', () => groups.sql)
    .replace('/*counts*/', () => counts.sql)
  const oldestMs = fromMs - maxAgeMs - (isOfFirsts ? 0 : MAX_REPEAT_MS)
  const common = { from_ms: fromMs, to_ms: toMs, oldest_ms: Math.max(0, oldestMs) }
  const age = isOfFirsts ? { max_age_s: maxAgeMs / 1000 } : {}
  const params = { ...common, ...age, most: maxRows + 1, ...groups.params, ...counts.params }
  return { statement: { ...base, sql }, params, isOfRepeats: base === repeatsSql }
}

const sharedOf = (cache: QueryMatchers, { request, index }: Indexed): readonly SharedRequest[] => {
  const { isLast, isByEventTime, maxAgeMs = DEFAULT_AGE_MS } = request
  const canShare = !isLast && isByEventTime !== true && maxAgeMs === DEFAULT_AGE_MS
  const shared = canShare ? toShared(request, index, cache) : null
  return shared === null ? [] : [shared]
}

/**
 * Answers requests from one shared query. When that has too many rows or ClickHouse rejects it,
 * requests with attributes are left out, then those with texts, then all.
 */
async function askShared(
  deps: CountDeps,
  shared: readonly SharedRequest[],
  asked: Asked,
): Promise<{ readonly found: Found; readonly answered: ReadonlySet<number> }> {
  if (shared.length === 0) return { found: [], answered: new Set<number>() }
  const columns = columnsOf(shared)
  const hasMore = columns.texts.length > 0 || !isEmpty(columns.attributes)
  const rows =
    columns.texts.length > MAX_TEXTS || sizeOf(columns.attributes) > MAX_ATTRIBUTES
      ? null
      : await sharedRows(deps, columns, asked).catch((error: unknown) => {
          // A setting of ClickHouse can forbid searching for many texts at once.
          if (hasMore && error instanceof StoreError) return null
          throw error
        })
  if (rows === null) return await askShared(deps, withLess(shared), asked)
  const found = shareOut(shared, columns, { rows, redirects: deps.redirects() })
  return { found, answered: new Set(shared.map(({ index }) => index)) }
}

function withLess(shared: readonly SharedRequest[]): readonly SharedRequest[] {
  const bare = shared.filter(({ matcher }) => isEmpty(listsOf([matcher.attributes])))
  if (bare.length < shared.length) return bare
  const textless = shared.filter(({ matcher }) => matcher.texts.length === 0)
  return textless.length < shared.length ? textless : []
}

/** @returns null when there are too many rows */
async function sharedRows(
  deps: CountDeps,
  columns: SharedColumns,
  { range, options }: Asked,
): Promise<readonly SharedRow[] | null> {
  const groups = valuesSql(columns)
  const rows: SharedRow[] = []
  let hasRepeats = false
  for (const base of [eventsSql, repeatsSql]) {
    if (base === repeatsSql && !hasRepeats) continue
    const [occurrences, events] = base === eventsSql ? ['sum(n)', 'count()'] : ['sum(repeats)', '0']
    const counts = {
      sql: `(toUInt32(0), toInt64(${occurrences})), (toUInt32(1), toInt64(${events}))`,
      params: {},
    }
    const slot = `toUnixTimestamp(${arrivalOf(base)})`
    const fragments = { base, slot, groups, counts, maxAgeMs: DEFAULT_AGE_MS }
    const question = toQuestion({ ...fragments, maxRows: MAX_SHARED_ROWS }, range)
    const answer = await askQuestion(deps, question, options)
    hasRepeats = answer.hasRepeats
    rows.push(...answer.rows.map(toSharedRow))
    if (rows.length > MAX_SHARED_ROWS) return null
  }
  return rows
}

function toSharedRow({ slot, group_values: values, counts }: Row): SharedRow {
  const of = new Map(counts)
  return { second: slot, values, occurrences: of.get(0) ?? 0, events: of.get(1) ?? 0 }
}

interface CountsContext {
  readonly bind: Bind
  readonly count: (of: 'occurrences' | 'events', condition: string) => string
  readonly endMs: number
  readonly arrival: Arrival
}

function countsSql(
  { resolve, redirects }: CountDeps,
  some: readonly EventsIndexed[],
  { bind, count, endMs, arrival }: CountsContext,
): string {
  return some
    .map(({ request: { counter }, index }) => {
      const query = resolve(counter.query)
      const context = { bind, endMs, arrival, redirects: redirects() }
      const found = rowCondition(query, context)
      const { of, unseenMs } = counter
      const condition = unseenMs === undefined ? found : `${found} AND ${unseen(unseenMs, context)}`
      return `(toUInt32(${index}), toInt64(${count(of, condition)}))`
    })
    .join(', ')
}
