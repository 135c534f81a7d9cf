import { surprise } from './negative-binomial.js'
import { quantileOf } from './quantile.js'
import { DAY_HOURS, weekdayOf } from './series.js'

/** What a series does when nothing is wrong. */
export interface Baseline {
  /** expected count at level 1: working days' 24 hours, then those of Saturday and Sunday */
  readonly profile: readonly number[]
  /** φ of one hour: spread beyond Poisson's as a share of the mean */
  readonly dispersion: number
  /** 0..1: how much of an hour's deviation the next one shares */
  readonly correlation: number
  /** what the surprise of single hours reaches time and again; at least 0 */
  readonly usualUp: number
  readonly usualDown: number
  /** occurrences that ordinary bursts add, time and again; 0 without bursts */
  readonly usualBurst: number
}

/** What was learned up to a day, with the level of each day from the first one of the training on. */
export interface Fitted {
  readonly baseline: Baseline
  readonly levels: readonly number[]
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
/** the mean of a cell is drawn to that of the whole as if by an hour more, but by no more occurrences than this */
const SHRINK_MOST = 1
/** a day's level is drawn to 1 as if by so many occurrences more */
const LEVEL_WEIGHT = 4
const LEVEL_DAYS = 5
/** what one hour may add to its day's level, in multiples of what is expected of it */
const HOUR_CAP = 4
/** median of the square of a standard normal deviate */
const MEDIAN_OF_SQUARE = 0.455
const USUAL_TIMES = 4
/** surprise from which on an hour stands out; less is never compared with */
const OUTSTANDING = 2.5
const INSERTION_MOST = 64
const NEAR = 1.5
const EPISODE_HOURS = 4
/** expected counts from which on an hour tells of the spread */
const TELLING_MEAN = 1
const UNKNOWN_DISPERSION = 0.35
const MAX_DISPERSION = 4

const values = new Float64Array(DAY_HOURS * MAX_DAYS)
const means = new Float64Array(DAY_HOURS * MAX_DAYS)
const scratch = new Float64Array(DAY_HOURS * MAX_DAYS)
/** a profile to be: numbers that are no integers, so that the copy holds them side by side */
const flat = new Float64Array(2 * DAY_HOURS).fill(0.5)
const greatest = new Float64Array(USUAL_TIMES)
const lastRatios = new Float64Array(LEVEL_DAYS)

/** Index into `profile` of an hour since 1970. */
export const cellOf = (hour: number): number =>
  firstCellOf(hour) + hour - DAY_HOURS * Math.floor(hour / DAY_HOURS)

/** That of the midnight of its day; the day's other hours follow. */
export const firstCellOf = (hour: number): number => (weekdayOf(hour) >= 5 ? DAY_HOURS : 0)

/**
 * Learns a profile from whole days, robustly: single bursts and outages hardly move it.
 *
 * @param from first index, a midnight
 * @param to the one after the last; at most 60 days later
 * @param until levels are told up to the day that holds it
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

/** Copies the counts of a cell into `values`. @param cell of any day when negative: -1 is midnight */
function gather({ counts, startHour }: Hours, from: number, to: number, cell: number): number {
  const hourOfDay = cell < 0 ? -cell - 1 : cell % DAY_HOURS
  let n = 0
  for (let midnight = from; midnight < to; midnight += DAY_HOURS) {
    if (cell >= 0 && firstCellOf(startHour + midnight) + hourOfDay !== cell) continue
    values[n++] = counts[midnight + hourOfDay] ?? 0
  }
  return n
}

/** Mean of `values`, those far above the median counted as just above it; may reorder them. */
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

/** Cells have a dozen values: insertion beats everything else. */
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

/** -1 of none */
const middleIndex = (n: number): number => (n === 0 ? -1 : Math.round((n - 1) / 2))

/** Median of the distances from the median, of sorted `values`: counted off from it to both sides. */
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
 * The level of each day: the median over the days before it of what they had in relation to the profile. A
 * day's own hours have no part in it, and a lasting change is the new level after three days.
 *
 * @returns one level for each day from the midnight `from` on, up to the day that holds `to`
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

/** Exact where it is of interest; near the mean, where most hours are, without logarithms. */
function roughSurprise(count: number, mean: number, dispersion: number): number {
  const rough = (count - mean) / Math.sqrt(mean + (dispersion * mean) ** 2 + 0.05)
  return Math.abs(rough) < NEAR ? rough : surprise(count, mean, dispersion)
}

/**
 * What happened four times in the training is usual: the fourth greatest `size` of the hours that stand out by their
 * surprise in `values`. Those with few hours between them count once, so that one long outage does not hide the next.
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
