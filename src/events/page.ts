/*
 * A page of events is read by time ranges, one statement each, until it is full (page-ranges.ts chooses them). The next page
 * continues after the last event in (time, id) order (keyset pagination), so each event is listed once without an OFFSET.
 *
 * Before a range is searched for words, the dictionaries give the constant texts and hosts that contain them.
 *
 * Events that began before the time range and are repeated in it belong to it. The ranges reach back by the deduplication window
 * for them. Few events match there, and a lookup of repeats is expensive: it takes 36 ms of CPU with 20 million events. So a range
 * is read without it first, and only when that finds an event from before the time range are its repeats looked up.
 */

import type { Store } from '../clickhouse/client.js'
import type { ListedEvent } from '../model/event.js'
import { renamed, type Condition } from './bind.js'
import type { Matches } from './conditions.js'
import type { DensityReader } from './density.js'
import { createDictionary } from './dictionary-matches.js'
import { matchesNothing, type EventFilter } from './filter.js'
import { beginningMs, repeatedWithin, type RangeQuestion } from './occurrences.js'
import { rangesOf, type RangeSearch } from './page-ranges.js'
import {
  END_MS,
  readRange,
  type EventPosition,
  type ListedRow,
  type Order,
  type TimeRange,
} from './range-rows.js'

export interface EventQuery {
  readonly filter: EventFilter
  readonly fromMs: number
  /** Exclusive; null for no bound. */
  readonly toMs: number | null
  /** The events after this one in the requested order. */
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

/** The most bytes of text in a page. Only long pages use this bound: a short one holds little in any case. */
const MOST_BYTES = 16 * 1024 * 1024
export const SHORT_PAGE = 101

export interface EventPage {
  readonly events: readonly ListedEvent[]
  /** Whether there are fewer events than requested because of the bytes of their texts. */
  readonly isCut: boolean
}

/** The rows of a page, in order. */
interface RowPage {
  readonly rows: readonly ListedRow[]
  readonly isCut: boolean
}

/** The page as it fills. */
interface Walk extends RangeSearch {
  readonly query: EventQuery
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
  for await (const range of rangesOf(walk)) {
    const found = dictionary.matches(range.fromMs, range.toMs)
    // The matches in the rest are read in parallel with this range, in case that does not fill the page.
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
