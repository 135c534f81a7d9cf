export const SECOND_MS = 1_000
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000
export const HOUR_S = 3_600
export const DAY_S = 86_400

const DAYS_BEFORE = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334] as const
const DAYS_IN = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

/**
 * Converts a calendar date without a Date object.
 *
 * @param year 1..9999
 * @param month 1..12
 * @param timeMs ms since midnight; time zone offsets may make it negative or longer than a day
 * @returns null for an invalid date, NaN included
 */
export function toUtcMs(year: number, month: number, day: number, timeMs: number): number | null {
  const before = DAYS_BEFORE[month - 1]
  const inMonth = DAYS_IN[month - 1]
  if (before === undefined || inMonth === undefined) return null
  const leap = isLeap(year)
  const last = month === 2 && leap ? 29 : inMonth
  if (!(year >= 1) || !(year <= 9999) || !(day >= 1) || !(day <= last)) return null
  const past = year - 1
  const leapDays = Math.floor(past / 4) - Math.floor(past / 100) + Math.floor(past / 400)
  const dayOfYear = before + day - 1 + (leap && month > 2 ? 1 : 0)
  // 719162 days lie between the first day of year 1 and 1970.
  return (past * 365 + leapDays + dayOfYear - 719_162) * DAY_MS + timeMs
}

/** Whether a text is the name of a time zone of the IANA, such as `Europe/Vienna`. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
