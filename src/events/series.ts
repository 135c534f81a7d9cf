import type { Priority, Severity } from '../model/event.js'
import {
  GRANULARITIES,
  STEP_S,
  WINDOWS,
  alignDown,
  monthBefore,
  startOfWindow,
  type Granularity,
  type Window,
} from '../model/window.js'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'

export interface SeriesQuery {
  readonly window: Window
  readonly granularity: Granularity | 'auto'
  /** An empty list matches any source. */
  readonly sources: readonly string[]
  /** In buckets, 1..50. */
  readonly limit: number
  /** In buckets, from the newest that is not empty. */
  readonly offset: number
}

export type Counters = Readonly<Record<Severity | Priority, number>>

/** A bucket's start, ISO 8601, and the occurrences in it. */
export type Bucket = { readonly t: string } & Counters

export interface SeriesPage {
  readonly granularity: Granularity
  /** Ascending, without empty ones. */
  readonly buckets: readonly Bucket[]
  /** Whether there are older buckets within the month. */
  readonly hasMore: boolean
}

export interface CounterRow {
  readonly debug: number
  readonly info: number
  readonly warning: number
  readonly error: number
  readonly critical: number
  readonly p1: number
  readonly p2: number
  readonly p3: number
  readonly p4: number
}

export interface BucketRow extends CounterRow {
  /** Seconds since 1970. */
  readonly bucket: number
}

interface PageParams {
  readonly [name: string]: unknown
  readonly from: number
  readonly until: number
  readonly sources: readonly string[]
  readonly limit: number
  readonly offset: number
}

interface QuickParams {
  readonly [name: string]: unknown
  readonly from: number
  readonly until: number
  readonly sources: readonly string[]
  readonly now: number
  readonly limit: number
}

/** The rows of the seconds rollup contain the exact second of the latest event. */
interface QuickRow extends BucketRow {
  readonly latest?: number
  /** Seconds since 1970; 0 for none. */
  readonly latest_past?: number
}

const latestSql = statement<
  { readonly upto: number; readonly sources: readonly string[] },
  { readonly found: number; readonly latest: number }
>('series_latest')
const aheadSql = statement<{ readonly from: number }, { readonly ahead: number }>('series_ahead')
const recentSql = statement<
  {
    readonly from: number
    readonly first_minute: number
    readonly last_minute: number
    readonly upto: number
    readonly sources: readonly string[]
  },
  { readonly occurrences: number }
>('series_recent')
const bucketsSql = statement<PageParams & { readonly rollup: Rollup }, BucketRow>('series_buckets')
const minutesSql = statement<PageParams, BucketRow>('series_minutes')
const secondsSql = statement<PageParams, BucketRow>('series_seconds')
const newestSecondsSql = statement<QuickParams, QuickRow>('series_newest_seconds')
const ROLLUPS = { minute: 'series_1m', hour: 'series_1h', day: 'series_1d' } as const
type Rollup = (typeof ROLLUPS)[Coarser]

const NOTHING: CounterRow = {
  debug: 0,
  info: 0,
  warning: 0,
  error: 0,
  critical: 0,
  p1: 0,
  p2: 0,
  p3: 0,
  p4: 0,
}
/** Producers' clocks run ahead a little: an event up to this far in the future counts as the latest one. */
const CLOCK_SKEW_S = 300
/** Greater than the number of buckets in a month. */
const MAX_OFFSET = 1_000_000
const COARSER = ['minute', 'hour', 'day'] as const satisfies readonly Granularity[]
type Coarser = (typeof COARSER)[number]
/** Without data in the window, a coarser granularity is chosen if this many seconds up to now have data. */
const WIDENED_S = { minute: 900, hour: 86_400, day: 2_592_000 } as const
/** Three times the buckets of a page are read, because some are empty. */
const READ_FACTOR = 3
/** A page that ends after this many buckets is not searched among the newest. */
const QUICK_BUCKETS = 200

export function createSeries(store: Pick<Store, 'query'>, nowMs: () => number = Date.now) {
  return {
    page: async (query: SeriesQuery, signal?: AbortSignal): Promise<SeriesPage> => {
      const options = signal === undefined ? {} : { signal }
      const reader = new PageReader(store, query, Math.floor(nowMs() / 1000), options)
      return await reader.read()
    },
    /** A page that has its empty buckets too; `limit` and `offset` count them. */
    filled: async (query: SeriesQuery, signal?: AbortSignal): Promise<SeriesPage> => {
      const options = signal === undefined ? {} : { signal }
      const newest = { ...query, limit: 1, offset: 0 }
      const reader = new PageReader(store, newest, Math.floor(nowMs() / 1000), options)
      const { granularity, buckets } = await reader.read()
      const [latest] = buckets
      if (latest === undefined) return { granularity, buckets: [], hasMore: false }
      const step = STEP_S[granularity]
      const latestS = Date.parse(latest.t) / 1000
      const oldest = alignDown(monthBefore(latestS), step)
      const last = latestS - Math.min(query.offset, MAX_OFFSET) * step
      const from = Math.max(oldest, last - (query.limit - 1) * step)
      if (last < oldest) return { granularity, buckets: [], hasMore: false }
      const { sources, limit } = query
      const params = { from, until: last + step, sources, limit, offset: 0 }
      const rows = await readBuckets(store, granularity, params, options)
      const found = new Map(rows.map((row) => [row.bucket, row]))
      const filled = Array.from({ length: (last - from) / step + 1 }, (_, i) => {
        const bucket = from + i * step
        return toBucket(found.get(bucket) ?? { ...NOTHING, bucket })
      })
      return { granularity, buckets: filled, hasMore: from > oldest }
    },
  }
}

/** Minutes and seconds of a whole month are many, so theirs are found by the hours with occurrences. */
async function readBuckets(
  store: Pick<Store, 'query'>,
  granularity: Granularity,
  params: PageParams,
  options: RequestOptions,
): Promise<readonly BucketRow[]> {
  if (granularity === 'second') return await store.query(secondsSql, params, options)
  if (granularity === 'minute') return await store.query(minutesSql, params, options)
  return await store.query(bucketsSql, { ...params, rollup: ROLLUPS[granularity] }, options)
}

/** The newest buckets of a granularity, from `from` on. */
interface Newest {
  readonly granularity: Granularity
  readonly rows: readonly QuickRow[]
  readonly from: number
  /** Whether these are all buckets from `from` on. */
  readonly isAll: boolean
  /** Whether the whole latest bucket is known to lie before now and the clock skew. */
  readonly isCertain: boolean
}

/**
 * Reads one page. It is nearly always among the newest buckets up to now, which one small query reads; otherwise
 * the latest event is searched first and then the page that ends with it.
 */
class PageReader {
  readonly #store: Pick<Store, 'query'>
  readonly #query: SeriesQuery
  readonly #nowS: number
  readonly #options: RequestOptions

  constructor(
    store: Pick<Store, 'query'>,
    query: SeriesQuery,
    nowS: number,
    options: RequestOptions,
  ) {
    this.#store = store
    this.#query = { ...query, offset: Math.min(query.offset, MAX_OFFSET) }
    this.#nowS = nowS
    this.#options = options
  }

  async read(): Promise<SeriesPage> {
    const { granularity: asked, window } = this.#query
    const own = asked === 'auto' ? WINDOWS[window].granularity : asked
    const [newest, isRecent] = await Promise.all([
      this.#newest(own),
      asked === 'auto' ? this.#isRecent() : true,
    ])
    const found = isRecent === true ? newest : await this.#widened(newest, isRecent)
    return (found === null ? null : this.#pageOf(found)) ?? (await this.#exact())
  }

  /**
   * Whether the window has data up to now; null where the newest buckets show it. They do not for a window that is no
   * longer than one bucket, since most of the latest bucket may be ahead of now or before the window.
   */
  async #isRecent(): Promise<boolean | null> {
    const { granularity, seconds } = WINDOWS[this.#query.window]
    if (granularity === 'second' || seconds === null || seconds > STEP_S[granularity]) return null
    const from = startOfWindow(this.#query.window, this.#nowS)
    const params = {
      from,
      first_minute: alignDown(from + STEP_S.minute - 1, STEP_S.minute),
      last_minute: alignDown(this.#nowS + 1, STEP_S.minute),
      upto: this.#nowS,
      sources: this.#query.sources,
    }
    const [row] = await this.#store.query(recentSql, params, this.#options)
    return row !== undefined && row.occurrences > 0
  }

  async #newest(granularity: Granularity): Promise<Newest> {
    const { limit, offset, sources } = this.#query
    const now = this.#nowS
    const step = STEP_S[granularity]
    const wanted = limit + offset + 1
    if (wanted > QUICK_BUCKETS)
      return { granularity, rows: [], from: now, isAll: false, isCertain: false }
    const from = Math.max(0, alignDown(now, step) - wanted * READ_FACTOR * step)
    const until = alignDown(now + CLOCK_SKEW_S, step) + step
    const params = { from, until, sources, limit: wanted }
    if (granularity === 'second') {
      const timed = { ...params, now }
      const rows = await this.#store.query(newestSecondsSql, timed, this.#options)
      const isCertain = (rows[0]?.latest ?? 0) <= now + CLOCK_SKEW_S
      return { granularity, rows, from, isAll: rows.length < wanted, isCertain }
    }
    const soon = alignDown(now + CLOCK_SKEW_S, STEP_S.minute)
    const [rows, ahead] = await Promise.all([
      this.#store.query(
        bucketsSql,
        { ...params, rollup: ROLLUPS[granularity], offset: 0 },
        this.#options,
      ),
      this.#store.query(aheadSql, { from: soon }, this.#options),
    ])
    const isCertain = ahead[0]?.ahead === 0
    return { granularity, rows, from, isAll: rows.length < wanted, isCertain }
  }

  /** The newest buckets of the granularity chosen by the latest event up to now; null when they do not show it. */
  async #widened(own: Newest, isRecent: false | null): Promise<Newest | null> {
    const { window } = this.#query
    const now = this.#nowS
    let latestAtMost = isRecent === null ? now : startOfWindow(window, now) - 1
    for (let newest = own; newest.isCertain;) {
      const [earliest, latest] = boundsOfLatest(newest, now)
      latestAtMost = Math.min(latestAtMost, latest)
      const first = widen(window, earliest, now)
      const last = widen(window, latestAtMost, now)
      if (first === last) return first === newest.granularity ? newest : await this.#newest(first)
      const coarser = earliest === null ? coarserThan(newest.granularity)[0] : undefined
      if (coarser === undefined) return null
      newest = await this.#newest(coarser)
    }
    return null
  }

  /** @returns null when older buckets may belong to the page */
  #pageOf({ granularity, rows, from, isCertain }: Newest): SeriesPage | null {
    const { limit, offset } = this.#query
    const [latest] = rows
    if (latest === undefined || !isCertain) return null
    const oldest = alignDown(monthBefore(latest.bucket), STEP_S[granularity])
    const isWhole = rows.length === limit + offset + 1 || from <= oldest
    if (!isWhole) return null
    const month = rows.filter(({ bucket }) => bucket >= oldest)
    return toPage(granularity, month.slice(offset), limit)
  }

  async #exact(): Promise<SeriesPage> {
    const { sources, limit, offset, window, granularity: asked } = this.#query
    const now = this.#nowS
    const latest = await this.#latestUpTo(now + CLOCK_SKEW_S)
    const isAhead = asked === 'auto' && latest !== null && latest > now
    const latestPast = isAhead ? await this.#latestUpTo(now) : latest
    const granularity = asked === 'auto' ? widen(window, latestPast, now) : asked
    if (latest === null) return { granularity, buckets: [], hasMore: false }
    const step = STEP_S[granularity]
    const params = {
      from: Math.max(0, alignDown(monthBefore(latest), step)),
      until: alignDown(latest, step) + step,
      sources,
      limit: limit + 1,
      offset,
    }
    const rows = await readBuckets(this.#store, granularity, params, this.#options)
    return toPage(granularity, rows, limit)
  }

  async #latestUpTo(upto: number): Promise<number | null> {
    const params = { upto, sources: this.#query.sources }
    const [row] = await this.#store.query(latestSql, params, this.#options)
    return row === undefined || row.found === 0 ? null : row.latest
  }
}

/** Two seconds between which the latest event up to now lies; the first is null when it may be older than all rows. */
function boundsOfLatest(
  { rows, from, isAll, granularity }: Newest,
  nowS: number,
): readonly [number | null, number] {
  const step = STEP_S[granularity]
  let high: number | null = null
  for (const { bucket, latest_past: exact } of rows) {
    if (bucket > nowS || exact === 0) continue
    if (exact !== undefined) return [exact, exact]
    // All events of the running bucket may be ahead of now.
    if (bucket + step - 1 <= nowS) return [bucket, high ?? bucket + step - 1]
    high = nowS
  }
  return [null, high ?? (isAll ? from - 1 : nowS)]
}

/** @param rows from the newest on, one more than `limit` when there are more */
const toPage = (
  granularity: Granularity,
  rows: readonly BucketRow[],
  limit: number,
): SeriesPage => ({
  granularity,
  buckets: rows.slice(0, limit).map(toBucket).toReversed(),
  hasMore: rows.length > limit,
})

/**
 * The granularity of the window when it holds data up to now, else the next coarser one whose largest
 * window does, else day.
 */
function widen(window: Window, latestPast: number | null, nowS: number): Granularity {
  const own = WINDOWS[window].granularity
  if (latestPast === null) return 'day'
  if (latestPast >= startOfWindow(window, nowS)) return own
  const wide = coarserThan(own).find((coarser) => latestPast >= nowS - WIDENED_S[coarser])
  return wide ?? 'day'
}

const coarserThan = (granularity: Granularity): readonly Coarser[] =>
  COARSER.slice(GRANULARITIES.indexOf(granularity))

export const toBucket = (row: BucketRow): Bucket => ({
  t: new Date(row.bucket * 1000).toISOString(),
  DEBUG: row.debug,
  INFO: row.info,
  WARNING: row.warning,
  ERROR: row.error,
  CRITICAL: row.critical,
  P1: row.p1,
  P2: row.p2,
  P3: row.p3,
  P4: row.p4,
})
