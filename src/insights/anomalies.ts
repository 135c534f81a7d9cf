import type { Baseline, Hours } from './baseline.js'
import { expectedRange, surprise } from './negative-binomial.js'
import { DAY_HOURS, WEEK_HOURS } from './series.js'
import { excessOf, meansOf, train, type SeriesMemo, type Training } from './training.js'

export type Direction = 'up' | 'down'
export type AnomalyKind = 'spike' | 'drop' | 'silence'

/** A span in which a series did what its past does not explain. Indexes are those of the series. */
export interface Finding {
  readonly kind: AnomalyKind
  readonly direction: Direction
  readonly from: number
  /** the one after the last */
  readonly to: number
  /** the hour at whose end it was certain */
  readonly noticedAt: number
  /** still so at the end of the series */
  readonly isOngoing: boolean
  readonly observed: number
  readonly expected: number
  /** what would have been ordinary, in 99 of 100 cases */
  readonly range: readonly [least: number, most: number]
  /** standard deviations of a normal law that are as unlikely, at most 50 */
  readonly score: number
}

export interface DetectOptions {
  /** first index that is looked at */
  readonly from: number
  /** whole hours; the count at this index, when there is one, is of the running hour */
  readonly hours: number
  /** index from which on nothing means nothing, and not that it had not begun; else its first occurrence */
  readonly begins?: number
}

/** Surprise from which on a span is an anomaly. bench/insights: .5 less costs precision, .5 more recall */
const NOTABLE_RISE = 6
const NOTABLE_FALL = 4.8
/** how far beyond the usual it must be */
const BEYOND_USUAL = 1.8
/** how many times the excess of an ordinary burst it must have */
const BEYOND_BURSTS = 1.5
/** an hour next to an anomaly belongs to it from here on */
const BELONGS = 2.2
/** the same hours of the weeks before must be less than this much like it */
const UNLIKE_WEEKS = 3.5
/** lengths of the spans that are summed, hours: long ones find what is small and lasts */
const SPANS = [1, 2, 3, 6, 12, 24] as const
/** what more spans than one cost in chances of a false alarm */
const LONGER_SPAN = 0.4
/** error of the level, as a share: no length of a span averages it out */
const LEVEL_ERROR = 0.06
const MAX_GAP_HOURS = 3
const MAX_SCORE = 50
/** Fewer occurrences more or less are no anomaly however unlikely. */
const LEAST_DIFFERENCE = 10
const LEAST_RISE = 1.4
const LEAST_FALL = 0.65
const WEEKS_LOOKED_AT = 3
const SILENT_SHARE = 0.02
const NINETY_NINE = 2.576

/**
 * Finds the anomalies of a series. Each hour is judged by the days before it only, so what was found does not
 * change as more hours come, and is the same for the same counts.
 *
 * @param hours index 0 is a midnight in UTC; leading zeros are the time before the series began
 * @param memo of this series and frame; its training is to be forgotten when counts before the last day change
 */
export function findAnomalies(
  hours: Hours,
  options: DetectOptions,
  memo: SeriesMemo = { training: null },
): readonly Finding[] {
  const begins = options.begins ?? firstOf(hours.counts)
  if (begins === -1) return []
  const firstDay = Math.ceil(begins / DAY_HOURS)
  const from = Math.max(options.from, (firstDay + 1) * DAY_HOURS)
  if (from >= hours.counts.length || !isTelling(hours.counts)) return []
  const lastDay = Math.floor((hours.counts.length - 1) / DAY_HOURS)
  if (memo.training?.begins !== begins || memo.training.lastDay !== lastDay)
    memo.training = train(hours, { begins, from, lastDay })
  const { baselines, levels } = memo.training
  const means = meansOf(hours, memo.training)
  const excess = excessOf(hours.counts, means, from)
  const firstIndex = firstDay * DAY_HOURS
  const series: Series = { means, excess, baselines, levels, hours, options, from, firstIndex }
  const marks = clearMarks(from, hours.counts.length)
  for (let i = from; i < hours.counts.length; i++) markSpanEndingAt(series, i, marks)
  return (['up', 'down'] as const)
    .flatMap((direction) => runsOf(series, marks, direction))
    .toSorted((a, b) => a.from - b.from)
}

/** @returns -1 for nothing at all */
function firstOf(counts: Float64Array): number {
  for (let i = 0; i < counts.length; i++) if (counts[i] !== 0) return i
  return -1
}

/** Of a series that never has a handful in a day neither more nor less can be told. */
function isTelling(counts: Float64Array): boolean {
  let sum = 0
  for (let i = 0; i < counts.length; i++) {
    sum += (counts[i] ?? 0) - (counts[i - DAY_HOURS] ?? 0)
    if (sum >= LEAST_DIFFERENCE) return true
  }
  return false
}

interface Series extends Pick<Training, 'baselines' | 'levels'> {
  /** expected counts of the hours that are looked at */
  readonly means: Float64Array
  /** the sum of what was more than they, up to each hour */
  readonly excess: Float64Array
  readonly hours: Hours
  readonly options: DetectOptions
  readonly from: number
  /** where its history begins */
  readonly firstIndex: number
}

/** By hour: the best score of the spans it belongs to, and the hour at which that was first seen. */
interface Marked {
  readonly best: Float64Array
  readonly noticed: Int32Array
}

type Marks = Readonly<Record<Direction, Marked>>

/** Reused from series to series: thousands are looked at in a row. */
let pool = { up: noMarks(0), down: noMarks(0) }

function noMarks(length: number): Marked {
  return { best: new Float64Array(length), noticed: new Int32Array(length) }
}

/** Marks of no hour from `from` on; those before are not looked at. */
function clearMarks(from: number, length: number): Marks {
  if (pool.up.best.length < length) pool = { up: noMarks(length), down: noMarks(length) }
  pool.up.best.fill(0, from, length)
  pool.down.best.fill(0, from, length)
  return pool
}

const baselineAt = ({ baselines, from }: Series, i: number): Baseline | null =>
  baselines[Math.floor((i - from) / DAY_HOURS)] ?? null

/** The shortest span that ends here and is an anomaly, if there is one, is marked. */
function markSpanEndingAt(series: Series, end: number, marks: Marks): void {
  const baseline = baselineAt(series, end)
  const isUp = (series.hours.counts[end] ?? 0) > (series.means[end] ?? 0)
  // what a span is found for must last until its end
  if (baseline === null || !leans(series, end, isUp)) return
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

/** Whether any span that ends here differs by enough; what is marked only makes the difference smaller. */
function mayDiffer({ excess }: Series, end: number, longest: number, isUp: boolean): boolean {
  const until = excess[end + 1] ?? 0
  for (const span of SPANS) {
    if (span > longest) return false
    const more = until - (excess[end + 1 - span] ?? 0)
    if ((isUp ? more : -more) > LEAST_DIFFERENCE - 0.5) return true
  }
  return false
}

/** The running hour can only grow: alone, and only when it is too much already, it tells something. */
function longestSpan({ from, options }: Series, end: number, isUp: boolean): number {
  if (end < options.hours) return end - from + 1
  return isUp ? 1 : 0
}

interface Sum {
  observed: number
  expected: number
  /** of what is expected of each hour */
  squares: number
}

/** What belongs to an anomaly already says nothing of the hours after it. */
function addUnmarked({ hours, means }: Series, { best }: Marked, i: number, sum: Sum): void {
  if (best[i] !== 0) return
  const mean = means[i] ?? 0
  sum.observed += hours.counts[i] ?? 0
  sum.expected += mean
  sum.squares += mean * mean
}

/** @returns 0 for what is no anomaly */
function scoreOf(sum: Readonly<Sum>, baseline: Baseline, span: number, isUp: boolean): number {
  const { observed, expected } = sum
  if (!isWorthwhile(observed, expected, isUp)) return 0
  if (isUp && observed - expected < BEYOND_BURSTS * baseline.usualBurst) return 0
  const score = Math.abs(surprise(observed, expected, spreadOver(baseline, span, sum)))
  return score < thresholdOf(baseline, span, isUp) ? 0 : score
}

/** Cheap, and true of few hours: the rest need no logarithm. */
function isWorthwhile(observed: number, expected: number, isUp: boolean): boolean {
  if (Math.abs(observed - expected) < LEAST_DIFFERENCE) return false
  return isUp ? observed >= LEAST_RISE * expected : observed <= LEAST_FALL * expected
}

/**
 * φ of the sum of so many hours, whose deviations fade into one another. Hours of which much is expected weigh more:
 * where one has nearly all, nothing averages out.
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

/** Weekly jobs: of the same hours of the last weeks, all but the most alike one must differ from these. */
function resemblesWeeksBefore(series: Series, end: number, span: number, isUp: boolean): boolean {
  const baseline = baselineAt(series, end)
  const sums: Pick<Sum, 'expected' | 'squares'>[] = []
  for (let week = 1; week <= WEEKS_LOOKED_AT; week++) {
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

/** Counts of other weeks as what is expected of these. */
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

/** Marks the hours of a span that themselves lean its way. */
function mark(series: Series, { best, noticed }: Marked, { end, span, score, isUp }: Span): void {
  for (let i = end - span + 1; i <= end; i++) {
    if (best[i] !== 0 || !leans(series, i, isUp)) continue
    noticed[i] = end
    best[i] = Math.min(score, MAX_SCORE)
  }
}

function leans(series: Series, i: number, isUp: boolean): boolean {
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

/** Goes on over marked hours, short gaps between them, and what directly follows and still leans. */
function endOfRun(series: Series, { best }: Marked, from: number, isUp: boolean): number {
  let to = from + 1
  const { length } = series.hours.counts
  for (let next = to; next < length && next <= to + MAX_GAP_HOURS; next++) {
    if (best[next] !== 0 || belongs(series, to, next, isUp)) to = next + 1
  }
  return to
}

/** Whether the hours from `from` to `end`, taken together, are still unlike themselves. */
function belongs(series: Series, from: number, end: number, isUp: boolean): boolean {
  const baseline = baselineAt(series, end)
  if (baseline === null || end >= series.options.hours || !leans(series, end, isUp)) return false
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
  const [least, most] = expectedRange(expected, spread, NINETY_NINE)
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
