/*
 * A histogram of a time range. The step is the smallest of a list of round steps that gives at most
 * the requested number of buckets. Buckets begin at multiples of the step since 1970 (UTC), so the
 * range may cut off parts of the first and last one. An occurrence counts in the bucket of its own
 * time. An event counts in the bucket in which it begins, or in the first one when it began before
 * the range.
 */

import { statement } from '../clickhouse/statement.js'
import { DAY_S, HOUR_S, SECOND_MS } from '../model/time.js'
import type { Bounded, Counting } from './bounded-range.js'
import type { CountBy, Counts } from './counts.js'
import type { EventQuestion } from './occurrences.js'

export interface HistogramQuery extends Pick<CountBy, 'field' | 'counted' | 'top' | 'names'> {
  readonly question: EventQuestion
  /** The most buckets. */
  readonly buckets: number
}

interface HistogramBucket {
  /** Seconds since 1970. */
  readonly startS: number
  readonly total: number
  /** The counts of the most frequent values, in their order. */
  readonly counts: readonly number[]
}

export interface Histogram extends Pick<Counts, 'total' | 'answeredFrom'> {
  readonly startMs: number
  readonly endMs: number
  readonly stepS: number
  readonly uniqueEvents: number
  readonly values: readonly string[]
  readonly buckets: readonly HistogramBucket[]
}

const STEPS_S: readonly number[] = [
  1,
  2,
  5,
  10,
  15,
  30,
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_S),
]
/** Longer steps are whole days. */
const ROUND_DAYS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000]

const latestSql = statement<
  { readonly upto: number; readonly sources: readonly string[] },
  { readonly found: number; readonly latest: number }
>('series_latest')

/** The end of ClickHouse's DateTime, in 2106. */
const END_S = 0xffff_ffff

export function createHistogram({ store, counter, bounded }: Counting) {
  /**
   * A range without an end ends now, or with the latest event when producers' clocks are ahead; in
   * either case with the end of that second, so that no second has to be read from the events.
   */
  const endOf = async (
    { filter, fromMs, toMs }: EventQuestion,
    signal: AbortSignal | undefined,
  ) => {
    if (toMs !== null) return toMs
    const params = { upto: END_S, sources: filter.sources ?? [] }
    const [row] = await store.query(latestSql, params, signal === undefined ? {} : { signal })
    const latestMs = row === undefined || row.found === 0 ? 0 : (row.latest + 1) * 1000
    return Math.ceil(Math.max(Date.now(), latestMs, fromMs + 1) / SECOND_MS) * SECOND_MS
  }

  return async (
    { question, buckets, ...by }: HistogramQuery,
    signal?: AbortSignal,
  ): Promise<Bounded<Histogram>> => {
    const startMs = question.fromMs
    const endMs = Math.max(startMs, Math.min(await endOf(question, signal), END_S * 1000))
    const stepS = stepOf(startMs, endMs, buckets)
    const { answer, completeFromMs } = await bounded(
      { ...question, toMs: endMs },
      signal,
      async (range, options) => {
        const asked = { ...by, stepS }
        // The rollups of occurrences do not count events, so events are counted by a query of their own.
        const isApart = by.counted === 'occurrences' && counter.isRolledUp(range, asked)
        const [counts, events] = await Promise.all([
          counter.countBy(range, asked, options),
          isApart ? counter.events(range, options) : null,
        ])
        return {
          counts,
          events: events ?? counts.events ?? (await counter.events(range, options)),
        }
      },
    )
    const { total, values, answeredFrom } = answer.counts
    return {
      answer: {
        startMs,
        endMs,
        stepS,
        total,
        uniqueEvents: answer.events,
        values: values.map(({ value }) => value),
        buckets: startsOf(startMs, endMs, stepS).map((startS) => ({
          startS,
          total: answer.counts.buckets.get(startS) ?? 0,
          counts: values.map((value) => value.buckets.get(startS) ?? 0),
        })),
        answeredFrom,
      },
      completeFromMs,
    }
  }
}

/** The number of the first bucket, and how many there are. */
function bucketsOf(startMs: number, endMs: number, stepS: number) {
  const first = Math.floor(startMs / 1000 / stepS)
  return { first, count: Math.max(first + 1, Math.ceil(endMs / 1000 / stepS)) - first }
}

/** The starts of all buckets, ascending. */
function startsOf(startMs: number, endMs: number, stepS: number): readonly number[] {
  const { first, count } = bucketsOf(startMs, endMs, stepS)
  return Array.from({ length: count }, (_, i) => (first + i) * stepS)
}

function stepOf(startMs: number, endMs: number, buckets: number): number {
  const fits = (stepS: number): boolean => bucketsOf(startMs, endMs, stepS).count <= buckets
  const days = ROUND_DAYS.map((count) => count * DAY_S)
  // A short range may cross a multiple of every step, and then needs two buckets.
  return [...STEPS_S, ...days].find(fits) ?? END_S
}
