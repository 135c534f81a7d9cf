import { mostOfHour, NOTABLE, OUTSTANDING, sharedOver, type Baseline } from './baseline.js'
import { DAY_HOURS, WEEK_HOURS, type Hours } from './frame.js'
import { surprise } from './negative-binomial.js'
import { expectedCounts, type RollingBaseline } from './rolling-baseline.js'
import { cellsOf } from './week-clock.js'

/** The counts of a series and their expected values, with prefix sums for any span. */
export interface Series extends RollingBaseline {
  readonly hours: Hours
  /** Expected counts from `from` on; 0 where nothing is expected yet. */
  readonly means: Float64Array
  /** Prefix sums from `from` on: counts, counts limited to what one hour may add, means, and squared means. */
  readonly counted: Float64Array
  readonly limited: Float64Array
  readonly expected: Float64Array
  readonly squares: Float64Array
  /** Whole hours; a count at this index is of the running hour. */
  readonly whole: number
}

/** The shortest span that ends at an hour and is an anomaly. */
export interface Notice {
  readonly span: number
  readonly score: number
}

/**
 * The spread of few days is uncertain, so with n days of training the threshold is higher by the
 * factor 1 + UNCERTAIN_DAYS / n.
 */
const UNCERTAIN_DAYS = 2
/** Least multiple of the excess of the series' ordinary bursts. */
const BEYOND_BURSTS = 1.5
/** Least multiple of the surprise that the series reaches repeatedly. */
const BEYOND_USUAL = 1.8
/**
 * In a series with bursts, outstanding hours in a row are an anomaly when there are at least `LASTING_HOURS`, and at least
 * `BEYOND_RUNS` more than in its usual runs.
 */
const LASTING_HOURS = 3
const BEYOND_RUNS = 2
/** The score that each doubling of a burst adds, derived from a Pareto tail of index 1.3 near 4.7 deviations. */
const DOUBLING = 0.2
/** Surprise from which on an hour next to an anomaly belongs to it. */
const BELONGS = 2.2
/** Least surprise compared with the same hours of earlier days or weeks. */
const UNLIKE_EARLIER = 3.5
/** Hours of the spans that are summed: long ones find small changes that last. */
const SPANS = [1, 2, 3, 6, 12, 24] as const
/** The last part of a span, which must deviate itself, is this part of it. */
const LAST_PART = 4
/** Least difference from what was expected, however unlikely it is. */
const LEAST_DIFFERENCE = 10
const LEAST_RISE = 1.4
const LEAST_FALL = 0.65
/** Expected counts differ by this factor between neighbouring hours where a job begins or ends. */
const EDGE = 2
const WEEKS_COMPARED = 3
/** A change of schedule repeats after these hours: the next day, after a weekend, the next week. */
const REPEATS_AFTER = [DAY_HOURS, 2 * DAY_HOURS, 3 * DAY_HOURS, WEEK_HOURS] as const
/** Hours by which a repetition may be later or earlier. */
const JITTER = [0, 1, -1] as const
/** The least and the greatest ratio of a repetition to the usual count. */
const AGAIN_RISE = 1.2
const AGAIN_FALL = 0.8
/** Hours without an anomaly between one and its repetition. */
const APART_HOURS = 4
export const SILENT_SHARE = 0.02
/** A series with more empty hours than this share is not steady. */
const STEADY_EMPTY_SHARE = 0.02

let pools = [0, 1, 2, 3].map(() => new Float64Array(0))

/** The arrays are reused: the next call overwrites them. */
export function seriesOf(hours: Hours, rolling: RollingBaseline, whole: number): Series {
  const { length } = hours.counts
  const means = expectedCounts(hours, rolling)
  if ((pools[0]?.length ?? 0) <= length) pools = pools.map(() => new Float64Array(length + 1))
  const [counted, limited, expected, squares] = pools
  if (!counted || !limited || !expected || !squares) throw new Error('bug: four pools')
  let [n, x, m, m2] = [0, 0, 0, 0]
  for (let i = rolling.from; i < length; i++) {
    counted[i] = n
    limited[i] = x
    expected[i] = m
    squares[i] = m2
    const baseline = baselineOf(rolling, i)
    if (baseline === null) continue
    const mean = means[i] ?? 0
    const count = hours.counts[i] ?? 0
    n += count
    x += exact(limitedCount(baseline, mean, count))
    m += exact(mean)
    m2 += exact(mean * mean)
  }
  counted[length] = n
  limited[length] = x
  expected[length] = m
  squares[length] = m2
  return { ...rolling, hours, means, counted, limited, expected, squares, whole }
}

/** A multiple of 2^-16: sums of such numbers have no rounding errors, so a span has one sum wherever the counts begin. */
const exact = (value: number): number => Math.round(value * 65_536) / 65_536

const baselineOf = ({ baselines, from }: RollingBaseline, i: number): Baseline | null =>
  baselines[Math.floor((i - from) / DAY_HOURS)] ?? null

function limitedCount(baseline: Baseline, mean: number, count: number): number {
  const most = mostOfHour(baseline, mean)
  return Math.min(mean + most, Math.max(mean - most, count))
}

export interface Sum {
  readonly observed: number
  readonly expected: number
  /** Sum of the squared expected counts. */
  readonly squares: number
}

/** The sum of the hours from one to before another, each limited to what would be an anomaly alone. */
const limitedSum = ({ limited, expected, squares }: Series, from: number, to: number): Sum => ({
  observed: (limited[to] ?? 0) - (limited[from] ?? 0),
  expected: (expected[to] ?? 0) - (expected[from] ?? 0),
  squares: (squares[to] ?? 0) - (squares[from] ?? 0),
})

/** The sum of the hours from one to before another. */
export const sumOf = ({ counted, expected, squares }: Series, from: number, to: number): Sum => ({
  observed: (counted[to] ?? 0) - (counted[from] ?? 0),
  expected: (expected[to] ?? 0) - (expected[from] ?? 0),
  squares: (squares[to] ?? 0) - (squares[from] ?? 0),
})

/** The means by which a span of hours is evaluated. */
export interface Judge {
  readonly baseline: Baseline
  /** φ of the span's sum. */
  readonly spread: number
}

/**
 * φ of the sum of a span: of its hours, whose deviations are autocorrelated (first-order
 * autoregression), of the error of their profile, which is the mean of few days, and of the level's
 * error, which nothing averages out. The effective number of hours is (Σμ)²/Σμ², which is near 1
 * when one hour has nearly all of the span's count.
 */
export function judgeOf(series: Series, from: number, to: number, sum: Sum): Judge | null {
  const baseline = baselineOf(series, to - 1)
  if (baseline === null) return null
  const { dispersion, correlation, clumping, days, trained, levelError } = baseline
  const span = to - from
  const shared = sharedOver(span, correlation)
  const hours = sum.squares === 0 ? span : (sum.expected * sum.expected) / sum.squares
  const own = dispersion * dispersion
  const mean = Math.max(sum.expected / span, 0.05)
  const kind = cellAt(series, to - 1, to - 1) < DAY_HOURS ? 0 : 1
  const known = trained < 3 ? trained * DAY_HOURS : Math.max(1, days[kind])
  const profile = (own + clumping / mean) / known
  const spread = own * Math.min(1, shared / hours) + profile / hours + levelError * levelError
  return { baseline, spread: Math.sqrt(spread) }
}

const surpriseOf = (sum: Sum, { baseline: { clumping }, spread }: Judge): number =>
  surprise(sum.observed / clumping, sum.expected / clumping, spread)

/** Index into the profile of an hour, by the clock of the day of another one. */
function cellAt(series: Series, i: number, asAt: number): number {
  const ahead = baselineOf(series, asAt)?.ahead ?? 0
  return cellsOf(ahead)[(series.hours.startHour + i + shiftAt(series, asAt)) % WEEK_HOURS] ?? 0
}

/** Hours by which the clock of an hour's day is ahead of that of its baseline. */
const shiftAt = ({ shifts, from }: Series, i: number): number =>
  shifts[Math.floor((i - from) / DAY_HOURS)] ?? 0

/** Whether an hour is too high, or too low, by a factor that matters. */
export function deviates({ hours, means }: Series, i: number, isUp: boolean): boolean {
  const [observed, mean] = [hours.counts[i] ?? 0, means[i] ?? 0]
  return isUp ? observed > LEAST_RISE * mean : observed < LEAST_FALL * mean
}

/** Whether an hour belongs to an anomaly next to it. It depends on the three hours up to it and their baseline only. */
export function belongs(series: Series, i: number, isUp: boolean): boolean {
  if (i >= series.whole || !deviates(series, i, isUp)) return false
  for (const span of [1, 3]) {
    const from = Math.max(series.from, i + 1 - span)
    const sum = limitedSum(series, from, i + 1)
    const judge = judgeOf(series, from, i + 1, sum)
    if (judge === null) return false
    if ((isUp ? 1 : -1) * surpriseOf(sum, judge) >= BELONGS) return true
  }
  return false
}

/** Evaluates the spans that end at an hour. The result depends only on the counts of the four weeks up to the hour. */
export function noticeAt(series: Series, end: number, isUp: boolean): Notice | null {
  // The current hour is evaluated alone and only for high counts, because its count still grows.
  const isRunning = end >= series.whole
  if (baselineOf(series, end) === null || (isRunning && !isUp)) return null
  for (const span of SPANS) {
    const from = end + 1 - span
    if (from < series.from || (isRunning && span > 1)) return null
    if (!differs(series, from, end + 1, isUp)) continue
    const last = end + 1 - Math.ceil(span / LAST_PART)
    if (!isFar(sumOf(series, last, end + 1), isUp)) continue
    const sum = span === 1 ? sumOf(series, end, end + 1) : limitedSum(series, from, end + 1)
    const score = scoreOf(series, { from, end, sum, isUp })
    if (score > 0) return { span, score }
  }
  return null
}

/** Whether a span of hours is an anomaly regardless of earlier ones. */
export function standsAlone(series: Series, from: number, end: number, isUp: boolean): boolean {
  if (!differs(series, from, end + 1, isUp)) return false
  const sum = from === end ? sumOf(series, end, end + 1) : limitedSum(series, from, end + 1)
  return scoreOf(series, { from, end, sum, isUp }) > 0
}

/** The surprise of a whole anomaly. If bursts are usual, no hour counts for more than a usual burst. */
export function scoreOfWhole(
  series: Series,
  { from, to, isUp }: Pick<Span, 'from' | 'isUp'> & { readonly to: number },
  { sum, judge }: { readonly sum: Sum; readonly judge: Judge },
): number {
  const { baseline } = judge
  if (!isUp || baseline.burst === 0) return Math.abs(surpriseOf(sum, judge))
  let [observed, out] = [0, 0]
  for (let i = from; i < to; i++) {
    if (belongs(series, i, true)) out++
    const mean = series.means[i] ?? 0
    const most = mean + Math.max(baseline.burst, mostOfHour(baseline, mean))
    observed += Math.min(most, series.hours.counts[i] ?? 0)
  }
  // For fewer hours the score of the notice is enough.
  return out < LASTING_HOURS ? 0 : Math.abs(surpriseOf({ ...sum, observed }, judge))
}

/** A cheap test that excludes most spans before `surprise` needs logarithms and an object. */
function differs({ counted, expected }: Series, from: number, to: number, isUp: boolean): boolean {
  const count = (counted[to] ?? 0) - (counted[from] ?? 0)
  const mean = (expected[to] ?? 0) - (expected[from] ?? 0)
  if (isUp) return count - mean >= LEAST_DIFFERENCE && count >= LEAST_RISE * mean
  return mean - count >= LEAST_DIFFERENCE && count <= LEAST_FALL * mean
}

const isFar = ({ observed, expected }: Sum, isUp: boolean): boolean =>
  isUp ? observed >= LEAST_RISE * expected : observed <= LEAST_FALL * expected

interface Span {
  readonly from: number
  readonly end: number
  readonly sum: Sum
  readonly isUp: boolean
}

/** @returns 0 when the span is no anomaly */
function scoreOf(series: Series, span: Span): number {
  const { from, end, sum, isUp } = span
  const judge = judgeOf(series, from, end + 1, sum)
  if (judge === null) return 0
  const deviations = Math.abs(surpriseOf(sum, judge))
  const run = isUp ? scoreOfRun(series, span, judge) : 0
  const lasts = run >= leastScore(judge.baseline)
  if (!lasts && deviations < thresholdOf(judge.baseline, span)) return 0
  const alone = isUp ? scoreOfRise(series, span, { judge, deviations }) : deviations
  const score = lasts ? Math.max(run, deviations) : alone
  if (score === 0 || isBesideEdge(series, span, judge)) return 0
  return isWeekly(series, span, judge) || isRepeated(series, span, judge) ? 0 : score
}

interface Judged {
  readonly judge: Judge
  readonly deviations: number
}

/**
 * The surprise of a span in which every hour stands out, when these are more in a row than the bursts of the series; else 0.
 * Bursts come by themselves: where one hour in forty has one, three in a row are less likely than one in 60,000, whatever
 * their size. The surprises of the hours are added, none above what would be an anomaly alone, over the deviation of such
 * a sum: neighbours are correlated, and all share the error of the level.
 *
 * Sources: Wald and Wolfowitz, On a test whether two samples are from the same population, 1940 (runs); Stouffer's sum of
 * standard normal deviates, for dependent ones by Strube, Psychological Bulletin 1985.
 */
function scoreOfRun(series: Series, { from, end, sum: whole }: Span, { baseline }: Judge): number {
  const span = end + 1 - from
  const { usualRun, correlation, dispersion, clumping, levelError } = baseline
  if (span < Math.max(LASTING_HOURS, usualRun + BEYOND_RUNS)) return 0
  let surprises = 0
  for (let i = from; i <= end; i++) {
    const sum = sumOf(series, i, i + 1)
    const judge = judgeOf(series, i, i + 1, sum)
    const own = judge === null ? 0 : surpriseOf(sum, judge)
    if (own < OUTSTANDING) return 0
    surprises += Math.min(NOTABLE, own)
  }
  const mean = whole.expected / span
  const ofLevel = levelError ** 2 * mean
  const common = ofLevel / (clumping + dispersion ** 2 * mean + ofLevel)
  const variance = span * sharedOver(span, correlation) * (1 - common) + span * span * common
  return surprises / Math.sqrt(variance)
}

/** The tail of bursts is heavy: however great one is, a greater one comes. So an hour or two get a score by their size. */
function scoreOfRise(series: Series, { from, end }: Span, { judge, deviations }: Judged): number {
  const { burst, usualBurst } = judge.baseline
  const span = end + 1 - from
  const { observed, expected } = sumOf(series, from, end + 1)
  const excess = observed - expected
  if (excess < BEYOND_BURSTS * usualBurst) return 0
  if (burst === 0 || span > LASTING_HOURS) return deviations
  if (span === LASTING_HOURS) return 0
  return Math.min(deviations, NOTABLE + DOUBLING * Math.log2(Math.max(1, excess / burst)))
}

const leastScore = ({ trained }: Baseline): number =>
  NOTABLE * (1 + UNCERTAIN_DAYS / Math.max(1, trained))

/** The threshold of a span. In a span of two hours a single outstanding hour contributes its surprise divided by √2. */
function thresholdOf(baseline: Baseline, { from, end, isUp }: Span): number {
  const { hour, sixHours } = isUp ? baseline.usualUp : baseline.usualDown
  const span = end + 1 - from
  const usual = span < 3 ? hour / Math.sqrt(span) : sixHours
  return Math.max(leastScore(baseline), BEYOND_USUAL * usual)
}

/**
 * Whether a job at either end of the span explains it: one that ran some minutes early or late, and
 * so fell into another hour.
 */
function isBesideEdge(series: Series, { from, end, sum, isUp }: Span, judge: Judge): boolean {
  const usual = (i: number): number => usualOf(series, i, end)
  const job = isUp
    ? Math.max(usual(end + 1) - usual(end), usual(from - 1) - usual(from))
    : Math.max(usual(end) - usual(end - 1), usual(from) - usual(from + 1))
  const beside = Math.max(0, sum.expected + (isUp ? job : -job))
  const isEdge = isUp ? beside >= EDGE * sum.expected : EDGE * beside <= sum.expected
  return isEdge && isAlike(sum.observed, beside, { judge, isUp })
}

/** Whether two of the last three weeks had similar counts in the same hours, by today's clock, as a weekly job has. */
function isWeekly(series: Series, { from, end, isUp }: Span, judge: Judge): boolean {
  const sums: number[] = []
  for (let week = 1; week <= WEEKS_COMPARED; week++) {
    const before = week * WEEK_HOURS - shiftAt(series, end)
    if (from >= before) sums.push(countOf(series, from - before, end + 1 - before))
  }
  sums.sort((a, b) => a - b)
  const alike = isUp ? sums.at(-2) : sums[1]
  return alike !== undefined && isAlike(countOf(series, from, end + 1), alike, { judge, isUp })
}

/**
 * Whether about the same hours of an earlier day deviated alike and the hours between did not: a
 * job that moved, or a clock that was shifted. Repeated silence of a steady series is not accepted.
 */
function isRepeated(series: Series, { from, end, sum, isUp }: Span, judge: Judge): boolean {
  const isSteady = judge.baseline.emptyShare <= STEADY_EMPTY_SHARE
  const isSilent = isSteady && countOf(series, from, end + 1) === 0
  return REPEATS_AFTER.some((after) =>
    JITTER.some((by) => {
      const [first, last] = [from - after + by, end - after + by]
      if (first < 0 || (isSilent && countOf(series, first, last + 1) === 0)) return false
      const [before, usual] = earlierSum(series, { from: first, to: last + 1, later: after - by })
      if (isUp ? before < AGAIN_RISE * usual : before > AGAIN_FALL * usual) return false
      const difference = countOf(series, first, last + 1) - usual
      if (Math.abs(difference) < LEAST_DIFFERENCE / 2) return false
      const apart = surpriseOf({ observed: before, expected: usual, squares: 0 }, judge)
      if (Math.abs(apart) < BELONGS) return false
      // On a weekend day, the count of a working day is scaled down.
      const asNow = usual < 1 ? before : (before * sum.expected) / usual
      const alike = by !== 0 ? asNow : isUp ? Math.max(before, asNow) : Math.min(before, asNow)
      return (
        isAlike(sum.observed, alike, { judge, isUp }) && isApart(series, last + 1, { end, isUp })
      )
    }),
  )
}

/** The limited counts of earlier hours, and their expected counts. */
function earlierSum(
  series: Series,
  { from, to, later }: Earlier,
): readonly [before: number, usual: number] {
  let [before, usual] = [0, 0]
  for (let i = from; i < to; i++) {
    const baseline = baselineOf(series, i + later)
    const mean = usualOf(series, i, i + later)
    const count = series.hours.counts[i] ?? 0
    before += to - from === 1 || baseline === null ? count : limitedCount(baseline, mean, count)
    usual += mean
  }
  return [before, usual]
}

interface Earlier {
  readonly from: number
  readonly to: number
  /** The distance in hours to the span that they are compared with. */
  readonly later: number
}

const isAlike = (
  now: number,
  before: number,
  { judge, isUp }: { readonly judge: Judge; readonly isUp: boolean },
): boolean => {
  const score = surpriseOf({ observed: now, expected: before, squares: 0 }, judge)
  return Math.abs(score) < UNLIKE_EARLIER || isUp !== score > 0
}

/** Whether there is a gap between two times: some hours in a row that do not deviate. */
function isApart(series: Series, from: number, { end, isUp }: Pick<Span, 'end' | 'isUp'>): boolean {
  let quiet = 0
  for (let i = from; i <= end; i++) {
    const usual = usualOf(series, i, end)
    const count = series.hours.counts[i] ?? 0
    const isOut = isFar({ observed: count, expected: usual, squares: 0 }, isUp) && usual + count > 1
    quiet = isOut ? 0 : quiet + 1
    if (quiet >= APART_HOURS) return true
  }
  return false
}

/** The expected count of an hour by the baseline, level and clock of another one. */
function usualOf(series: Series, i: number, asAt: number): number {
  const baseline = baselineOf(series, asAt)
  const level = series.levels[Math.floor((asAt - series.from) / DAY_HOURS)] ?? 1
  return level * (baseline?.profile[cellAt(series, i, asAt)] ?? 0)
}

function countOf({ hours }: Series, from: number, to: number): number {
  let sum = 0
  for (let i = from; i < to; i++) sum += hours.counts[i] ?? 0
  return sum
}
