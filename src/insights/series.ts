import type { Severity } from '../model/event.js'

export const DAY_HOURS = 24
export const WEEK_HOURS = 168

/** Whose occurrences a series counts. */
export type Scope = 'all' | 'source' | 'severity' | 'template'

export interface SeriesKey {
  readonly scope: Scope
  /** '' for all */
  readonly source: string
  /** of a severity its own; of a template the one most of its occurrences have */
  readonly severity: Severity | null
  /** 16 hex digits */
  readonly templateId: string | null
}

/** The hours all series of a snapshot cover. */
export interface Frame {
  /** hours since 1970, a midnight in UTC */
  readonly startHour: number
  /** whole hours; the count at this index, when there is one, is of the running hour */
  readonly hours: number
}

/** Days before the first one that is looked at: the longest training and up to a week of its age. */
const TRAINING_DAYS = 28
/** Days whose hours are looked at, besides the running one. */
const WATCHED_DAYS = 5

/** @param endHour the running hour, since 1970 */
export function frameEndingAt(endHour: number): Frame {
  const today = Math.floor(endHour / DAY_HOURS)
  const startHour = (today - WATCHED_DAYS - TRAINING_DAYS) * DAY_HOURS
  return { startHour, hours: endHour - startHour }
}

/** First index whose anomalies a snapshot tells of. */
export const watchedFrom = (frame: Frame): number =>
  Math.max(0, (Math.floor(frame.hours / DAY_HOURS) - WATCHED_DAYS) * DAY_HOURS)

/** 0 is Monday; 1970 began on a Thursday. */
export const weekdayOf = (hour: number): number => (Math.floor(hour / DAY_HOURS) + 3) % 7
