import { DAY_HOURS, isWeekend, WEEK_HOURS, type Hours } from './frame.js'

/*
 * Estimates the clock of a series. Its days are UTC days, but weekends begin by local time: in
 * Tokyo nine hours before UTC, in San Francisco eight hours later.
 */

/** Two weeks, because with fewer days a single outage would move the weekend. */
const LEAST_DAYS = 14
const MOST_HOURS = 12
/** A clock other than UTC is used only if it leaves at most this share of the variance. */
const BETTER = 0.7
const DAYS = 7
const MOST_WEEKS = 9

/** The hours by which clocks may be shifted, and the number of days that show it. */
const SHIFTS = [1, -1, 2, -2] as const
const SHIFT_DAYS = 4
/** A shifted clock must leave at most this share of a day's squares, and these must be at least this multiple of the usual. */
const SHIFT_BETTER = 0.5
const UNUSUAL = 3
const USUAL = 1.5
/** The most that the square of an hour counts. */
const MOST_SQUARE = 25

const week = new Float64Array(WEEK_HOURS)
const weeks = new Float64Array(MOST_WEEKS)

const tables = Array.from({ length: 2 * MOST_HOURS + 1 }, (_, i) =>
  Uint8Array.from({ length: WEEK_HOURS }, (_each, hour) => {
    const isFree = isWeekend(WEEK_HOURS + hour + i - MOST_HOURS)
    return (hour % DAY_HOURS) + (isFree ? DAY_HOURS : 0)
  }),
)

/**
 * Indexes of a profile that has the 24 hours of a working day before those of a day of the weekend, by hours since 1970
 * modulo a week.
 */
export function cellsOf(ahead: number): Uint8Array {
  const table = tables[ahead + MOST_HOURS]
  if (table === undefined) throw new RangeError(`a clock ${ahead} hours ahead`)
  return table
}

/**
 * Estimates how many hours the weekends of a series begin before those in UTC: the clock by which
 * working days differ least from each other, and weekend days from each other.
 *
 * @param from index of the first hour, a midnight
 * @param to the one after the last
 * @returns -12..12, 0 when no other clock is clearly better
 */
export function clockOf({ counts, startHour }: Hours, from: number, to: number): number {
  if (to - from < LEAST_DAYS * DAY_HOURS) return 0
  for (let slot = 0; slot < WEEK_HOURS; slot++) {
    let n = 0
    const first = from + ((((slot - startHour - from) % WEEK_HOURS) + WEEK_HOURS) % WEEK_HOURS)
    for (let i = first; i < to && n < MOST_WEEKS; i += WEEK_HOURS) weeks[n++] = counts[i] ?? 0
    // The square root makes the variance of counts nearly the same for all means.
    week[slot] = Math.sqrt(weeks.subarray(0, n).sort()[(n - 1) >> 1] ?? 0)
  }
  const inUtc = varianceUnder(0)
  let [best, least] = [0, BETTER * inUtc]
  for (let ahead = -MOST_HOURS; ahead <= MOST_HOURS; ahead++) {
    const variance = varianceUnder(ahead)
    if (variance < least) [best, least] = [ahead, variance]
  }
  return best
}

/** The sum of squares of the week's hours around the means of their cells. */
function varianceUnder(ahead: number): number {
  const cells = cellsOf(ahead)
  let all = 0
  for (let hour = 0; hour < DAY_HOURS; hour++) {
    let [working, free, squares, n] = [0, 0, 0, 0]
    for (let day = 0; day < DAYS; day++) {
      const value = week[day * DAY_HOURS + hour] ?? 0
      squares += value * value
      if ((cells[day * DAY_HOURS + hour] ?? 0) < DAY_HOURS) {
        working += value
        n++
      } else free += value
    }
    all += squares - (working * working) / n - (free * free) / (DAYS - n)
  }
  return all
}

interface Profile {
  readonly profile: readonly number[]
  readonly ahead: number
  readonly clumping: number
  readonly dispersion: number
}

interface Day {
  readonly baseline: Profile
  readonly levels: readonly number[]
  /** Index of the first hour of the training. */
  readonly trainedFrom: number
  /** Index of the day's first hour. */
  readonly midnight: number
}

/**
 * Estimates by how many hours the clock of a series is ahead of that of its training, from the last
 * day that fits only one of the two.
 */
export function shiftOf(hours: Hours, { baseline, levels, trainedFrom, midnight }: Day): number {
  for (let day = 1; day <= SHIFT_DAYS; day++) {
    const from = midnight - day * DAY_HOURS
    if (from < trainedFrom) return 0
    const level = levels[(from - trainedFrom) / DAY_HOURS] ?? 1
    const squaresUnder = (shift: number): number =>
      squaresOf(hours, { baseline, level, from, shift })
    const unshifted = squaresUnder(0)
    const shifted = SHIFTS.map(squaresUnder)
    const least = Math.min(...shifted)
    if (unshifted >= UNUSUAL * DAY_HOURS) {
      if (least < SHIFT_BETTER * unshifted) return SHIFTS[shifted.indexOf(least)] ?? 0
    } else if (unshifted < USUAL * DAY_HOURS && unshifted < SHIFT_BETTER * least) return 0
  }
  return 0
}

interface Shifted {
  readonly baseline: Profile
  readonly level: number
  readonly from: number
  readonly shift: number
}

/** The squares of the deviations of a day's hours, in variances. */
function squaresOf(
  { counts, startHour }: Hours,
  { baseline, level, from, shift }: Shifted,
): number {
  const { profile, ahead, clumping, dispersion } = baseline
  const cells = cellsOf(ahead)
  let squares = 0
  for (let i = from; i < from + DAY_HOURS; i++) {
    const mean = level * (profile[cells[(startHour + i + shift) % WEEK_HOURS] ?? 0] ?? 0)
    const variance = clumping * mean + (dispersion * mean) ** 2 + 1
    squares += Math.min(MOST_SQUARE, ((counts[i] ?? 0) - mean) ** 2 / variance)
  }
  return squares
}
