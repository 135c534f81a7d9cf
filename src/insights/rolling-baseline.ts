import { fitBaseline, type Baseline, type Fitted } from './baseline.js'
import { DAY_HOURS, isWeekend, WEEK_HOURS, weekdayOf, type Hours } from './frame.js'
import { cellsOf, shiftOf } from './week-clock.js'

/** Baselines of the days from the one of `from` on, each fitted to days before it. */
export interface RollingBaseline {
  /** Index of the first hour, a midnight. */
  readonly from: number
  readonly baselines: readonly (Baseline | null)[]
  readonly levels: readonly number[]
  /** Hours by which the clock of a day is ahead of that of its baseline. */
  readonly shifts: readonly number[]
}

const TRAINING_DAYS = 21
const MATURE_DAYS = 14

export interface RollingOptions {
  /** Counts that show when the data of a series begin, with zeros before. */
  readonly presence: Float64Array
  /** The clock of the whole that the series is part of, by default its own. */
  readonly shifts?: readonly number[]
}

/**
 * Fits baselines to up to 21 days: one for every Monday, and one for every day in the first two
 * weeks of a series. The baseline of a day depends only on the 27 days before it.
 */
export function fitRolling(
  hours: Hours,
  from: number,
  { presence, shifts: given }: RollingOptions,
): RollingBaseline {
  const baselines: (Baseline | null)[] = []
  const levels: number[] = []
  const own: number[] = []
  let fittedUntil = -1
  let fitted: Training | null = null
  for (let midnight = from; midnight < hours.counts.length; midnight += DAY_HOURS) {
    const until = trainingEnd(hours, presence, midnight / DAY_HOURS)
    if (until !== fittedUntil) fitted = fitUntil(hours, presence, until)
    fittedUntil = until
    baselines.push(knowsDay(fitted, hours.startHour + midnight) ? fitted.baseline : null)
    levels.push(fitted?.levels[(midnight - fitted.trainedFrom) / DAY_HOURS] ?? 1)
    if (given === undefined) own.push(fitted === null ? 0 : shiftOf(hours, { ...fitted, midnight }))
  }
  return { from, baselines, levels, shifts: given ?? own }
}

const knowsDay = (fitted: Training | null, hour: number): fitted is Training =>
  fitted !== null && fitted.baseline.days[isWeekend(hour) ? 1 : 0] > 0

interface Training extends Fitted {
  /** Index of its first hour. */
  readonly trainedFrom: number
}

/** @param until the day after the last one of the training */
function fitUntil(hours: Hours, presence: Float64Array, until: number): Training | null {
  const [trainedFrom, to] = [firstDayBefore(presence, until) * DAY_HOURS, until * DAY_HOURS]
  if (trainedFrom >= to) return null
  return { ...fitBaseline(hours, trainedFrom, to, hours.counts.length), trainedFrom }
}

/** The first whole day of the three weeks before a day; that day when there is none. */
function firstDayBefore(presence: Float64Array, day: number): number {
  const from = Math.max(0, day - TRAINING_DAYS) * DAY_HOURS
  for (let i = from; i < day * DAY_HOURS; i++)
    if (presence[i] !== 0) return Math.ceil(i / DAY_HOURS)
  return day
}

/** @returns the day after the last one of the training */
function trainingEnd({ startHour }: Hours, presence: Float64Array, day: number): number {
  const monday = day - weekdayOf(startHour + day * DAY_HOURS)
  if (monday < MATURE_DAYS) return day
  return monday - firstDayBefore(presence, monday) >= MATURE_DAYS ? monday : day
}

let expectedPool = new Float64Array(0)

/** Expected counts from `from` on. The array is reused: the next call overwrites it. */
export function expectedCounts(
  { counts, startHour }: Hours,
  { from, baselines, levels, shifts }: RollingBaseline,
): Float64Array {
  if (expectedPool.length < counts.length) expectedPool = new Float64Array(counts.length)
  for (const [day, baseline] of baselines.entries()) {
    const [midnight, level] = [from + day * DAY_HOURS, levels[day] ?? 1]
    const cells = cellsOf(baseline?.ahead ?? 0)
    const first = startHour + (shifts[day] ?? 0)
    const until = Math.min(midnight + DAY_HOURS, counts.length)
    for (let i = midnight; i < until; i++)
      expectedPool[i] = level * (baseline?.profile[cells[(first + i) % WEEK_HOURS] ?? 0] ?? 0)
  }
  return expectedPool
}
