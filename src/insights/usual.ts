/*
 * The expected count of each bar of a chart, by the seasonal baseline of anomalies fitted to the
 * hourly counts of a query. The rollups have these counts for queries by source, severity, priority
 * and template. Other queries get no expected counts, because four weeks of events would have to be
 * read.
 */

import type { Events } from '../events/events.js'
import type { FieldNames } from '../events/field-expression.js'
import type { RangeQuestion } from '../events/occurrences.js'
import { DAY_MS, HOUR_MS, HOUR_S } from '../model/time.js'
import { WIDTH_99 } from './anomalies.js'
import { judgeOf, seriesOf, sumOf, type Series } from './evidence.js'
import { DAY_HOURS, LASTING_DAYS, LOOKBACK_DAYS } from './frame.js'
import { expectedRange } from './negative-binomial.js'
import { fitRolling } from './rolling-baseline.js'
import { ANY_ANOMALY, type AnomalyQuery, type InsightStore, type StoredAnomaly } from './store.js'

export interface UsualQuery {
  readonly question: RangeQuestion
  readonly names: FieldNames
  /** Seconds of a bar, which begins at a multiple of it since 1970. */
  readonly stepS: number
}

export interface UsualBar {
  /** Seconds since 1970. */
  readonly startS: number
  readonly expected: number
  /** The 99 % interval. */
  readonly low: number
  readonly high: number
}

/** @returns null for a query that the rollups cannot count; bars with too little history are left out */
export async function usualBars(
  events: Pick<Events, 'rolledUpCounts'>,
  { question, names, stepS }: UsualQuery,
  signal?: AbortSignal,
): Promise<readonly UsualBar[] | null> {
  const { fromMs, toMs } = question
  const firstDay = Math.floor(fromMs / HOUR_MS / DAY_HOURS)
  const startHour = Math.max(0, (firstDay - LOOKBACK_DAYS) * DAY_HOURS)
  const endHour = Math.ceil(toMs / HOUR_MS)
  const asked = { ...question, fromMs: startHour * HOUR_MS, toMs: endHour * HOUR_MS }
  const by = { field: null, stepS: HOUR_S, counted: 'occurrences', top: 0, names } as const
  const found = await events.rolledUpCounts(asked, by, signal === undefined ? {} : { signal })
  if (found === null) return null
  const counts = Float64Array.from(
    { length: endHour - startHour },
    (_, i) => found.buckets.get((startHour + i) * HOUR_S) ?? 0,
  )
  const hours = { counts, startHour }
  const rolling = fitRolling(hours, firstDay * DAY_HOURS - startHour, { presence: counts })
  const series = seriesOf(hours, rolling, counts.length)
  const bars: UsualBar[] = []
  for (
    let startS = Math.floor(fromMs / 1000 / stepS) * stepS;
    startS * 1000 < toMs;
    startS += stepS
  ) {
    const bar = usualBar(series, startS, stepS)
    if (bar !== null) bars.push(bar)
  }
  return bars
}

/** A bar of less than an hour has its share of the hour's counts, and the hour's spread. */
function usualBar(series: Series, startS: number, stepS: number): UsualBar | null {
  const { startHour, counts } = series.hours
  const from = Math.max(series.from, Math.floor(startS / HOUR_S) - startHour)
  const to = Math.min(
    counts.length,
    Math.max(from + 1, Math.ceil((startS + stepS) / HOUR_S) - startHour),
  )
  if (to <= from) return null
  const sum = sumOf(series, from, to)
  const judge = judgeOf(series, from, to, sum)
  if (judge === null) return null
  const expected = sum.expected * Math.min(1, stepS / HOUR_S)
  const { clumping } = judge.baseline
  const [low, high] = expectedRange(expected / clumping, judge.spread, WIDTH_99)
  return { startS, expected, low: low * clumping, high: high * clumping }
}

/** The most days before the range at which an anomaly that reaches into it may begin. */
const LONGEST_DAYS = LASTING_DAYS + 1
const MOST = 50

/** The anomalies of a range that are about events of a query, without those that are part of wider ones. */
export async function anomaliesWithin(
  insights: { readonly anomalies: InsightStore['anomalies'] },
  { filter, fromMs, toMs }: RangeQuestion,
  signal?: AbortSignal,
): Promise<readonly StoredAnomaly[]> {
  const { sources, severities, templateIds } = filter
  if (sources?.length === 0) return []
  const asked: AnomalyQuery = {
    ...ANY_ANOMALY,
    sinceMs: Math.max(0, fromMs - LONGEST_DAYS * DAY_MS),
    after: { startedAtMs: toMs, id: '' },
    sources: sources ?? [],
    wholeOnly: true,
    limit: MOST,
  }
  const isOf = (named: readonly string[] | null, own: string | null): boolean =>
    named === null || own === null || named.includes(own)
  return (await insights.anomalies(asked, signal)).filter(
    ({ severity, templateId, endedAtMs }) =>
      endedAtMs > fromMs && isOf(severities, severity) && isOf(templateIds, templateId),
  )
}
