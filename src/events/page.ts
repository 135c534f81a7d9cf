/*
 * A page of events is read by time ranges, from the newest backwards, one statement each, until it is full. The next page
 * continues after the last event in (time, id) order (keyset pagination), so each event is listed once without an OFFSET.
 *
 * The first range holds the newest 50,000 events by the counts of the rollups. Further ranges are
 * chosen in two ways:
 * - The hourly rollup counts by source, severity and priority. For a filter by these it names the hours that can hold
 *   matches, and a range is as many of these hours as are needed to fill the page.
 * - For words, templates, types and environments the next range holds six times as many events, more when the matches so far
 *   ask for it. Without a match in the first range, and with an index, it is all the rest.
 *
 * Oldest first, the ranges begin at the start of the time range and grow in the same way.
 *
 * Events that began before the time range and are repeated in it belong to it. The ranges reach back by the deduplication window
 * for them. Few events match there, and a lookup of repeats is expensive: it takes 36 ms of CPU with 20 million events. So a range
 * is read without it first, and only when that finds an event from before the time range are its repeats looked up.
 *
 * Before a range is searched for words, the dictionaries give the constant texts and hosts that contain them. A word in
 * neither occurs in variables only: it is rare, and among few events one statement searches all the rest.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import type { ListedEvent } from '../model/event.js'
import { HOUR_MS, HOUR_S } from '../model/time.js'
import { hasWordOfVariables, type Matches } from './conditions.js'
import { isCountedByHour, isFiltered, MAX_HOURS, readHours, splitHours } from './counted-hours.js'
import type { Density, DensityReader } from './density.js'
import { createDictionary, type Dictionary } from './dictionary-matches.js'
import { hasIndex, hasWord, matchesNothing, type EventFilter } from './filter.js'
import { beginningMs, repeatedWithin, type RangeQuestion } from './occurrences.js'
import {
  END_MS,
  readRange,
  type EventPosition,
  type ListedRow,
  type Order,
  type TimeRange,
} from './range-rows.js'
import { renamed, type Condition } from './bind.js'

export interface EventQuery {
  readonly filter: EventFilter
  readonly fromMs: number
  /** Exclusive; null for no bound. */
  readonly toMs: number | null
  /** The events beyond this one in the order that is asked for. */
  readonly after: EventPosition | null
  /** Default: the newest first. */
  readonly order?: Order
  readonly limit: number
}

interface PageReader {
  readonly store: Pick<Store, 'query'>
  readonly density: DensityReader
  /** How long after its first occurrence an event can be repeated. */
  readonly windowMs: number
}

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

/**
 * The most bytes of text in a page. Only long pages use this bound: a short one holds little in any
 * case.
 */
const MOST_BYTES = 16 * 1024 * 1024
const SHORT_PAGE = 101

export interface EventPage {
  readonly events: readonly ListedEvent[]
  /** Whether there are fewer events than were asked for because of the bytes of their texts. */
  readonly isCut: boolean
}

/** The rows of a page, in order. */
interface RowPage {
  readonly rows: readonly ListedRow[]
  readonly isCut: boolean
}

interface Walk {
  readonly query: EventQuery
  readonly store: Pick<Store, 'query'>
  readonly options: RequestOptions
  readonly density: Density
  readonly dictionary: Dictionary
  /**
   * The start of the range that is left to read. Events that began earlier belong to it when they
   * are repeated in it.
   */
  readonly startMs: number
  /** Exclusive. */
  readonly endMs: number
  readonly rows: ListedRow[]
  /** The bytes of text that still fit into the page; null for no bound. */
  bytesLeft: number | null
}

export async function readPage(
  { store, density: densityReader, windowMs }: PageReader,
  query: EventQuery,
  signal: AbortSignal | undefined,
): Promise<RowPage> {
  const { filter, fromMs } = query
  const toMs = Math.min(query.toMs ?? END_MS, END_MS)
  if (toMs <= fromMs || matchesNothing(filter)) return { rows: [], isCut: false }
  const options = { isSearch: true, ...(signal === undefined ? {} : { signal }) }
  const density = await densityReader.read(options)
  const dictionary = createDictionary(store, filter, options)
  const asked = { fromMs, toMs, windowMs }
  const bytesLeft = query.limit > SHORT_PAGE ? MOST_BYTES : null
  const walk: Walk = {
    query,
    store,
    options,
    density,
    dictionary,
    rows: [],
    bytesLeft,
    ...leftOf(query, asked),
  }
  return await fill(walk, renamed(repeatedWithin(asked), 'repeated_'))
}

async function fill(walk: Walk, repeated: Condition): Promise<RowPage> {
  const { query, dictionary, rows, startMs } = walk
  const { order = 'desc', limit } = query
  for await (const range of order === 'asc' ? oldestFirst(walk) : newestFirst(walk)) {
    const found = dictionary.matches(range.fromMs, range.toMs)
    // The hours are read in parallel with the first range, in case it does not fill the page.
    if (order === 'desc' && range.fromMs > startMs)
      dictionary.matches(startMs, range.fromMs).catch(() => undefined)
    await takeRange(walk, { range, repeated, matches: await found })
    if (isFull(walk)) break
  }
  return { rows, isCut: rows.length < limit && isFull(walk) }
}

const isFull = ({ query, rows, bytesLeft }: Walk): boolean =>
  rows.length >= query.limit || (bytesLeft !== null && bytesLeft <= 0)

/** Adds the events of a range to the page. @param asked.repeated the condition on those that began before the time range */
async function takeRange(
  walk: Walk,
  asked: { readonly range: TimeRange; readonly repeated: Condition; readonly matches: Matches },
): Promise<void> {
  const { query, rows, store, options } = walk
  const { filter, after, limit, order = 'desc', fromMs: beginMs } = query
  const { range, repeated, matches } = asked
  const endMs = Math.min(query.toMs ?? END_MS, Date.now())
  const read = async (part: Partial<TimeRange>, more: readonly Condition[] = []) => {
    const left = {
      more,
      after,
      order,
      endMs,
      limit: limit - rows.length,
      mostBytes: walk.bytesLeft,
    }
    return await readRange(
      store,
      { range: { ...range, ...part }, filter, matches, ...left },
      options,
    )
  }
  const take = (some: readonly ListedRow[]): void => {
    rows.push(...some)
    if (walk.bytesLeft !== null) walk.bytesLeft -= some.at(-1)?.bytes ?? 0
  }
  const all = await read({})
  const within = all.filter(({ ts_ms: tsMs }) => tsMs >= beginMs)
  const hasEarlier = within.length < all.length
  if (order === 'desc' || !hasEarlier) take(within)
  if (!hasEarlier || isFull(walk)) return
  take(await read({ toMs: Math.min(range.toMs, beginMs) }, [repeated]))
  if (order === 'asc' && range.toMs > beginMs && !isFull(walk))
    take(await read({ fromMs: beginMs }))
}

/** The part of the time range that lies beyond the position of the last page. */
function leftOf(
  { after, order }: EventQuery,
  range: Pick<RangeQuestion, 'fromMs' | 'toMs' | 'windowMs'>,
): Pick<Walk, 'startMs' | 'endMs'> {
  const begunMs = beginningMs(range)
  if (after === null) return { startMs: begunMs, endMs: range.toMs }
  return order === 'asc'
    ? { startMs: after.tsMs, endMs: range.toMs }
    : { startMs: begunMs, endMs: Math.min(range.toMs, after.tsMs + 1) }
}

/**
 * Ranges from the oldest on, each with more events than the one before; with an index and few
 * matches so far, one range for all the rest.
 */
async function* oldestFirst(walk: Walk): AsyncGenerator<TimeRange> {
  const { query, density, startMs, endMs, rows } = walk
  if (await isRareWord(walk)) {
    yield { ...wholeRange(walk, endMs), ...RARE }
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
async function* newestFirst(walk: Walk): AsyncGenerator<TimeRange> {
  const { query, endMs } = walk
  const isCounted = isCountedByHour(query.filter)
  // Reading the hours of a short time range costs as much as it gains.
  const isShort = Math.min(endMs, Date.now()) - query.fromMs <= SHORT_MS
  if (await isRareWord(walk)) yield { ...wholeRange(walk, endMs), ...RARE }
  else if (query.filter.sources === null || !isCounted)
    yield* newestEvents(walk, isCounted, isShort)
  // One source among many has few of the newest events, so its hours are read from the rollup at
  // once.
  else if (isShort) yield wholeRange(walk, endMs)
  else yield* countedRanges(walk, endMs)
}

/** The newest events, then the rest: by hours, or in growing ranges. */
async function* newestEvents(
  walk: Walk,
  isCounted: boolean,
  isShort: boolean,
): AsyncGenerator<TimeRange> {
  const { query, startMs, endMs } = walk
  const hasFilter = isFiltered(query.filter)
  const fromMs = startOf(walk, endMs, hasFilter ? FIRST_EVENTS : FIRST_EVENTS_UNFILTERED)
  yield { fromMs, toMs: endMs, hours: null, isSmall: true, isSparse: false }
  if (!isCounted) yield* growingRanges(walk, fromMs)
  else if (!isShort) yield* countedRanges(walk, fromMs)
  else if (fromMs > startMs) yield wholeRange(walk, fromMs)
}

/**
 * Where the newest events before a time begin. A short rest before the time range is added to the
 * range.
 */
function startOf({ query, density, startMs }: Walk, toMs: number, events: number): number {
  const fromMs = density.startOf(toMs, events)
  return fromMs <= query.fromMs ? startMs : fromMs
}

const hoursBefore = (
  { query: { filter }, store, options, startMs }: Walk,
  toMs: number,
): ReturnType<typeof readHours> => readHours(store, { filter, fromMs: startMs, toMs }, options)

const wholeRange = ({ density, startMs }: Walk, toMs: number): TimeRange => ({
  fromMs: startMs,
  toMs,
  hours: null,
  isSmall: density.count(startMs, toMs) <= ROWS_OF_A_THREAD,
  isSparse: false,
})

/** Few granules can contain the word, so the indexes are evaluated before any part is opened. */
const RARE = { isSmall: true, isSparse: true } as const

/** Whether only variables contain one of the words, and the time range has few events. */
async function isRareWord(walk: Walk): Promise<boolean> {
  const { density, dictionary, startMs, endMs } = walk
  const { filter } = walk.query
  const isFew = density.count(startMs, endMs) <= EVENTS_AT_ONCE
  if (!isFew || !hasWord(filter)) return false
  return hasWordOfVariables(filter, await dictionary.matches(startMs, endMs))
}

/** Growing ranges; with an index and few matches so far, one range for all the rest. */
function* growingRanges(walk: Walk, endMs: number): Generator<TimeRange> {
  const { rows, startMs } = walk
  const { filter, limit } = walk.query
  let toMs = endMs
  let events = FIRST_EVENTS
  let lookedThrough = FIRST_EVENTS
  while (toMs > startMs) {
    const found = rows.length
    const missing = found === 0 ? Infinity : (lookedThrough * (limit - found) * RESERVE) / found
    const isSparse = hasIndex(filter) && missing > EVENTS_AT_ONCE
    if (isSparse) events = Infinity
    else events = found === 0 ? events * BARREN_GROWTH : Math.max(events * GROWTH, missing)
    const fromMs = startOf(walk, toMs, events)
    yield { fromMs, toMs, hours: null, isSmall: false, isSparse }
    lookedThrough += events
    toMs = fromMs
  }
}

/** Ranges made of the hours that the rollup names. */
async function* countedRanges(walk: Walk, endMs: number): AsyncGenerator<TimeRange> {
  const { query, density, rows, startMs } = walk
  const { filter, limit } = query
  let toMs = endMs
  for (;;) {
    const counts = await hoursBefore(walk, toMs)
    for (const { hours, most } of splitHours(counts, filter, limit)) {
      const [newest = 0] = hours
      const oldest = hours.at(-1) ?? 0
      const fromMs = Math.max(startMs, oldest * 1000)
      const share = Math.min(1, limit / most)
      const isSmall =
        hours.length <= HOURS_OF_A_THREAD && density.count(fromMs, toMs) * share <= ROWS_OF_A_THREAD
      const hasGaps = newest - oldest !== (hours.length - 1) * HOUR_S
      const isSparse = rows.length === 0 && toMs < walk.endMs && hasIndex(filter)
      const untilMs = Math.min(toMs, (newest + HOUR_S) * 1000)
      yield { fromMs, toMs: untilMs, hours: hasGaps ? hours : null, isSmall, isSparse }
      toMs = fromMs
    }
    if (counts.length < MAX_HOURS || toMs <= startMs) return
  }
}
