import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { PRIORITIES, SEVERITIES } from '../model/event.js'
import { HOUR_MS, HOUR_S } from '../model/time.js'
import { hasIndex, type EventFilter } from './filter.js'

/** The end of ClickHouse's DateTime, in 2106. */
const END_S = 0xffff_ffff
/** The most hours that one statement names. */
export const MAX_HOURS = 1000
const GROWTH = 6
/**
 * The counted events that are read at first when the filter has conditions that the rollup does not
 * count by, because few of them may meet those.
 */
const UNCOUNTED_MATCHES = 50_000
const ONE_THREAD = { max_threads: 1 }

interface HourCount {
  /** Seconds since 1970. */
  readonly hour: number
  /** An upper bound of the matches. */
  readonly most: number
}

const hoursSql = statement<
  Readonly<Record<string, unknown>> & { readonly from: number; readonly until: number },
  HourCount
>('event_hours')

interface Hours {
  readonly filter: EventFilter
  readonly fromMs: number
  readonly toMs: number
}

/** The newest hours of a time range that can hold matches, by the hourly rollup: at most MAX_HOURS of them. */
export async function readHours(
  store: Pick<Store, 'query'>,
  { filter, fromMs, toMs }: Hours,
  options: RequestOptions,
): Promise<readonly HourCount[]> {
  if (toMs <= fromMs) return []
  const params = {
    ...toCounters(filter),
    sources: filter.sources ?? [],
    from: Math.floor(fromMs / HOUR_MS) * HOUR_S,
    until: Math.min(Math.ceil(toMs / HOUR_MS) * HOUR_S, END_S),
    limit: MAX_HOURS,
  }
  return await store.query(hoursSql, params, { ...options, settings: ONE_THREAD })
}

/** 1 for each severity and priority of the filter, 0 for the others, as parameters of a statement. */
export function toCounters({
  severities,
  priorities,
}: EventFilter): Readonly<Record<string, 0 | 1>> {
  const isWanted = (wanted: readonly string[] | null, one: string): 0 | 1 =>
    wanted === null || wanted.includes(one) ? 1 : 0
  return Object.fromEntries([
    ...SEVERITIES.map((one) => [one.toLowerCase(), isWanted(severities, one)]),
    ...PRIORITIES.map((one) => [one.toLowerCase(), isWanted(priorities, one)]),
  ])
}

interface HoursOfRange {
  /** Newest first, in seconds since 1970. */
  readonly hours: readonly number[]
  /** An upper bound of their matches. */
  readonly most: number
}

/** The hours that fill the page, then six times as many matches in each range; with an index, all the rest. */
export function* splitHours(
  counts: readonly HourCount[],
  filter: EventFilter,
  limit: number,
): Generator<HoursOfRange> {
  // Half of the occurrences may be repeats.
  let wanted = isCountedExactly(filter) ? 2 * limit : UNCOUNTED_MATCHES
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

/** Whether the hourly rollup counts nothing but matches: it counts by source, severity and priority. */
const isCountedExactly = ({ templateIds, terms, clauses }: EventFilter): boolean =>
  templateIds === null && terms.length + clauses.length === 0

const hasCounter = ({ severities, priorities, sources }: EventFilter): boolean =>
  severities !== null || priorities !== null || sources !== null

export const isFiltered = (filter: EventFilter): boolean =>
  hasCounter(filter) || !isCountedExactly(filter)

/** Whether the hourly rollup rules out hours without a match. */
export const isCountedByHour = (filter: EventFilter): boolean =>
  hasCounter(filter) || isCountedExactly(filter)
