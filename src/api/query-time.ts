import { toUtcMs } from '../model/time.js'
import { AppError } from '../model/errors.js'
import type { FieldError } from './validation.js'

const ISO =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?))?\s*(Z|[+-]\d{2}:?\d{2})?$/i

/**
 * Parses an ISO 8601 time. Without an offset it is UTC; a date alone means its midnight.
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
  // A plus sign that was not percent-encoded arrives as a blank.
  const match = ISO.exec(
    text.trim().replace(/^(\S{10}[T ]\d{2}:\d{2}\S{0,16}) (\d{2}:?\d{2})$/, '$1+$2'),
  )
  const time = match?.[2]?.replace(',', '.') ?? '00:00'
  const zone = (match?.[3] ?? 'Z').toUpperCase().replace(/^([+-]\d{2})(\d{2})$/, '$1:$2')
  const ms = match === null ? Number.NaN : Date.parse(`${match[1]}T${time}${zone}`)
  if (Number.isFinite(ms) && isOfCalendar(match?.[1] ?? '', time)) return ms
  throw new AppError('validation_error', `${path} is not an ISO 8601 time`, {
    details: {
      errors: [{ in: place, path, message: 'must be an ISO 8601 time' }] satisfies FieldError[],
    },
  })
}

/** `Date.parse` accepts 30 February as a day of March, and 24:00 as the next day. */
function isOfCalendar(date: string, time: string): boolean {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number)
  return toUtcMs(year, month, day, 0) !== null && !time.startsWith('24')
}
