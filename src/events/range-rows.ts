import { statement, type Statement } from '../clickhouse/statement.js'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import type { EventType, Priority, Severity } from '../model/event.js'
import { DAY_MS, HOUR_MS } from '../model/time.js'
import type { Condition } from './bind.js'
import { asOnePart, atMost, toConditions, type Matches } from './conditions.js'
import type { EventFilter } from './filter.js'

/** The last event of the page before. */
export interface EventPosition {
  readonly tsMs: number
  readonly id: number
}

/** By time and id. */
export type Order = 'asc' | 'desc'

/** A row of a list of events. */
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
  readonly span_id: string
  readonly constant_text: string
  readonly variables: string
  readonly attribute_names: string
  readonly attribute_values: string
  readonly tags_text: string
  readonly correction_reason: string
  /** The bytes of text up to and including this row. Present only when the page has a bound of bytes. */
  readonly bytes?: number
}

export interface TimeRange {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  /** The hours of the range that can contain matches, in seconds since 1970; null for all of them. */
  readonly hours: readonly number[] | null
  /** Whether the range is read by one thread, which is the fastest for a small one. */
  readonly isSmall: boolean
  /** Whether few of many events match. ClickHouse then evaluates all indexes before it reads (bench/NOTES.md). */
  readonly isSparse: boolean
}

interface RangeQuery {
  readonly range: TimeRange
  readonly filter: EventFilter
  readonly after: EventPosition | null
  readonly order: Order
  /** Further conditions. */
  readonly more: readonly Condition[]
  /** The end of the requested time range. */
  readonly endMs: number
  readonly matches: Matches
  readonly limit: number
  /** The most bytes of text; null for no bound. */
  readonly mostBytes: number | null
}

type Params = Readonly<Record<string, unknown>>

const pageSql = statement<Params, ListedRow>('event_page')
const boundedSql = statement<Params, ListedRow>('event_page_bounded')

/** The end of ClickHouse's DateTime, in 2106. */
export const END_MS = 0xffff_ffff * 1000

/** The most by which an event's time is later than its arrival: a day, and an hour for clocks that differ. */
export const MAX_AHEAD_MS = DAY_MS + HOUR_MS

/** Reads the first matching events of a time range with one statement. */
export async function readRange(
  store: Pick<Store, 'query'>,
  { range, filter, after, order, more, endMs, matches, limit, mostBytes }: RangeQuery,
  options: RequestOptions,
): Promise<readonly ListedRow[]> {
  const conditions = [
    ...toConditions(filter, { found: matches, endMs }),
    ...atMost(1, [...more, ...beyondPosition(after, order)]),
    ...withinHours(range.hours),
  ]
  const settings = {
    ...(range.isSmall ? { max_threads: 1 } : {}),
    ...(range.isSparse ? { use_skip_indexes_on_data_read: 0 as const } : {}),
  }
  const asked = { ...range, conditions, order, limit, mostBytes }
  return await readRows(store, asked, { ...options, settings })
}

interface RowQuery extends Pick<TimeRange, 'fromMs' | 'toMs'> {
  readonly conditions: readonly Condition[]
  /** Default: the newest first. */
  readonly order?: Order
  readonly limit: number
  /** The most bytes of text; null, or left out, for no bound. */
  readonly mostBytes?: number | null
}

/** Reads the first events of a time range that meet some conditions. */
export async function readRows(
  store: Pick<Store, 'query'>,
  { fromMs, toMs, conditions, order = 'desc', limit, mostBytes = null }: RowQuery,
  options: RequestOptions,
): Promise<readonly ListedRow[]> {
  const params = {
    from_ms: fromMs,
    to_ms: toMs,
    arrived_ms: Math.max(0, fromMs - MAX_AHEAD_MS),
    limit,
    ...(mostBytes === null ? {} : { most_bytes: mostBytes }),
    ...Object.assign({}, ...conditions.map((condition) => condition.params)),
  }
  const sql = withConditions(mostBytes === null ? pageSql : bounded, conditions, order)
  return await store.query(sql, params, options)
}

const bounded = { ...boundedSql, sql: boundedSql.sql.replace('/*page*/', () => pageSql.sql) }

const withConditions = (
  { name, sql }: Statement<Params, ListedRow>,
  conditions: readonly Condition[],
  order: Order,
): Statement<Params, ListedRow> => ({
  name,
  sql: sql
    .replace('/*conditions*/', () =>
      conditions.map((condition) => `AND ${condition.sql}`).join('\n    '),
    )
    .replaceAll('/*order*/', order === 'asc' ? 'ASC' : 'DESC'),
})

/** The range already ends at the time of the position. */
export function beyondPosition(after: EventPosition | null, order: Order): readonly Condition[] {
  if (after === null) return []
  const beyond = order === 'asc' ? '>' : '<'
  const sql =
    `ts ${beyond} fromUnixTimestamp64Milli({after_ms:Int64}) OR` +
    ` (ts = fromUnixTimestamp64Milli({after_ms:Int64}) AND id ${beyond} {after_id:UInt64})`
  return [asOnePart({ sql, params: { after_ms: after.tsMs, after_id: after.id } })]
}

const withinHours = (hours: readonly number[] | null): readonly Condition[] =>
  hours === null
    ? []
    : [{ sql: "toStartOfHour(ts) IN {hours:Array(DateTime('UTC'))}", params: { hours } }]
