export const DAY_HOURS = 24
export const WEEK_HOURS = 168

/** Counts by hour. */
export interface Hours {
  readonly counts: Float64Array
  /** Hours since 1970 of index 0, a midnight in UTC. */
  readonly startHour: number
}

/** The hours that a run analyses. */
export interface Frame {
  /** Hours since 1970, a midnight in UTC. */
  readonly startHour: number
  /** The number of whole hours. Counts may have one more: the current hour so far. */
  readonly hours: number
}

/** The longest duration of an anomaly in whole days. A longer change is the new normal. */
export const LASTING_DAYS = 5
/** Days before the first reported one in which an anomaly may begin that reaches it. Any earlier anomaly has ended by then. */
export const LEAD_DAYS = LASTING_DAYS + 1
const REPORTED_DAYS = 5
/** Three weeks of training, up to six days from its end to a judged day, and a day for the longest span. */
export const LOOKBACK_DAYS = 28

/** @param endHour hours since 1970, the one after the last whole hour */
export function frameEndingAt(endHour: number): Frame {
  const today = Math.floor(endHour / DAY_HOURS)
  const startHour = (today - REPORTED_DAYS - LEAD_DAYS - LOOKBACK_DAYS) * DAY_HOURS
  return { startHour, hours: endHour - startHour }
}

/** Index of the first hour whose anomalies a run reports. */
export const reportedFrom = (frame: Frame): number =>
  Math.max(0, (Math.floor(frame.hours / DAY_HOURS) - REPORTED_DAYS) * DAY_HOURS)

/** Monday is 0. The formula follows from 1 January 1970, a Thursday. */
export const weekdayOf = (hour: number): number => (Math.floor(hour / DAY_HOURS) + 3) % 7

export const isWeekend = (hour: number): boolean => weekdayOf(hour) >= 5
