import { surprise } from './negative-binomial.js'
import { quantileOf } from './quantile.js'
import { DAY_HOURS, isWeekend, WEEK_HOURS, type Hours } from './frame.js'
import { cellsOf, clockOf } from './week-clock.js'

/**
 * The seasonal baseline of a series: expected count = level of the day × profile of the hour. Counts around it have the
 * variance κ·μ + (φ·μ)²: messages that come in groups of κ, of a negative binomial number.
 */
export interface Baseline {
  /** Expected counts at level 1: the 24 hours of a working day, then those of a day of the weekend. */
  readonly profile: readonly number[]
  /** Hours by which the senders' weekends begin before those in UTC. */
  readonly ahead: number
  /** φ of one hour. */
  readonly dispersion: number
  /** κ, at least 1. */
  readonly clumping: number
  /** Relative error of the level of a day. */
  readonly levelError: number
  /** The number of days averaged in the profiles of a working day and of a weekend day; 0 = unknown. */
  readonly days: readonly [working: number, weekend: number]
  /** Whole days of the training. */
  readonly trained: number
  /** Share of the hours of the training without occurrences. */
  readonly emptyShare: number
  /** Autocorrelation of the deviations at lag 1, 0..1. */
  readonly correlation: number
  /** The surprise that single hours, and sums of six hours, reached four times in the training; at least 0. */
  readonly usualUp: UsualSurprise
  readonly usualDown: UsualSurprise
  /** The excess that bursts reached four times in the training; 0 = no bursts. */
  readonly usualBurst: number
  /** The excess of the second greatest burst, if both would be anomalies in a series without bursts; 0 = none. */
  readonly burst: number
  /** The length that runs of outstandingly busy hours reached four times in the training. */
  readonly usualRun: number
}

export interface UsualSurprise {
  readonly hour: number
  readonly sixHours: number
}

export interface Fitted {
  readonly baseline: Baseline
  /** By day, from the first one of the training on. */
  readonly levels: readonly number[]
}

/** Days of training that an hourly profile needs; a profile with weekends needs as many of each kind of day. */
const DAILY_FROM_DAYS = 3
const WEEKLY_FROM_DAYS = 1
const MAX_DAYS = 60
/** Weight of the overall mean in the mean of a cell: one hour, but at most this many occurrences. */
const SHRINK_MOST = 1
/** Weight of level 1 in a day's level, in occurrences. */
const LEVEL_WEIGHT = 4
const LEVEL_DAYS = 5
/** An hour's count enters the level up to this multiple of its expected count. */
const HOUR_CAP = 4
/** The median of the chi-squared distribution with one degree of freedom. */
const MEDIAN_OF_SQUARE = 0.455
/**
 * The share of the squares that a trimmed mean keeps, and the mean of those under the chi-squared
 * distribution with one degree of freedom.
 */
const TRIMMED_SHARE = 0.8
const TRIMMED_MEAN_OF_SQUARE = 0.44
/**
 * The surprise from which on a span is an anomaly. With 8,760 hours a year, some 2 independent
 * spans and ten series a source, this allows one false alarm in 175,000 tests: 4.4 standard
 * deviations.
 */
export const NOTABLE = 4.4
const USUAL_TIMES = 4
/** Hours with less surprise than this do not count for `usualUp`, `usualDown`, `usualBurst` and `usualRun`. */
export const OUTSTANDING = 2.5
/** Up to this many values insertion sort is faster than quickselect. */
const INSERTION_MOST = 64
/** Below this surprise the normal approximation is accurate enough. */
const NEAR = 1.5
/** Outstanding hours with fewer hours between them are one episode. */
const EPISODE_HOURS = 4
const SIX = 6
const lastSix = new Float64Array(SIX)
/** Hours with smaller means are left out of the estimate of φ. */
const TELLING_MEAN = 1
const UNKNOWN_DISPERSION = 0.35
const LEAST_DISPERSION = 0.05
/** The prior of a level's relative error, and its weight in days. */
const USUAL_LEVEL_ERROR = 0.06
const LEVEL_ERROR_WEIGHT = 4
/** κ and φ can be separated when the mean of the busier half of the hours is at least this multiple of the quieter half's. */
const APART = 1.5
const MAX_DISPERSION = 4

const values = new Float64Array(DAY_HOURS * MAX_DAYS)
const means = new Float64Array(DAY_HOURS * MAX_DAYS)
const scratch = new Float64Array(DAY_HOURS * MAX_DAYS)
/** Profiles are copied from it: fractions make V8 allocate an array of doubles. */
const flat = new Float64Array(2 * DAY_HOURS).fill(0.5)
const greatest = new Float64Array(USUAL_TIMES)
const lastRatios = new Float64Array(LEVEL_DAYS)
const squares = new Float64Array(MAX_DAYS)

/**
 * Fits a baseline to whole days. Winsorized means, medians and median absolute deviations keep single bursts and
 * outages from moving it.
 *
 * @param from index of the first hour, a midnight
 * @param to the one after the last, at most 60 days later
 * @param until levels are computed up to the day of this hour
 */
export function fitBaseline(hours: Hours, from: number, to: number, until = to): Fitted {
  const profile = Array.from(flat)
  const days = daysOf(hours, from, to)
  const trained = days[0] + days[1]
  for (let i = from; i < to; i++) values[i - from] = hours.counts[i] ?? 0
  const overall = cappedMean(to - from, null)
  const isDaily = trained >= DAILY_FROM_DAYS
  const isWeekly = Math.min(...days) >= WEEKLY_FROM_DAYS
  const ahead = clockOf(hours, from, to)
  const cells = cellsOf(ahead)
  for (let cell = 0; cell < 2 * DAY_HOURS; cell++) {
    if (!isDaily) profile[cell] = overall
    else if (!isWeekly && cell >= DAY_HOURS) profile[cell] = profile[cell - DAY_HOURS] ?? 0
    else
      profile[cell] = cappedMean(
        gather(hours, { from, to, cells, cell: isWeekly ? cell : -cell - 1 }),
        overall,
      )
  }
  const { levels, deviance, sampling } = levelsOf(hours, { profile, cells, from, to, until })
  const spread = spreadOf(hours, { profile, cells, levels, from, to })
  const { dispersion, clumping, correlation } = spread
  const hourly = (dispersion * dispersion * sharedOver(DAY_HOURS, correlation)) / DAY_HOURS
  const own = Math.max(0, deviance - clumping * sampling - hourly)
  const known = Math.max(0, trained - 1)
  const weighted = LEVEL_ERROR_WEIGHT * USUAL_LEVEL_ERROR ** 2 + known * own
  const levelError = Math.sqrt(weighted / (LEVEL_ERROR_WEIGHT + known))
  const usuals = usualsOf(to - from, { ...spread, levelError })
  return {
    baseline: { profile, days, ahead, trained, levelError, ...spread, ...usuals },
    levels,
  }
}

/** The factor by which autocorrelation (at lag 1) increases the variance of a span's sum. */
export function sharedOver(span: number, correlation: number): number {
  let shared = 1
  for (let lag = 1; lag < span && correlation ** lag > 0.01; lag++)
    shared += 2 * (1 - lag / span) * correlation ** lag
  return shared
}

function daysOf(
  { startHour }: Hours,
  from: number,
  to: number,
): readonly [working: number, weekend: number] {
  let [working, weekend] = [0, 0]
  for (let midnight = from; midnight + DAY_HOURS <= to; midnight += DAY_HOURS)
    if (isWeekend(startHour + midnight)) weekend++
    else working++
  return [working, weekend]
}

interface Cell {
  readonly from: number
  readonly to: number
  readonly cells: Uint8Array
  /** Index into `profile`; -1 - hour of day for all days. */
  readonly cell: number
}

/** Copies the counts of a cell into `values`. */
function gather({ counts, startHour }: Hours, { from, to, cells, cell }: Cell): number {
  const hourOfDay = cell < 0 ? -cell - 1 : cell % DAY_HOURS
  let n = 0
  for (let i = from + hourOfDay; i < to; i += DAY_HOURS)
    if (cell < 0 || cells[(startHour + i) % WEEK_HOURS] === cell) values[n++] = counts[i] ?? 0
  return n
}

/** Winsorized mean of `values`: each is limited to three deviations from the median. May reorder them. */
function cappedMean(n: number, prior: number | null): number {
  const [median, distance] = n > INSERTION_MOST ? middleOfMany(n) : middleOfFew(n)
  const spread = 1.4826 * distance + Math.sqrt(median) + 1
  const [floor, cap] = [median - 3 * spread, median + 3 * spread]
  const weight = prior === null ? 0 : Math.min(1, SHRINK_MOST / Math.max(prior, SHRINK_MOST))
  let sum = weight * (prior ?? 0)
  for (let i = 0; i < n; i++) sum += Math.min(cap, Math.max(floor, values[i] ?? 0))
  return sum / Math.max(1, n + weight)
}

type Middle = readonly [median: number, medianDistance: number]

function middleOfMany(n: number): Middle {
  for (let i = 0; i < n; i++) scratch[i] = values[i] ?? 0
  const median = quantileOf(scratch, n, 0.5)
  for (let i = 0; i < n; i++) scratch[i] = Math.abs((values[i] ?? 0) - median)
  return [median, quantileOf(scratch, n, 0.5)]
}

/** By insertion sort: cells have a dozen values. */
function middleOfFew(n: number): Middle {
  for (let i = 1; i < n; i++) {
    const value = values[i] ?? 0
    let at = i
    for (; at > 0 && (values[at - 1] ?? 0) > value; at--) values[at] = values[at - 1] ?? 0
    values[at] = value
  }
  const median = values[middleIndex(n)] ?? 0
  return [median, medianDistance(n, median)]
}

/** @returns -1 for no values */
const middleIndex = (n: number): number => (n === 0 ? -1 : Math.round((n - 1) / 2))

/** Median absolute deviation of sorted `values`, found by walking outwards from the median. */
function medianDistance(n: number, median: number): number {
  let below = middleIndex(n)
  let above = below + 1
  const middle = middleIndex(n)
  let distance = 0
  for (let taken = 0; taken <= middle; taken++) {
    const down = below >= 0 ? median - (values[below] ?? 0) : Number.POSITIVE_INFINITY
    const up = above < n ? (values[above] ?? 0) - median : Number.POSITIVE_INFINITY
    distance = Math.min(down, up)
    if (down <= up) below--
    else above++
  }
  return distance
}

interface LevelOptions {
  readonly profile: readonly number[]
  readonly cells: Uint8Array
  readonly from: number
  readonly to: number
  readonly until: number
}

interface Levels {
  readonly levels: readonly number[]
  /** Robust variance of the days of the training around their levels, as shares of these. */
  readonly deviance: number
  /** The part of it that Poisson counts would have. */
  readonly sampling: number
}

/**
 * The level of a day is the median ratio of count to profile over the five days before it. After
 * three days a level shift becomes the new level.
 *
 * @returns the levels from the day of `from` to that of `until`
 */
function levelsOf(
  { counts, startHour }: Hours,
  { profile, cells, from, to, until }: LevelOptions,
): Levels {
  const days = Math.floor((until - from) / DAY_HOURS) + 1
  const trained = (to - from) / DAY_HOURS
  const levels: number[] = []
  const ratios = scratch
  let [known, sampling] = [0, 0]
  for (let day = 0; day < days; day++) {
    const before = Math.min(day, LEVEL_DAYS)
    for (let i = 0; i < before; i++) lastRatios[i] = ratios[day - 1 - i] ?? 1
    const level = before === 0 ? 1 : quantileOf(lastRatios, before, 0.5)
    levels.push(level)
    let [had, wanted] = [LEVEL_WEIGHT, LEVEL_WEIGHT]
    const midnight = from + day * DAY_HOURS
    for (let i = midnight; i < midnight + DAY_HOURS && i < until; i++) {
      const mean = profile[cells[(startHour + i) % WEEK_HOURS] ?? 0] ?? 0
      had += Math.min(counts[i] ?? 0, HOUR_CAP * mean * Math.max(1, level) + 10)
      wanted += mean
    }
    ratios[day] = had / wanted
    if (day === 0 || day >= trained) continue
    squares[known++] = (had / wanted / level - 1) ** 2
    sampling += 1 / wanted
  }
  const deviance = quantileOf(squares, known, 0.5) / MEDIAN_OF_SQUARE
  return { levels, deviance, sampling: sampling / Math.max(1, known) }
}

type Spread = Pick<Baseline, 'dispersion' | 'clumping' | 'emptyShare' | 'correlation'>
type Usuals = Pick<Baseline, 'usualUp' | 'usualDown' | 'usualBurst' | 'burst' | 'usualRun'>

interface SpreadOptions {
  readonly profile: readonly number[]
  readonly cells: Uint8Array
  readonly levels: readonly number[]
  readonly from: number
  readonly to: number
}

function spreadOf({ counts, startHour }: Hours, options: SpreadOptions): Spread {
  const { profile, cells, levels, from, to } = options
  const n = to - from
  for (let i = 0; i < n; i++) {
    values[i] = counts[from + i] ?? 0
    const cell = cells[(startHour + from + i) % WEEK_HOURS] ?? 0
    means[i] = (levels[Math.floor(i / DAY_HOURS)] ?? 1) * (profile[cell] ?? 0)
  }
  const { dispersion, clumping } = dispersionOf(n)
  let empty = 0
  for (let i = 0; i < n; i++) {
    const [count, mean] = [values[i] ?? 0, means[i] ?? 0]
    if (count === 0) empty++
    scratch[i] = mean
    values[i] = roughSurprise(count / clumping, mean / clumping, dispersion)
    means[i] = count - mean
  }
  return { dispersion, clumping, emptyShare: empty / Math.max(1, n), correlation: correlationOf(n) }
}

/**
 * The usual surprises and bursts, computed from what `spreadOf` leaves behind: surprises in
 * `values`, means in `scratch` and differences from them in `means`. The arrays are overwritten.
 */
function usualsOf(n: number, spread: Spread & Pick<Baseline, 'levelError'>): Usuals {
  const usualBurst = usual(n, 1, means)
  const second = greatest[1] ?? 0
  const up = usual(n, 1, values)
  const burst = (greatest[1] ?? 0) < NOTABLE ? 0 : second
  const down = usual(n, -1, values)
  const usualRun = runOf(n)
  sumSixHours(n, spread)
  return {
    usualBurst,
    burst,
    usualRun,
    usualUp: { hour: up, sixHours: usual(n, 1, values) },
    usualDown: { hour: down, sixHours: usual(n, -1, values) },
  }
}

/**
 * The greatest difference from the mean that an hour adds to a sum, because one extreme hour says
 * little about its neighbours.
 */
export const mostOfHour = (
  { clumping, dispersion, levelError }: Pick<Baseline, 'clumping' | 'dispersion' | 'levelError'>,
  mean: number,
): number =>
  NOTABLE * Math.sqrt(clumping * mean + (dispersion ** 2 + levelError ** 2) * mean * mean) + 1

/** Puts the surprises of the sums of six hours into `values`. */
function sumSixHours(n: number, spread: Spread & Pick<Baseline, 'levelError'>): void {
  const { clumping, dispersion, correlation } = spread
  const ofSum = dispersion * Math.sqrt(Math.min(1, sharedOver(SIX, correlation) / SIX))
  let [excess, expected] = [0, 0]
  for (let i = 0; i < n; i++) {
    const most = mostOfHour(spread, scratch[i] ?? 0)
    const own = Math.min(most, Math.max(-most, means[i] ?? 0))
    excess += own - (i < SIX ? 0 : (lastSix[i % SIX] ?? 0))
    expected += (scratch[i] ?? 0) - (i < SIX ? 0 : (scratch[i - SIX] ?? 0))
    lastSix[i % SIX] = own
    const mean = Math.max(0, expected) / clumping
    values[i] = roughSurprise(Math.max(0, mean + excess / clumping), mean, ofSum)
  }
}

/** An approximation that needs no logarithm near the mean, where most hours are. */
function roughSurprise(count: number, mean: number, dispersion: number): number {
  const rough = (count - mean) / Math.sqrt(mean + (dispersion * mean) ** 2 + 0.05)
  return Math.abs(rough) < NEAR ? rough : surprise(count, mean, dispersion)
}

/**
 * The fourth greatest size among the episodes; an episode is a run of hours whose surprise, in
 * `values`, is outstanding. One long outage is one episode, so it does not hide the next.
 */
function usual(n: number, sign: 1 | -1, sizes: Float64Array): number {
  const most = greatest.fill(0)
  let [peak, lastAt] = [0, -EPISODE_HOURS]
  for (let i = 0; i < n; i++) {
    if (sign * (values[i] ?? 0) < OUTSTANDING) continue
    if (i - lastAt >= EPISODE_HOURS) {
      insertDescending(most, peak)
      peak = 0
    }
    peak = Math.max(peak, sign * (sizes[i] ?? 0))
    lastAt = i
  }
  insertDescending(most, peak)
  return most[USUAL_TIMES - 1] ?? 0
}

/** Length in hours of the fourth longest run of consecutive hours whose surprise (in `values`) is at least `OUTSTANDING`. */
function runOf(n: number): number {
  const most = greatest.fill(0)
  let run = 0
  for (let i = 0; i <= n; i++) {
    if (i < n && (values[i] ?? 0) >= OUTSTANDING) {
      run++
      continue
    }
    if (run > 0) insertDescending(most, run)
    run = 0
  }
  return most[USUAL_TIMES - 1] ?? 0
}

function insertDescending(most: Float64Array, value: number): void {
  let at = most.length - 1
  if (value <= (most[at] ?? 0)) return
  for (; at > 0 && (most[at - 1] ?? 0) < value; at--) most[at] = most[at - 1] ?? 0
  most[at] = value
}

type Dispersion = Pick<Baseline, 'dispersion' | 'clumping'>

/**
 * Estimates κ and φ by the method of moments, with trimmed means of squares for robustness: the
 * variance over the mean is κ + φ²·μ, a line through the quieter and the busier half of the hours.
 *
 * Source: McCullagh and Nelder, Generalized Linear Models, 1989, section 6.2 (variance functions of clustered counts).
 */
function dispersionOf(n: number): Dispersion {
  // A short training estimates the spread badly, so the lower bound of φ falls with its length.
  const least = Math.max(LEAST_DISPERSION, 0.2 / Math.sqrt(Math.max(1, n / DAY_HOURS)))
  let known = 0
  for (let i = 0; i < n; i++) if ((means[i] ?? 0) >= TELLING_MEAN) scratch[known++] = means[i] ?? 0
  if (known < DAY_HOURS) return { dispersion: Math.max(UNKNOWN_DISPERSION, least), clumping: 1 }
  const middle = quantileOf(scratch, known, 0.5)
  const quiet = halfOf(n, (mean) => mean >= TELLING_MEAN && mean <= middle)
  const busy = halfOf(n, (mean) => mean > middle)
  const isApart = busy.hours >= DAY_HOURS && busy.mean >= APART * quiet.mean
  const slope = (busy.ratio - quiet.ratio) / Math.max(1e-9, busy.mean - quiet.mean)
  const all = isApart ? quiet : halfOf(n, (mean) => mean >= TELLING_MEAN)
  const squared = isApart ? slope : (all.ratio - 1) / all.mean
  const clumping = isApart ? Math.max(1, quiet.ratio - Math.max(0, slope) * quiet.mean) : 1
  const dispersion = 1.1 * Math.sqrt(Math.max(0, squared))
  return { dispersion: Math.min(MAX_DISPERSION, Math.max(least, dispersion)), clumping }
}

/** The mean of the smallest values in `scratch`; unlike a median it also works for small counts. */
function trimmedMean(n: number): number {
  quantileOf(scratch, n, TRIMMED_SHARE)
  const kept = Math.round(TRIMMED_SHARE * n)
  let sum = 0
  for (let i = 0; i < kept; i++) sum += scratch[i] ?? 0
  return sum / Math.max(1, kept)
}

interface Half {
  readonly hours: number
  readonly mean: number
  /** Variance over mean. */
  readonly ratio: number
}

function halfOf(n: number, isOfIt: (mean: number) => boolean): Half {
  let [hours, sum] = [0, 0]
  for (let i = 0; i < n; i++) {
    const mean = means[i] ?? 0
    if (!isOfIt(mean)) continue
    scratch[hours++] = ((values[i] ?? 0) - mean) ** 2 / mean
    sum += mean
  }
  return {
    hours,
    mean: sum / Math.max(1, hours),
    ratio: trimmedMean(hours) / TRIMMED_MEAN_OF_SQUARE,
  }
}

/** Autocorrelation at lag 1 of the surprises in `values`, each limited to ±3. */
function correlationOf(n: number): number {
  const cut = (i: number): number => Math.min(3, Math.max(-3, values[i] ?? 0))
  let [products, own] = [0, 1e-9]
  for (let i = 1; i < n; i++) {
    products += cut(i) * cut(i - 1)
    own += cut(i) * cut(i)
  }
  return Math.min(0.98, Math.max(0, products / own))
}
