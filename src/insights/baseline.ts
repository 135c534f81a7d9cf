import { surprise } from './negative-binomial.js'
import { quantileOf } from './quantile.js'
import { DAY_HOURS, weekdayOf } from './series.js'

/** What a series does when nothing is wrong. */
export interface Baseline {
  /** expected count at level 1: working days' 24 hours, then those of Saturday and Sunday */
  readonly profile: Float64Array
  /** φ of one hour: spread beyond Poisson's as a share of the mean */
  readonly dispersion: number
  /** 0..1: how much of an hour's deviation the next one shares */
  readonly correlation: number
  /** what the surprise of single hours reaches time and again; at least 0 */
  readonly usualUp: number
  readonly usualDown: number
}

/** Counts by hour; index 0 is `startHour`, a midnight. */
export interface Hours {
  readonly counts: Float64Array
  readonly startHour: number
}

/** days of the training from which on working days and weekends are told apart */
const WEEKLY_FROM_DAYS = 14
const DAILY_FROM_DAYS = 3
const MAX_DAYS = 60
/** the mean of a cell is drawn to that of the whole as if by so many hours more */
const SHRINK_HOURS = 1
/** a day's level is drawn to 1 as if by so many occurrences more */
const LEVEL_WEIGHT = 4
const LEVEL_DAYS = 5
/** what one hour may add to its day's level, in multiples of what is expected of it */
const HOUR_CAP = 4
/** median of the square of a standard normal deviate */
const MEDIAN_OF_SQUARE = 0.455
const USUAL_TIMES = 4
const NEAR = 1.5
const EPISODE_HOURS = 4
/** expected counts from which on an hour tells of the spread */
const TELLING_MEAN = 1
const UNKNOWN_DISPERSION = 0.35
const MAX_DISPERSION = 4

const values = new Float64Array(DAY_HOURS * MAX_DAYS)
const means = new Float64Array(DAY_HOURS * MAX_DAYS)
const scratch = new Float64Array(DAY_HOURS * MAX_DAYS)

/** Index into `profile` of an hour since 1970. */
export const cellOf = (hour: number): number =>
  (weekdayOf(hour) >= 5 ? DAY_HOURS : 0) + (hour % DAY_HOURS)

/**
 * Learns a profile from whole days, robustly: single bursts and outages hardly move it.
 *
 * @param from first index, a midnight
 * @param to the one after the last; at most 60 days later
 */
export function fitBaseline(hours: Hours, from: number, to: number): Baseline {
  const days = Math.floor((to - from) / DAY_HOURS)
  const profile = new Float64Array(2 * DAY_HOURS)
  for (let i = from; i < to; i++) values[i - from] = hours.counts[i] ?? 0
  const overall = cappedMean(to - from, null)
  const isDaily = days >= DAILY_FROM_DAYS
  const isWeekly = days >= WEEKLY_FROM_DAYS
  for (let cell = 0; cell < profile.length; cell++) {
    if (!isDaily) profile[cell] = overall
    else if (!isWeekly && cell >= DAY_HOURS) profile[cell] = profile[cell - DAY_HOURS] ?? 0
    else profile[cell] = cappedMean(gather(hours, from, to, isWeekly ? cell : -cell - 1), overall)
  }
  return { profile, ...spreadOf(hours, profile, from, to) }
}

/** Copies the counts of a cell into `values`. @param cell of any day when negative: -1 is midnight */
function gather({ counts, startHour }: Hours, from: number, to: number, cell: number): number {
  const hourOfDay = cell < 0 ? -cell - 1 : cell % DAY_HOURS
  let n = 0
  for (let i = from + hourOfDay; i < to; i += DAY_HOURS) {
    if (cell >= 0 && cellOf(startHour + i) !== cell) continue
    values[n++] = counts[i] ?? 0
  }
  return n
}

/** Mean of `values`, those far above the median counted as just above it. */
function cappedMean(n: number, prior: number | null): number {
  for (let i = 0; i < n; i++) scratch[i] = values[i] ?? 0
  const median = quantileOf(scratch, n, 0.5)
  for (let i = 0; i < n; i++) scratch[i] = Math.abs((values[i] ?? 0) - median)
  const spread = 1.4826 * quantileOf(scratch, n, 0.5) + Math.sqrt(median) + 1
  const [floor, cap] = [median - 3 * spread, median + 3 * spread]
  let sum = prior === null ? 0 : prior * SHRINK_HOURS
  for (let i = 0; i < n; i++) sum += Math.min(cap, Math.max(floor, values[i] ?? 0))
  return sum / Math.max(1, n + (prior === null ? 0 : SHRINK_HOURS))
}

/**
 * The level of each day: the median over the days before it of what they had in relation to the profile. A
 * day's own hours have no part in it, and a lasting change is the new level after three days.
 *
 * @returns one level for each day from the midnight `from` on, up to the day that holds `to`
 */
export function levelsOf(
  { counts, startHour }: Hours,
  profile: Float64Array,
  from: number,
  to: number,
): Float64Array {
  const days = Math.floor((to - from) / DAY_HOURS) + 1
  const levels = new Float64Array(days).fill(1)
  const ratios = new Float64Array(days)
  const last = new Float64Array(LEVEL_DAYS)
  for (let day = 0; day < days; day++) {
    const known = Math.min(day, LEVEL_DAYS)
    for (let i = 0; i < known; i++) last[i] = ratios[day - 1 - i] ?? 1
    const level = known === 0 ? 1 : quantileOf(last, known, 0.5)
    levels[day] = level
    let [had, wanted] = [LEVEL_WEIGHT, LEVEL_WEIGHT]
    for (let i = from + day * DAY_HOURS; i < from + (day + 1) * DAY_HOURS && i < to; i++) {
      const mean = profile[cellOf(startHour + i)] ?? 0
      had += Math.min(counts[i] ?? 0, HOUR_CAP * mean * Math.max(1, level) + 10)
      wanted += mean
    }
    ratios[day] = had / wanted
  }
  return levels
}

type Spread = Omit<Baseline, 'profile'>

function spreadOf(hours: Hours, profile: Float64Array, from: number, to: number): Spread {
  const levels = levelsOf(hours, profile, from, to)
  const n = to - from
  for (let i = 0; i < n; i++) {
    values[i] = hours.counts[from + i] ?? 0
    const level = levels[Math.floor(i / DAY_HOURS)] ?? 1
    means[i] = level * (profile[cellOf(hours.startHour + from + i)] ?? 0)
  }
  const dispersion = dispersionOf(n)
  for (let i = 0; i < n; i++) values[i] = roughSurprise(values[i] ?? 0, means[i] ?? 0, dispersion)
  const correlation = correlationOf(n)
  return { dispersion, correlation, usualUp: usual(n, 1), usualDown: usual(n, -1) }
}

/** Exact where it is of interest; near the mean, where most hours are, without logarithms. */
function roughSurprise(count: number, mean: number, dispersion: number): number {
  const rough = (count - mean) / Math.sqrt(mean + (dispersion * mean) ** 2 + 0.05)
  return Math.abs(rough) < NEAR ? rough : surprise(count, mean, dispersion)
}

/**
 * What happened four times in the training is usual: the fourth most extreme of the surprises in `values`, of
 * which those within a few hours count once, so that one long outage does not hide the next one.
 */
function usual(n: number, sign: 1 | -1): number {
  const most = new Float64Array(USUAL_TIMES)
  let [peak, peakAt] = [0, -EPISODE_HOURS]
  for (let i = 0; i <= n; i++) {
    const value = i === n ? 0 : sign * (values[i] ?? 0)
    if (i < n && i - peakAt < EPISODE_HOURS) {
      if (value > peak) [peak, peakAt] = [value, i]
      continue
    }
    insertDescending(most, peak)
    ;[peak, peakAt] = [value, i]
  }
  return Math.max(0, most.at(-1) ?? 0)
}

function insertDescending(most: Float64Array, value: number): void {
  let at = most.length - 1
  if (value <= (most[at] ?? 0)) return
  for (; at > 0 && (most[at - 1] ?? 0) < value; at--) most[at] = most[at - 1] ?? 0
  most[at] = value
}

/** φ from the median of the squared deviations, so that anomalies in the training have no part in it. */
function dispersionOf(n: number): number {
  let telling = 0
  for (let i = 0; i < n; i++) {
    const mean = means[i] ?? 0
    if (mean < TELLING_MEAN) continue
    const square = ((values[i] ?? 0) - mean) ** 2
    scratch[telling++] = (square / MEDIAN_OF_SQUARE - mean) / (mean * mean)
  }
  const days = n / DAY_HOURS
  // few hours say little about the spread; in time the least falls to 5 %
  const least = Math.max(0.05, 0.3 / Math.sqrt(Math.max(1, days)))
  if (telling < DAY_HOURS) return Math.max(UNKNOWN_DISPERSION, least)
  const median = Math.max(0, quantileOf(scratch, telling, 0.5))
  return Math.min(MAX_DISPERSION, Math.max(least, 1.1 * Math.sqrt(median)))
}

/** Of neighbouring surprises in `values`, extreme ones cut. */
function correlationOf(n: number): number {
  const cut = (i: number): number => Math.min(3, Math.max(-3, values[i] ?? 0))
  let [products, squares] = [0, 1e-9]
  for (let i = 1; i < n; i++) {
    products += cut(i) * cut(i - 1)
    squares += cut(i) * cut(i)
  }
  return Math.min(0.98, Math.max(0, products / squares))
}
