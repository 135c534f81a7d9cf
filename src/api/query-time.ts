import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, toUtcMs } from '../model/time.js'
import { AppError } from '../model/errors.js'
import type { FieldError } from './validation.js'

const ISO =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?))?\s*(Z|[+-]\d{2}:?\d{2})?$/i

/** `now`, or a time before or after it; a plus sign that was not percent-encoded arrives as a blank. */
const RELATIVE = /^now(?:([+ -])(\d{1,9})(s|m|h|d|w))?$/i
const UNIT_MS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
}

/** @returns ms since 1970; null for a text of another form, or a time beyond the range of dates */
function relativeTime(text: string): number | null {
  const match = RELATIVE.exec(text.trim())
  if (match === null) return null
  const [, sign, count = '0', unit = 's'] = match
  const ms = Number(count) * (UNIT_MS[unit.toLowerCase()] ?? 0)
  const at = Date.now() + (sign === '-' ? -ms : ms)
  return Math.abs(at) <= 8.64e15 ? at : null
}

/**
 * Parses an ISO 8601 time, or one relative to now (`now-1h`). Without an offset it is UTC; a date alone means its midnight.
 *
 * @param path the parameter or body field that the error names
 * @returns ms since 1970
 * @throws AppError validation_error
 */
export function parseQueryTime(
  text: string,
  path: string,
  place: FieldError['in'] = 'query',
): number {
  const ms = relativeTime(text) ?? isoTime(text)
  if (ms !== null) return ms
  const message = 'must be an ISO 8601 time, or relative such as now-1h'
  throw new AppError('validation_error', `${path} is not a time`, {
    details: { errors: [{ in: place, path, message }] satisfies FieldError[] },
  })
}

/** @returns ms since 1970; null for a text of another form, or a date that does not exist */
function isoTime(text: string): number | null {
  // A plus sign that was not percent-encoded arrives as a blank.
  const match = ISO.exec(
    text.trim().replace(/^(\S{10}[T ]\d{2}:\d{2}\S{0,16}) (\d{2}:?\d{2})$/, '$1+$2'),
  )
  if (match === null) return null
  const [, date = '', clock = '00:00', offset = 'Z'] = match
  const time = clock.replace(',', '.')
  const zone = offset.toUpperCase().replace(/^([+-]\d{2})(\d{2})$/, '$1:$2')
  const ms = Date.parse(`${date}T${time}${zone}`)
  return Number.isFinite(ms) && isOfCalendar(date, time) ? ms : null
}

/** `Date.parse` accepts 30 February as a day of March, and 24:00 as the next day. */
function isOfCalendar(date: string, time: string): boolean {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number)
  return toUtcMs(year, month, day, 0) !== null && !time.startsWith('24')
}
