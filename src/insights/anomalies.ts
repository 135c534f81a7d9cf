import type { AnomalyKind } from '../model/insights.js'
import {
  expectedCounts,
  fitRolling,
  type Baseline,
  type Hours,
  type RollingBaseline,
} from './baseline.js'
import { expectedRange, surprise } from './negative-binomial.js'
import { DAY_HOURS, WEEK_HOURS } from './frame.js'

type Direction = 'up' | 'down'

/** An anomaly of one series; hours are indexes of its counts. */
export interface Finding {
  readonly kind: AnomalyKind
  readonly direction: Direction
  readonly from: number
  /** The hour after its last one. */
  readonly to: number
  /** The hour at whose end it was detected. */
  readonly noticedAt: number
  /** It reaches the end of the whole hours. */
  readonly isOngoing: boolean
  readonly observed: number
  readonly expected: number
  /** The 99 % interval of what was expected. */
  readonly range: readonly [least: number, most: number]
  /** Standard deviations of a normal distribution that are as unlikely, at most 50. */
  readonly score: number
}

export interface DetectOptions {
  /** Index of the first hour that is judged. */
  readonly from: number
  /** Whole hours; a count at this index is of the running hour. */
  readonly hours: number
  /** Index at which the series begins, by default that of its first occurrence; zeros before it are no data. */
  readonly begins?: number
}

/** Surprise from which on a span is an anomaly. bench/insights.ts: 0.5 less costs precision, 0.5 more recall. */
const NOTABLE_RISE = 6
const NOTABLE_FALL = 4.8
/** Least multiple of the surprise that the series reaches time and again. */
const BEYOND_USUAL = 1.8
/** Least multiple of the excess of the series' ordinary bursts. */
const BEYOND_BURSTS = 1.5
/** Surprise from which on the hours after an anomaly belong to it. */
const BELONGS = 2.2
/** Least surprise compared with the same hours of the weeks before. */
const UNLIKE_WEEKS = 3.5
/** Hours of the spans that are summed: long ones find small changes that last. */
const SPANS = [1, 2, 3, 6, 12, 24] as const
/** Raises the threshold of spans beyond one hour: trying more spans makes more false alarms. */
const LONGER_SPAN = 0.4
/** Relative error of the level, which no span averages out. */
const LEVEL_ERROR = 0.06
const MAX_GAP_HOURS = 3
const MAX_SCORE = 50
/** Least difference from what was expected, however unlikely it is. */
const LEAST_DIFFERENCE = 10
const LEAST_RISE = 1.4
const LEAST_FALL = 0.65
const WEEKS_COMPARED = 3
const SILENT_SHARE = 0.02
/** Half the width of a 99 % interval, in standard deviations. */
const WIDTH_99 = 2.576

/**
 * Finds the spans of a series that its past does not explain. Each hour is judged by the days before it only, so a
 * finding does not change as more hours come.
 *
 * For each hour the sums of the last 1, 2, 3, 6, 12 and 24 hours are compared with their seasonal baseline; the
 * shortest span beyond the threshold marks its hours, unless it resembles the same hours of the weeks before (a
 * weekly job). Marked hours with short gaps between them, and the hours after them that still deviate, are one
 * finding.
 */
export function findAnomalies(hours: Hours, options: DetectOptions): readonly Finding[] {
  const begins = options.begins ?? firstOf(hours.counts)
  if (begins === -1) return []
  const firstDay = Math.ceil(begins / DAY_HOURS)
  const from = Math.max(options.from, judgedFrom(begins))
  if (from >= hours.counts.length || !mayHaveAnomalies(hours.counts)) return []
  const rolling = fitRolling(hours, from, firstDay)
  const means = expectedCounts(hours, rolling)
  const excess = excessOf(hours.counts, means, from)
  const firstIndex = firstDay * DAY_HOURS
  const series: Series = { ...rolling, means, excess, hours, options, firstIndex }
  const marks = clearMarks(from, hours.counts.length)
  for (let i = from; i < hours.counts.length; i++) markSpanEndingAt(series, i, marks)
  return (['up', 'down'] as const)
    .flatMap((direction) => runsOf(series, marks, direction))
    .toSorted((a, b) => a.from - b.from)
}

/** The first hour of a series that can be judged, after a whole day of it. @param begins index of its first occurrence */
export const judgedFrom = (begins: number): number =>
  (Math.ceil(begins / DAY_HOURS) + 1) * DAY_HOURS

/** @returns index of the first occurrence, or -1 */
function firstOf(counts: Float64Array): number {
  for (let i = 0; i < counts.length; i++) if (counts[i] !== 0) return i
  return -1
}

/** A series without `LEAST_DIFFERENCE` occurrences in any day has none. */
function mayHaveAnomalies(counts: Float64Array): boolean {
  let sum = 0
  for (let i = 0; i < counts.length; i++) {
    sum += (counts[i] ?? 0) - (counts[i - DAY_HOURS] ?? 0)
    if (sum >= LEAST_DIFFERENCE) return true
  }
  return false
}

interface Series extends RollingBaseline {
  /** Expected counts from `from` on. */
  readonly means: Float64Array
  /** Prefix sums of count - mean from `from` on: the excess of a span is one subtraction. */
  readonly excess: Float64Array
  readonly hours: Hours
  readonly options: DetectOptions
  /** Index at which the history begins, a midnight. */
  readonly firstIndex: number
}

let excessPool = new Float64Array(0)

/** The array is reused: the next call overwrites it. */
function excessOf(counts: Float64Array, means: Float64Array, from: number): Float64Array {
  if (excessPool.length <= counts.length) excessPool = new Float64Array(counts.length + 1)
  let sum = 0
  for (let i = from; i < counts.length; i++) {
    excessPool[i] = sum
    sum += (counts[i] ?? 0) - (means[i] ?? 0)
  }
  excessPool[counts.length] = sum
  return excessPool
}

/** By hour: the score of the marked span that it belongs to (0 = none), and the hour that ended the span. */
interface Marked {
  readonly best: Float64Array
  readonly noticed: Int32Array
}

type Marks = Readonly<Record<Direction, Marked>>

/** Reused from series to series. */
let pool = { up: noMarks(0), down: noMarks(0) }

function noMarks(length: number): Marked {
  return { best: new Float64Array(length), noticed: new Int32Array(length) }
}

function clearMarks(from: number, length: number): Marks {
  if (pool.up.best.length < length) pool = { up: noMarks(length), down: noMarks(length) }
  pool.up.best.fill(0, from, length)
  pool.down.best.fill(0, from, length)
  return pool
}

const baselineAt = ({ baselines, from }: Series, i: number): Baseline | null =>
  baselines[Math.floor((i - from) / DAY_HOURS)] ?? null

/** Marks the shortest span that ends at an hour and is an anomaly. */
function markSpanEndingAt(series: Series, end: number, marks: Marks): void {
  const baseline = baselineAt(series, end)
  const isUp = (series.hours.counts[end] ?? 0) > (series.means[end] ?? 0)
  // The last hour of an anomaly deviates itself.
  if (baseline === null || !deviates(series, end, isUp)) return
  const marked = isUp ? marks.up : marks.down
  const longest = longestSpan(series, end, isUp)
  if (!mayDiffer(series, end, longest, isUp)) return
  const sum = { observed: 0, expected: 0, squares: 0 }
  let done = 0
  for (const span of SPANS) {
    if (span > longest) return
    for (; done < span; done++) addUnmarked(series, marked, end - done, sum)
    const score = scoreOf(sum, baseline, span, isUp)
    if (score === 0 || resemblesWeeksBefore(series, end, span, isUp)) continue
    mark(series, marked, { end, span, score, isUp })
    return
  }
}

/** A cheap upper bound: leaving out marked hours makes the difference of a span smaller. */
function mayDiffer({ excess }: Series, end: number, longest: number, isUp: boolean): boolean {
  const until = excess[end + 1] ?? 0
  for (const span of SPANS) {
    if (span > longest) return false
    const more = until - (excess[end + 1 - span] ?? 0)
    if ((isUp ? more : -more) > LEAST_DIFFERENCE - 0.5) return true
  }
  return false
}

/** The running hour is judged alone, and only for being too much: it can still grow. */
function longestSpan({ from, options }: Series, end: number, isUp: boolean): number {
  if (end < options.hours) return end - from + 1
  return isUp ? 1 : 0
}

interface Sum {
  observed: number
  expected: number
  /** Sum of the squared expected counts. */
  squares: number
}

/** Hours of an anomaly say nothing of the hours after it. */
function addUnmarked({ hours, means }: Series, { best }: Marked, i: number, sum: Sum): void {
  if (best[i] !== 0) return
  const mean = means[i] ?? 0
  sum.observed += hours.counts[i] ?? 0
  sum.expected += mean
  sum.squares += mean * mean
}

/** @returns 0 when the span is no anomaly */
function scoreOf(sum: Readonly<Sum>, baseline: Baseline, span: number, isUp: boolean): number {
  const { observed, expected } = sum
  if (!isWorthwhile(observed, expected, isUp)) return 0
  if (isUp && observed - expected < BEYOND_BURSTS * baseline.usualBurst) return 0
  const score = Math.abs(surprise(observed, expected, spreadOver(baseline, span, sum)))
  return score < thresholdOf(baseline, span, isUp) ? 0 : score
}

/** Saves most spans the logarithms of `surprise`. */
function isWorthwhile(observed: number, expected: number, isUp: boolean): boolean {
  if (Math.abs(observed - expected) < LEAST_DIFFERENCE) return false
  return isUp ? observed >= LEAST_RISE * expected : observed <= LEAST_FALL * expected
}

/**
 * φ of the sum of a span, whose hours' deviations are autocorrelated (first-order autoregression). The effective
 * number of hours is (Σμ)²/Σμ²: where one hour has nearly all of the span, nothing averages out.
 */
function spreadOver(
  { dispersion, correlation }: Baseline,
  span: number,
  { expected, squares }: Pick<Sum, 'expected' | 'squares'>,
): number {
  let shared = 1
  for (let lag = 1; lag < span; lag++) shared += 2 * (1 - lag / span) * correlation ** lag
  const hours = squares === 0 ? span : (expected * expected) / squares
  return Math.hypot(dispersion * Math.sqrt(Math.min(1, shared / hours)), LEVEL_ERROR)
}

function thresholdOf({ usualUp, usualDown }: Baseline, span: number, isUp: boolean): number {
  const notable = isUp ? NOTABLE_RISE : NOTABLE_FALL
  const threshold = Math.max(notable, BEYOND_USUAL * (isUp ? usualUp : usualDown))
  return threshold + (span === 1 ? 0 : LONGER_SPAN)
}

/** Two of the last three weeks had about as much in the same hours: it is a weekly job. */
function resemblesWeeksBefore(series: Series, end: number, span: number, isUp: boolean): boolean {
  const baseline = baselineAt(series, end)
  const sums: Pick<Sum, 'expected' | 'squares'>[] = []
  for (let week = 1; week <= WEEKS_COMPARED; week++) {
    const last = end - week * WEEK_HOURS
    if (last - span + 1 >= series.firstIndex) sums.push(sumOf(series, last, span))
  }
  if (baseline === null || sums.length < 2) return false
  sums.sort((a, b) => a.expected - b.expected)
  const alike = (isUp ? sums.at(-2) : sums[1]) ?? NO_SUM
  const spread = spreadOver(baseline, span, alike)
  const score = surprise(sumOf(series, end, span).expected, alike.expected, spread)
  return Math.abs(score) < UNLIKE_WEEKS || isUp !== score > 0
}

const NO_SUM = { expected: 0, squares: 0 }

/** The counts of a span, as the expected counts of another. */
function sumOf({ hours }: Series, end: number, span: number): Pick<Sum, 'expected' | 'squares'> {
  let [expected, squares] = [0, 0]
  for (let i = end; i > end - span; i--) {
    const count = hours.counts[i] ?? 0
    expected += count
    squares += count * count
  }
  return { expected, squares }
}

interface Span {
  readonly end: number
  readonly span: number
  readonly score: number
  readonly isUp: boolean
}

/** Marks the hours of a span that deviate in its direction. */
function mark(series: Series, { best, noticed }: Marked, { end, span, score, isUp }: Span): void {
  for (let i = end - span + 1; i <= end; i++) {
    if (best[i] !== 0 || !deviates(series, i, isUp)) continue
    noticed[i] = end
    best[i] = Math.min(score, MAX_SCORE)
  }
}

function deviates(series: Series, i: number, isUp: boolean): boolean {
  const [observed, expected] = [series.hours.counts[i] ?? 0, series.means[i] ?? 0]
  return isUp ? observed > LEAST_RISE * expected : observed < LEAST_FALL * expected
}

function runsOf(series: Series, marks: Marks, direction: Direction): readonly Finding[] {
  const marked = marks[direction]
  const found: Finding[] = []
  for (let i = series.from; i < series.hours.counts.length; i++) {
    if (marked.best[i] === 0) continue
    const to = endOfRun(series, marked, i, direction === 'up')
    const score = marked.best.subarray(i, to).reduce((most, each) => Math.max(most, each), 0)
    let noticedAt = marked.noticed[i] ?? i
    for (let at = i; at < to; at++)
      if (marked.best[at] !== 0) noticedAt = Math.min(noticedAt, marked.noticed[at] ?? at)
    found.push(toFinding(series, { direction, from: i, to, score, noticedAt }))
    i = to
  }
  return found
}

/**
 * Finds the end of an anomaly. It goes on over hours marked as deviating, over short gaps between them, and over later
 * hours that still deviate.
 */
function endOfRun(series: Series, { best }: Marked, from: number, isUp: boolean): number {
  let to = from + 1
  const { length } = series.hours.counts
  for (let next = to; next < length && next <= to + MAX_GAP_HOURS; next++) {
    if (best[next] !== 0 || belongs(series, to, next, isUp)) to = next + 1
  }
  return to
}

/** The hours from `from` to `end` together still deviate. */
function belongs(series: Series, from: number, end: number, isUp: boolean): boolean {
  const baseline = baselineAt(series, end)
  if (baseline === null || end >= series.options.hours || !deviates(series, end, isUp)) return false
  const sum = totalOf(series, from, end + 1)
  const spread = spreadOver(baseline, end - from + 1, sum)
  const score = surprise(sum.observed, sum.expected, spread)
  return isUp ? score >= BELONGS : score <= -BELONGS
}

function totalOf({ hours, means }: Series, from: number, to: number): Readonly<Sum> {
  let [observed, expected, squares] = [0, 0, 0]
  for (let i = from; i < to; i++) {
    const mean = means[i] ?? 0
    observed += hours.counts[i] ?? 0
    expected += mean
    squares += mean * mean
  }
  return { observed, expected, squares }
}

interface Run {
  readonly direction: Direction
  readonly from: number
  readonly to: number
  readonly score: number
  readonly noticedAt: number
}

function toFinding(series: Series, { direction, from, to, score, noticedAt }: Run): Finding {
  const { options } = series
  const sum = totalOf(series, from, to)
  const { observed, expected } = sum
  const baseline = baselineAt(series, from)
  const spread = baseline === null ? 1 : spreadOver(baseline, to - from, sum)
  const [least, most] = expectedRange(expected, spread, WIDTH_99)
  const isSilent = observed <= SILENT_SHARE * expected
  return {
    kind: direction === 'up' ? 'spike' : isSilent ? 'silence' : 'drop',
    direction,
    from,
    to,
    noticedAt,
    isOngoing: to >= options.hours,
    observed,
    expected,
    range: [Math.floor(least), Math.ceil(most)],
    score: Math.round(score * 10) / 10,
  }
}
