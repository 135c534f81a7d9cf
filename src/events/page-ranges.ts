/*
 * Chooses the time ranges in which a page of events is read, in the order of the page. The first range holds the newest 50,000
 * events by the counts of the rollups. Further ranges are chosen in two ways:
 * - The hourly rollup counts by source, severity and priority. For a filter by these it names the hours that can hold
 *   matches, and a range is as many of these hours as are needed to fill the page.
 * - For words, templates, types and environments the next range holds six times as many events, or more when few events have
 *   matched so far. Without a match in the first range, and with an index, it is all the rest.
 *
 * A word that no dictionary has occurs in variables only. It is rare, and among few events one statement searches all of them.
 * Oldest first, the ranges begin at the start of the time range and grow in the same way.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { HOUR_MS, HOUR_S } from '../model/time.js'
import { hasWordOfVariables } from './conditions.js'
import { isCountedByHour, isFiltered, MAX_HOURS, readHours, splitHours } from './counted-hours.js'
import type { Density } from './density.js'
import type { Dictionary } from './dictionary-matches.js'
import { hasIndex, hasWord, type EventFilter } from './filter.js'
import type { ListedRow, Order, TimeRange } from './range-rows.js'

const SHORT_MS = 2 * HOUR_MS
const FIRST_EVENTS = 50_000
/**
 * The size of the first range of a list without a filter: half of the occurrences may be repeats,
 * and a few granules are read in any case.
 */
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

export interface RangeSearch {
  readonly query: {
    readonly filter: EventFilter
    readonly fromMs: number
    readonly order?: Order
    readonly limit: number
  }
  readonly store: Pick<Store, 'query'>
  readonly options: RequestOptions
  readonly density: Density
  readonly dictionary: Dictionary
  /** The start of the range that is left to read. Events that began earlier belong to it when they are repeated in it. */
  readonly startMs: number
  /** Exclusive. */
  readonly endMs: number
  /** The events that were found in the ranges so far. */
  readonly rows: readonly ListedRow[]
}

/** A range is chosen when the one before it was read. */
export const rangesOf = (search: RangeSearch): AsyncGenerator<TimeRange> =>
  search.query.order === 'asc' ? oldestFirst(search) : newestFirst(search)

/**
 * Ranges from the oldest on, each with more events than the one before; with an index and few
 * matches so far, one range for all the rest.
 */
async function* oldestFirst(search: RangeSearch): AsyncGenerator<TimeRange> {
  const { query, density, startMs, endMs, rows } = search
  if (await isRareWord(search)) {
    yield { ...wholeRange(search, endMs), ...RARE }
    return
  }
  let events = isFiltered(query.filter) ? FIRST_EVENTS : FIRST_EVENTS_UNFILTERED
  for (let fromMs = startMs; fromMs < endMs;) {
    const isSparse = rows.length === 0 && fromMs > startMs && hasIndex(query.filter)
    const toMs = isSparse ? endMs : Math.min(endMs, density.endOf(fromMs, events))
    yield { fromMs, toMs, hours: null, isSmall: fromMs === startMs, isSparse }
    events *= rows.length === 0 ? BARREN_GROWTH : GROWTH
    fromMs = toMs
  }
}

/** The newest first. */
async function* newestFirst(search: RangeSearch): AsyncGenerator<TimeRange> {
  const { query, endMs } = search
  const isCounted = isCountedByHour(query.filter)
  // Reading the hours of a short time range costs as much as it gains.
  const isShort = Math.min(endMs, Date.now()) - query.fromMs <= SHORT_MS
  if (await isRareWord(search)) yield { ...wholeRange(search, endMs), ...RARE }
  else if (query.filter.sources === null || !isCounted)
    yield* newestEvents(search, isCounted, isShort)
  // One source among many has few of the newest events, so its hours are read from the rollup at once.
  else if (isShort) yield wholeRange(search, endMs)
  else yield* countedRanges(search, endMs)
}

/** The newest events, then the rest: by hours, or in growing ranges. */
async function* newestEvents(
  search: RangeSearch,
  isCounted: boolean,
  isShort: boolean,
): AsyncGenerator<TimeRange> {
  const { query, startMs, endMs } = search
  const hasFilter = isFiltered(query.filter)
  const fromMs = startOf(search, endMs, hasFilter ? FIRST_EVENTS : FIRST_EVENTS_UNFILTERED)
  yield { fromMs, toMs: endMs, hours: null, isSmall: true, isSparse: false }
  if (!isCounted) yield* growingRanges(search, fromMs)
  else if (!isShort) yield* countedRanges(search, fromMs)
  else if (fromMs > startMs) yield wholeRange(search, fromMs)
}

/** Where the newest events before a time begin. A short rest before the time range is added to the range. */
function startOf({ query, density, startMs }: RangeSearch, toMs: number, events: number): number {
  const fromMs = density.startOf(toMs, events)
  return fromMs <= query.fromMs ? startMs : fromMs
}

const hoursBefore = (
  { query: { filter }, store, options, startMs }: RangeSearch,
  toMs: number,
): ReturnType<typeof readHours> => readHours(store, { filter, fromMs: startMs, toMs }, options)

const wholeRange = ({ density, startMs }: RangeSearch, toMs: number): TimeRange => ({
  fromMs: startMs,
  toMs,
  hours: null,
  isSmall: density.count(startMs, toMs) <= ROWS_OF_A_THREAD,
  isSparse: false,
})

/** Few granules can contain the word, so the indexes are evaluated before any part is opened. */
const RARE = { isSmall: true, isSparse: true } as const

/** Whether only variables contain one of the words, and the time range has few events. */
async function isRareWord(search: RangeSearch): Promise<boolean> {
  const { density, dictionary, startMs, endMs } = search
  const { filter } = search.query
  const isFew = density.count(startMs, endMs) <= EVENTS_AT_ONCE
  if (!isFew || !hasWord(filter)) return false
  return hasWordOfVariables(filter, await dictionary.matches(startMs, endMs))
}

/** Growing ranges; with an index and few matches so far, one range for all the rest. */
function* growingRanges(search: RangeSearch, endMs: number): Generator<TimeRange> {
  const { rows, startMs } = search
  const { filter, limit } = search.query
  let toMs = endMs
  let events = FIRST_EVENTS
  let lookedThrough = FIRST_EVENTS
  while (toMs > startMs) {
    const found = rows.length
    const missing = found === 0 ? Infinity : (lookedThrough * (limit - found) * RESERVE) / found
    const isSparse = hasIndex(filter) && missing > EVENTS_AT_ONCE
    if (isSparse) events = Infinity
    else events = found === 0 ? events * BARREN_GROWTH : Math.max(events * GROWTH, missing)
    const fromMs = startOf(search, toMs, events)
    yield { fromMs, toMs, hours: null, isSmall: false, isSparse }
    lookedThrough += events
    toMs = fromMs
  }
}

/** Ranges made of the hours that the rollup names. */
async function* countedRanges(search: RangeSearch, endMs: number): AsyncGenerator<TimeRange> {
  const { query, density, rows, startMs } = search
  const { filter, limit } = query
  let toMs = endMs
  for (;;) {
    const counts = await hoursBefore(search, toMs)
    for (const { hours, most } of splitHours(counts, filter, limit)) {
      const [newest = 0] = hours
      const oldest = hours.at(-1) ?? 0
      const fromMs = Math.max(startMs, oldest * 1000)
      const share = Math.min(1, limit / most)
      const isSmall =
        hours.length <= HOURS_OF_A_THREAD && density.count(fromMs, toMs) * share <= ROWS_OF_A_THREAD
      const hasGaps = newest - oldest !== (hours.length - 1) * HOUR_S
      const isSparse = rows.length === 0 && toMs < search.endMs && hasIndex(filter)
      const untilMs = Math.min(toMs, (newest + HOUR_S) * 1000)
      yield { fromMs, toMs: untilMs, hours: hasGaps ? hours : null, isSmall, isSparse }
      toMs = fromMs
    }
    if (counts.length < MAX_HOURS || toMs <= startMs) return
  }
}
