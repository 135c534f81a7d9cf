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
import type { RequestOptions, Store } from './client.js'
import { statement } from './statement.js'

export interface SeriesQuery {
  readonly window: Window
  readonly granularity: Granularity | 'auto'
  /** empty = any */
  readonly sources: readonly string[]
  /** 1..50 buckets */
  readonly limit: number
  /** buckets left out, counted from the newest that is not empty */
  readonly offset: number
}

export type Counters = Readonly<Record<Severity | Priority, number>>

/** A bucket's start, ISO 8601, and the occurrences in it. */
export type Bucket = { readonly t: string } & Counters

export interface SeriesPage {
  readonly granularity: Granularity
  /** ascending, none empty */
  readonly buckets: readonly Bucket[]
  /** there are older buckets within the month */
  readonly hasMore: boolean
}

export interface Series {
  page(query: SeriesQuery, signal?: AbortSignal): Promise<SeriesPage>
}

/** Counters as the queries return them. */
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
  /** s since 1970 */
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

const latestSql = statement<
  { readonly upto: number; readonly sources: readonly string[] },
  { readonly found: number; readonly latest: number }
>('series_latest')
const recentSql = statement<
  { readonly from: number; readonly upto: number; readonly sources: readonly string[] },
  { readonly found: number; readonly latest: number }
>('series_recent')
const PAGE_SQL = {
  second: statement<PageParams, BucketRow>('series_seconds'),
  minute: statement<PageParams, BucketRow>('series_minutes'),
  hour: statement<PageParams, BucketRow>('series_hours'),
  day: statement<PageParams, BucketRow>('series_days'),
} as const satisfies Record<Granularity, unknown>

/** Clocks of producers run ahead a little: what is up to so far in the future is the latest event, s. */
const CLOCK_SKEW_S = 300
const RECENT_S = 60
/** More than the buckets of a month. */
const MAX_OFFSET = 1_000_000
/** Without data in the window, a coarser granularity serves when this much time back from now has some. */
const WIDENED_S = { minute: 900, hour: 86_400, day: 2_592_000 } as const

export function createSeries(store: Store, nowMs: () => number = Date.now): Series {
  const latestUpTo = async (
    upto: number,
    nowS: number,
    sources: readonly string[],
    options: RequestOptions,
  ): Promise<number | null> => {
    // as long as messages come in, the latest is right here, and finding it costs half
    const near = { from: nowS - RECENT_S, upto, sources }
    const [recent] = await store.query(recentSql, near, options)
    if (recent !== undefined && recent.found > 0) return recent.latest
    const [row] = await store.query(latestSql, { upto, sources }, options)
    return row === undefined || row.found === 0 ? null : row.latest
  }

  return {
    async page(query, signal) {
      const { sources, limit } = query
      const options = signal === undefined ? {} : { signal }
      const nowS = Math.floor(nowMs() / 1000)
      const latest = await latestUpTo(nowS + CLOCK_SKEW_S, nowS, sources, options)
      const isAhead = query.granularity === 'auto' && latest !== null && latest > nowS
      const latestPast = isAhead ? await latestUpTo(nowS, nowS, sources, options) : latest
      const granularity =
        query.granularity === 'auto' ? widen(query.window, latestPast, nowS) : query.granularity
      if (latest === null) return { granularity, buckets: [], hasMore: false }
      const step = STEP_S[granularity]
      const params = {
        from: Math.max(0, alignDown(monthBefore(latest), step)),
        until: alignDown(latest, step) + step,
        sources,
        limit: limit + 1,
        offset: Math.min(query.offset, MAX_OFFSET),
      }
      const rows = await store.query(PAGE_SQL[granularity], params, options)
      const buckets = rows.slice(0, limit).map(toBucket).toReversed()
      return { granularity, buckets, hasMore: rows.length > limit }
    },
  }
}

/**
 * The granularity of the window when it holds data up to now, else the next coarser one whose largest
 * window does, else day.
 */
function widen(window: Window, latestPast: number | null, nowS: number): Granularity {
  const own = WINDOWS[window].granularity
  if (latestPast === null) return 'day'
  if (latestPast >= startOfWindow(window, nowS)) return own
  for (const coarser of ['minute', 'hour', 'day'] as const) {
    const isCoarser = GRANULARITIES.indexOf(coarser) > GRANULARITIES.indexOf(own)
    if (isCoarser && latestPast >= nowS - WIDENED_S[coarser]) return coarser
  }
  return 'day'
}

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
