import { surprise } from './negative-binomial.js'
import { quantileOf } from './quantile.js'
import { DAY_HOURS, weekdayOf } from './frame.js'

/**
 * The seasonal baseline of a series: expected count = level of the day × profile of the hour. Counts around it are
 * negative binomial with variance μ + (φ·μ)².
 */
export interface Baseline {
  /** Expected counts at level 1: the 24 hours of a working day, then those of a day of the weekend. */
  readonly profile: readonly number[]
  /** φ of one hour. */
  readonly dispersion: number
  /** Autocorrelation of the deviations at lag 1, 0..1. */
  readonly correlation: number
  /** Surprise that single hours reached four times in the training; at least 0. */
  readonly usualUp: number
  readonly usualDown: number
  /** Excess that bursts reached four times in the training; 0 = no bursts. */
  readonly usualBurst: number
}

export interface Fitted {
  readonly baseline: Baseline
  /** By day, from the first one of the training on. */
  readonly levels: readonly number[]
}

/** Counts by hour. */
export interface Hours {
  readonly counts: Float64Array
  /** Hours since 1970 of index 0, a midnight in UTC. */
  readonly startHour: number
}

/** Days of training that a profile by hour needs, and one that separates working days from weekends. */
const DAILY_FROM_DAYS = 3
const WEEKLY_FROM_DAYS = 14
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
const USUAL_TIMES = 4
/** Hours of less surprise than this are no part of `usualUp`, `usualDown` and `usualBurst`. */
const OUTSTANDING = 2.5
/** Up to this many values insertion sort is faster than quickselect. */
const INSERTION_MOST = 64
/** Below this surprise the normal approximation is near enough. */
const NEAR = 1.5
/** Outstanding hours with fewer hours between them are one episode. */
const EPISODE_HOURS = 4
/** Hours with smaller means than this are no part of the estimate of φ. */
const TELLING_MEAN = 1
const UNKNOWN_DISPERSION = 0.35
const MAX_DISPERSION = 4

const values = new Float64Array(DAY_HOURS * MAX_DAYS)
const means = new Float64Array(DAY_HOURS * MAX_DAYS)
const scratch = new Float64Array(DAY_HOURS * MAX_DAYS)
/** Profiles are copied from it: fractions make V8 allocate an array of doubles. */
const flat = new Float64Array(2 * DAY_HOURS).fill(0.5)
const greatest = new Float64Array(USUAL_TIMES)
const lastRatios = new Float64Array(LEVEL_DAYS)

/** Index into `profile` of an hour since 1970. */
export const cellOf = (hour: number): number =>
  firstCellOf(hour) + hour - DAY_HOURS * Math.floor(hour / DAY_HOURS)

/** Index into `profile` of the midnight of an hour's day; the day's other hours follow. */
const firstCellOf = (hour: number): number => (weekdayOf(hour) >= 5 ? DAY_HOURS : 0)

/**
 * Fits a baseline to whole days. Winsorized means, medians and median absolute deviations keep single bursts and
 * outages from moving it.
 *
 * @param from index of the first hour, a midnight
 * @param to the one after the last, at most 60 days later
 * @param until levels are computed up to the day of this hour
 */
export function fitBaseline(hours: Hours, from: number, to: number, until = to): Fitted {
  const days = Math.floor((to - from) / DAY_HOURS)
  const profile = Array.from(flat)
  for (let i = from; i < to; i++) values[i - from] = hours.counts[i] ?? 0
  const overall = cappedMean(to - from, null)
  const isDaily = days >= DAILY_FROM_DAYS
  const isWeekly = days >= WEEKLY_FROM_DAYS
  for (let cell = 0; cell < 2 * DAY_HOURS; cell++) {
    if (!isDaily) profile[cell] = overall
    else if (!isWeekly && cell >= DAY_HOURS) profile[cell] = profile[cell - DAY_HOURS] ?? 0
    else profile[cell] = cappedMean(gather(hours, from, to, isWeekly ? cell : -cell - 1), overall)
  }
  const levels = levelsOf(hours, profile, from, until)
  return { baseline: { profile, ...spreadOf(hours, { profile, levels, from, to }) }, levels }
}

/** Copies the counts of a cell into `values`. @param cell index into `profile`; -1 - hour of day for all days */
function gather({ counts, startHour }: Hours, from: number, to: number, cell: number): number {
  const hourOfDay = cell < 0 ? -cell - 1 : cell % DAY_HOURS
  let n = 0
  for (let midnight = from; midnight < to; midnight += DAY_HOURS) {
    if (cell >= 0 && firstCellOf(startHour + midnight) + hourOfDay !== cell) continue
    values[n++] = counts[midnight + hourOfDay] ?? 0
  }
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

/**
 * The level of a day is the median ratio of count to profile over the five days before it. A level shift is the
 * new level after three days.
 *
 * @returns the levels from the day of `from` to that of `to`
 */
function levelsOf(
  { counts, startHour }: Hours,
  profile: readonly number[],
  from: number,
  to: number,
): readonly number[] {
  const days = Math.floor((to - from) / DAY_HOURS) + 1
  const levels: number[] = []
  const ratios = scratch
  for (let day = 0; day < days; day++) {
    const known = Math.min(day, LEVEL_DAYS)
    for (let i = 0; i < known; i++) lastRatios[i] = ratios[day - 1 - i] ?? 1
    const level = known === 0 ? 1 : quantileOf(lastRatios, known, 0.5)
    levels.push(level)
    let [had, wanted] = [LEVEL_WEIGHT, LEVEL_WEIGHT]
    const midnight = from + day * DAY_HOURS
    const cell = firstCellOf(startHour + midnight)
    for (let i = midnight; i < midnight + DAY_HOURS && i < to; i++) {
      const mean = profile[cell + i - midnight] ?? 0
      had += Math.min(counts[i] ?? 0, HOUR_CAP * mean * Math.max(1, level) + 10)
      wanted += mean
    }
    ratios[day] = had / wanted
  }
  return levels
}

type Spread = Omit<Baseline, 'profile'>

interface SpreadOptions {
  readonly profile: readonly number[]
  readonly levels: readonly number[]
  readonly from: number
  readonly to: number
}

function spreadOf(hours: Hours, { profile, levels, from, to }: SpreadOptions): Spread {
  const n = to - from
  for (let midnight = 0, day = 0; midnight < n; midnight += DAY_HOURS, day++) {
    const cell = firstCellOf(hours.startHour + from + midnight)
    const level = levels[day] ?? 1
    for (let hour = 0; hour < DAY_HOURS; hour++) {
      values[midnight + hour] = hours.counts[from + midnight + hour] ?? 0
      means[midnight + hour] = level * (profile[cell + hour] ?? 0)
    }
  }
  const dispersion = dispersionOf(n)
  for (let i = 0; i < n; i++) {
    const [count, mean] = [values[i] ?? 0, means[i] ?? 0]
    values[i] = roughSurprise(count, mean, dispersion)
    means[i] = count - mean
  }
  return {
    dispersion,
    correlation: correlationOf(n),
    usualUp: usual(n, 1, values),
    usualDown: usual(n, -1, values),
    usualBurst: usual(n, 1, means),
  }
}

/** Needs no logarithm near the mean, where most hours are. */
function roughSurprise(count: number, mean: number, dispersion: number): number {
  const rough = (count - mean) / Math.sqrt(mean + (dispersion * mean) ** 2 + 0.05)
  return Math.abs(rough) < NEAR ? rough : surprise(count, mean, dispersion)
}

/**
 * The fourth greatest of the `sizes` that episodes reached; an episode is a run of hours whose surprise, in `values`,
 * stands out. One long outage is one episode, so it does not hide the next.
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

function insertDescending(most: Float64Array, value: number): void {
  let at = most.length - 1
  if (value <= (most[at] ?? 0)) return
  for (; at > 0 && (most[at - 1] ?? 0) < value; at--) most[at] = most[at - 1] ?? 0
  most[at] = value
}

/** Estimates φ by the method of moments, with the median of squares in place of their mean for robustness. */
function dispersionOf(n: number): number {
  let known = 0
  for (let i = 0; i < n; i++) {
    const mean = means[i] ?? 0
    if (mean < TELLING_MEAN) continue
    const square = ((values[i] ?? 0) - mean) ** 2
    scratch[known++] = (square / MEDIAN_OF_SQUARE - mean) / (mean * mean)
  }
  const days = n / DAY_HOURS
  // A short training says little about the spread, so the least φ falls with its length, down to 0.05.
  const least = Math.max(0.05, 0.3 / Math.sqrt(Math.max(1, days)))
  if (known < DAY_HOURS) return Math.max(UNKNOWN_DISPERSION, least)
  const median = Math.max(0, quantileOf(scratch, known, 0.5))
  return Math.min(MAX_DISPERSION, Math.max(least, 1.1 * Math.sqrt(median)))
}

/** Autocorrelation at lag 1 of the surprises in `values`, each limited to ±3. */
function correlationOf(n: number): number {
  const cut = (i: number): number => Math.min(3, Math.max(-3, values[i] ?? 0))
  let [products, squares] = [0, 1e-9]
  for (let i = 1; i < n; i++) {
    products += cut(i) * cut(i - 1)
    squares += cut(i) * cut(i)
  }
  return Math.min(0.98, Math.max(0, products / squares))
}

/** Baselines of the days from the one of `from` on, each fitted to days before it. */
export interface RollingBaseline {
  /** Index of the first hour, a midnight. */
  readonly from: number
  readonly baselines: readonly (Baseline | null)[]
  readonly levels: readonly number[]
}

const TRAINING_DAYS = 21
const MATURE_DAYS = 14

/**
 * Fits baselines to up to 21 days: anew for every Monday, and for every day in the first two weeks of a series.
 *
 * @param firstDay first whole day of the series
 */
export function fitRolling(hours: Hours, from: number, firstDay: number): RollingBaseline {
  const baselines: (Baseline | null)[] = []
  const levels: number[] = []
  let fittedUntil = -1
  let fitted: Fitted | null = null
  let trainedFrom = 0
  for (let day = Math.floor(from / DAY_HOURS); day * DAY_HOURS < hours.counts.length; day++) {
    const until = trainingEnd(hours, firstDay, day)
    if (until !== fittedUntil) {
      fittedUntil = until
      trainedFrom = Math.max(firstDay, until - TRAINING_DAYS)
      const [first, last] = [trainedFrom * DAY_HOURS, until * DAY_HOURS]
      fitted = fitBaseline(hours, first, last, hours.counts.length)
    }
    baselines.push(fitted?.baseline ?? null)
    levels.push(fitted?.levels[day - trainedFrom] ?? 1)
  }
  return { from, baselines, levels }
}

/** @returns the day after the last one of the training */
function trainingEnd({ startHour }: Hours, firstDay: number, day: number): number {
  const monday = day - weekdayOf(startHour + day * DAY_HOURS)
  return monday - firstDay >= MATURE_DAYS ? monday : day
}

let expectedPool = new Float64Array(0)

/** Expected counts from `from` on. The array is reused: the next call overwrites it. */
export function expectedCounts(
  { counts, startHour }: Hours,
  { from, baselines, levels }: RollingBaseline,
): Float64Array {
  if (expectedPool.length < counts.length) expectedPool = new Float64Array(counts.length)
  for (const [day, baseline] of baselines.entries()) {
    const [midnight, level] = [from + day * DAY_HOURS, levels[day] ?? 1]
    const cell = firstCellOf(startHour + midnight)
    const until = Math.min(midnight + DAY_HOURS, counts.length)
    for (let i = midnight; i < until; i++)
      expectedPool[i] = level * (baseline?.profile[cell + i - midnight] ?? 0)
  }
  return expectedPool
}
