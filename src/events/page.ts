/*
 * A page of events is read by time ranges, from the newest backwards, one statement each, until it is full. The next page
 * continues after the last event in (time, id) order (keyset pagination), so each event is listed once without an OFFSET.
 *
 * The first range holds the newest 50,000 events by the counts of the rollups. Then there are two ways to go on:
 * - The hourly rollup counts by source, severity and priority. For a filter by these it names the hours that can hold
 *   matches, and a range is as many of these hours as are needed to fill the page.
 * - For words, templates, types and environments the next range holds six times as many events, more when the matches so far
 *   ask for it. Without a match in the first range, and with an index, it is all the rest.
 *
 * Before a range is searched for words, the dictionaries give the constant texts and hosts that contain them. A word in
 * neither occurs in variables only: it is rare, and among few events one statement searches all the rest.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement, type Statement } from '../clickhouse/statement.js'
import {
  PRIORITIES,
  SEVERITIES,
  type EventType,
  type Priority,
  type Severity,
} from '../model/event.js'
import { DAY_MS, HOUR_MS, HOUR_S } from '../model/time.js'
import {
  asOnePart,
  hasIndex,
  hasWordOfVariables,
  toConditions,
  type Condition,
  type EventFilter,
} from './conditions.js'
import type { Density, DensityReader } from './density.js'
import { createDictionary, type Dictionary } from './dictionary-matches.js'

/** The last event of the page before. */
export interface EventPosition {
  readonly tsMs: number
  readonly id: number
}

export interface EventQuery {
  readonly filter: EventFilter
  readonly fromMs: number
  /** Exclusive; null for no bound. */
  readonly toMs: number | null
  readonly after: EventPosition | null
  readonly limit: number
}

/** What a list shows of an event. */
export interface ListedRow {
  readonly id: number
  readonly ts_ms: number
  readonly n: number
  readonly source: string
  readonly type: EventType
  readonly severity: Severity
  readonly priority: Priority
  readonly template: string
  readonly host: string
  readonly environment: string
  readonly trace_id: string
  readonly constant_text: string
  readonly variables: string
  readonly tags: string
  readonly correction_reason: string
}

type Params = Readonly<Record<string, unknown>>

interface HourCount {
  /** Seconds since 1970. */
  readonly hour: number
  /** An upper bound of the matches. */
  readonly most: number
}

const pageSql = statement<Params, ListedRow>('event_page')
const hoursSql = statement<Params & { readonly from: number; readonly until: number }, HourCount>(
  'event_hours',
)

/** No event arrives more than a day before its time; an hour is for clocks that differ. */
export const MAX_AHEAD_MS = DAY_MS + HOUR_MS

/** The end of ClickHouse's DateTime, in 2106. */
const END_MS = 0xffff_ffff * 1000
const SHORT_MS = 2 * HOUR_MS
const FIRST_EVENTS = 50_000
/** For a list without a filter: half of the occurrences may be repeats, and a few granules are read in any case. */
const FIRST_EVENTS_UNFILTERED = 5_000
const GROWTH = 6
/** A further statement takes as long as reading 100,000 rows (bench/NOTES.md). */
const BARREN_GROWTH = 36
/** A range is longer by this factor than the density of the matches requires. */
const RESERVE = 1.5
/** An index lookup in this many events takes less time than a further statement (bench/NOTES.md). */
const EVENTS_AT_ONCE = 3_000_000
/** Starting a second thread takes longer than reading this many rows from the parts of this many hours (bench/NOTES.md). */
const ROWS_OF_A_THREAD = 50_000
const HOURS_OF_A_THREAD = 24
/** The most hours that one statement names. */
const MAX_HOURS = 1000
const ONE_THREAD = { max_threads: 1 }

interface TimeRange {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  /** The hours of the range that can contain matches, in seconds since 1970; null for all of them. */
  readonly hours: readonly number[] | null
  /** One thread reads it fastest. */
  readonly isSmall: boolean
}

interface Walk {
  readonly query: EventQuery
  readonly store: Pick<Store, 'query'>
  readonly options: RequestOptions
  readonly density: Density
  readonly dictionary: Dictionary
  /** Exclusive. */
  readonly endMs: number
  readonly rows: ListedRow[]
}

export async function readPage(
  store: Pick<Store, 'query'>,
  densityReader: DensityReader,
  query: EventQuery,
  signal: AbortSignal | undefined,
): Promise<readonly ListedRow[]> {
  const { filter, toMs, after, limit } = query
  const endMs = Math.min(toMs ?? END_MS, END_MS, after === null ? END_MS : after.tsMs + 1)
  if (endMs <= query.fromMs || filter.sources?.length === 0) return []
  const options = signal === undefined ? {} : { signal }
  const density = await densityReader.read(options)
  const dictionary = createDictionary(store, filter, options)
  const walk: Walk = { query, store, options, density, dictionary, endMs, rows: [] }
  for await (const range of timeRanges(walk)) {
    walk.rows.push(...(await readRange(walk, range)))
    if (walk.rows.length >= limit) break
  }
  return walk.rows
}

async function* timeRanges(walk: Walk): AsyncGenerator<TimeRange> {
  const { query, endMs } = walk
  const isCounted = isCountedByHour(query.filter)
  // The hours of a short time range are hardly worth a statement.
  const isShort = Math.min(endMs, Date.now()) - query.fromMs <= SHORT_MS
  if (await isRareWord(walk)) yield { ...wholeRange(walk, endMs), isSmall: true }
  else if (query.filter.sources === null || !isCounted) yield* newestFirst(walk, isCounted, isShort)
  // One source among many has few of the newest events, and the rollup is faster in naming its hours.
  else if (isShort) yield wholeRange(walk, endMs)
  else yield* countedRanges(walk, endMs, readHours(walk, endMs))
}

/** The newest events, then the rest by hours or in ranges of ever more events. */
async function* newestFirst(
  walk: Walk,
  isCounted: boolean,
  isShort: boolean,
): AsyncGenerator<TimeRange> {
  const { query, density, endMs } = walk
  const hasFilter = isFiltered(query.filter)
  const events = hasFilter ? FIRST_EVENTS : FIRST_EVENTS_UNFILTERED
  const fromMs = Math.max(query.fromMs, density.startOf(endMs, events))
  // Read in parallel with the first range, in case that does not fill the page.
  const hours = isCounted && hasFilter && !isShort ? readHours(walk, fromMs) : null
  hours?.catch(() => undefined)
  yield { fromMs, toMs: endMs, hours: null, isSmall: true }
  if (!isCounted) yield* growingRanges(walk, fromMs)
  else if (!isShort) yield* countedRanges(walk, fromMs, hours ?? readHours(walk, fromMs))
  else if (fromMs > query.fromMs) yield wholeRange(walk, fromMs)
}

const wholeRange = ({ query, density }: Walk, toMs: number): TimeRange => ({
  fromMs: query.fromMs,
  toMs,
  hours: null,
  isSmall: density.count(query.fromMs, toMs) <= ROWS_OF_A_THREAD,
})

/** Whether one of the words occurs in variables only and the time range has few events. */
async function isRareWord({ query, density, dictionary, endMs }: Walk): Promise<boolean> {
  const { filter, fromMs } = query
  const isFew = density.count(fromMs, endMs) <= EVENTS_AT_ONCE
  if (!isFew || !hasIndex({ templateIds: [], search: filter.search })) return false
  return hasWordOfVariables(filter.search, await dictionary.matches(fromMs, endMs))
}

/** Ranges of ever more events. */
function* growingRanges({ query, density, rows }: Walk, endMs: number): Generator<TimeRange> {
  const { filter, fromMs: firstMs, limit } = query
  const barrenGrowth = hasIndex(filter) ? Infinity : BARREN_GROWTH
  let toMs = endMs
  let events = FIRST_EVENTS
  let lookedThrough = FIRST_EVENTS
  while (toMs > firstMs) {
    const found = rows.length
    const missing = (lookedThrough * (limit - found) * RESERVE) / found
    events = found > 0 ? Math.max(events * GROWTH, missing) : events * barrenGrowth
    const fromMs = Math.max(firstMs, density.startOf(toMs, events))
    yield { fromMs, toMs, hours: null, isSmall: false }
    lookedThrough += events
    toMs = fromMs
  }
}

/** Ranges of the hours that the rollup names. */
async function* countedRanges(
  walk: Walk,
  endMs: number,
  newestHours: Promise<readonly HourCount[]>,
): AsyncGenerator<TimeRange> {
  const { query, density } = walk
  const { filter, fromMs: firstMs, limit } = query
  let toMs = endMs
  for (let counts = await newestHours; ; counts = await readHours(walk, toMs)) {
    for (const { hours, most } of stepsOf(counts, filter, limit)) {
      const [newest = 0] = hours
      const oldest = hours.at(-1) ?? 0
      const fromMs = Math.max(firstMs, oldest * 1000)
      const share = Math.min(1, limit / most)
      const isSmall =
        hours.length <= HOURS_OF_A_THREAD && density.count(fromMs, toMs) * share <= ROWS_OF_A_THREAD
      const hasGaps = newest - oldest !== (hours.length - 1) * HOUR_S
      const untilMs = Math.min(toMs, (newest + HOUR_S) * 1000)
      yield { fromMs, toMs: untilMs, hours: hasGaps ? hours : null, isSmall }
      toMs = fromMs
    }
    if (counts.length < MAX_HOURS || toMs <= firstMs) return
  }
}

interface Step {
  /** Newest first, in seconds since 1970. */
  readonly hours: readonly number[]
  /** An upper bound of their matches. */
  readonly most: number
}

/** The hours that fill the page, then six times as many matches in each step; with an index, all the rest. */
function* stepsOf(
  counts: readonly HourCount[],
  filter: EventFilter,
  limit: number,
): Generator<Step> {
  // Half of the occurrences may be repeats, and few may match conditions that the rollup does not count by.
  let wanted = isCountedWhole(filter) ? 2 * limit : FIRST_EVENTS
  let hours: number[] = []
  let most = 0
  for (const count of counts) {
    hours.push(count.hour)
    most += count.most
    if (most < wanted) continue
    yield { hours, most }
    hours = []
    most = 0
    wanted *= hasIndex(filter) ? Infinity : GROWTH
  }
  if (hours.length > 0) yield { hours, most }
}

/** The newest hours that can hold matches before a time. */
async function readHours(
  { query, store, options }: Walk,
  toMs: number,
): Promise<readonly HourCount[]> {
  const { filter, fromMs } = query
  const from = Math.floor(fromMs / HOUR_MS) * HOUR_S
  const until = Math.min(Math.ceil(toMs / HOUR_MS) * HOUR_S, END_MS / 1000)
  if (toMs <= fromMs) return []
  const params = {
    ...toCounters(filter),
    sources: filter.sources ?? [],
    from,
    until,
    limit: MAX_HOURS,
  }
  return await store.query(hoursSql, params, { ...options, settings: ONE_THREAD })
}

/** The parameters of event_hours: 1 for each severity and priority of the filter, 0 for the others. */
function toCounters({ severities, priorities }: EventFilter): Readonly<Record<string, 0 | 1>> {
  const isWanted = (wanted: readonly string[], one: string): 0 | 1 =>
    wanted.length === 0 || wanted.includes(one) ? 1 : 0
  return Object.fromEntries([
    ...SEVERITIES.map((one) => [one.toLowerCase(), isWanted(severities, one)]),
    ...PRIORITIES.map((one) => [one.toLowerCase(), isWanted(priorities, one)]),
  ])
}

/** Whether the hourly rollup counts nothing but matches. */
const isCountedWhole = ({ types, environments, templateIds, search }: EventFilter): boolean =>
  types.length + environments.length + templateIds.length === 0 && search.trim() === ''

const hasCounter = ({ severities, priorities, sources }: EventFilter): boolean =>
  severities.length + priorities.length > 0 || sources !== null

const isFiltered = (filter: EventFilter): boolean => hasCounter(filter) || !isCountedWhole(filter)

/** Whether the hourly rollup rules out hours without a match. */
const isCountedByHour = (filter: EventFilter): boolean =>
  hasCounter(filter) || isCountedWhole(filter)

async function readRange(walk: Walk, range: TimeRange): Promise<readonly ListedRow[]> {
  const { query, store, options, dictionary, rows, endMs } = walk
  const found = dictionary.matches(range.fromMs, range.toMs)
  // Read in parallel with this range, in case that does not fill the page.
  dictionary.matches(query.fromMs, range.fromMs).catch(() => undefined)
  const conditions = [
    ...toConditions(query.filter, await found),
    ...belowPosition(query.after),
    ...withinHours(range.hours),
  ]
  const params = {
    from_ms: range.fromMs,
    to_ms: range.toMs,
    arrived_ms: Math.max(0, range.fromMs - MAX_AHEAD_MS),
    limit: query.limit - rows.length,
    ...Object.assign({}, ...conditions.map((condition) => condition.params)),
  }
  // With few matches in many granules, ClickHouse should evaluate all indexes before it reads (bench/NOTES.md).
  const isSparse = rows.length === 0 && range.toMs < endMs && hasIndex(query.filter)
  const settings = {
    ...(range.isSmall ? ONE_THREAD : {}),
    ...(isSparse ? { use_skip_indexes_on_data_read: 0 as const } : {}),
  }
  return await store.query(withConditions(conditions), params, { ...options, settings })
}

const withConditions = (conditions: readonly Condition[]): Statement<Params, ListedRow> => ({
  name: pageSql.name,
  sql: pageSql.sql.replace('/*conditions*/', () =>
    conditions.map((condition) => `AND ${condition.sql}`).join('\n    '),
  ),
})

/** The range ends at the position's time already. */
const belowPosition = (after: EventPosition | null): readonly Condition[] =>
  after === null
    ? []
    : [
        asOnePart({
          sql:
            'ts < fromUnixTimestamp64Milli({after_ms:Int64}) OR' +
            ' (ts = fromUnixTimestamp64Milli({after_ms:Int64}) AND id < {after_id:UInt64})',
          params: { after_ms: after.tsMs, after_id: after.id },
        }),
      ]

const withinHours = (hours: readonly number[] | null): readonly Condition[] =>
  hours === null
    ? []
    : [{ sql: "toStartOfHour(ts) IN {hours:Array(DateTime('UTC'))}", params: { hours } }]
