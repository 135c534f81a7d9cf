import { AppError } from '../model/errors.js'

const ISO =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?))?\s*(Z|[+-]\d{2}:?\d{2})?$/i

/**
 * Reads a moment of a query string: ISO 8601 with any offset, UTC without one, a date alone is its midnight.
 *
 * @param path names the parameter in the error
 * @returns ms since 1970
 * @throws AppError validation_error
 */
export function parseQueryTime(text: string, path: string): number {
  // a plus sign that was not percent-encoded arrives as a blank
  const match = ISO.exec(
    text.trim().replace(/^(\S{10}[T ]\d{2}:\d{2}\S{0,16}) (\d{2}:?\d{2})$/, '$1+$2'),
  )
  const time = match?.[2]?.replace(',', '.') ?? '00:00'
  const zone = (match?.[3] ?? 'Z').toUpperCase().replace(/^([+-]\d{2})(\d{2})$/, '$1:$2')
  const ms = match === null ? Number.NaN : Date.parse(`${match[1]}T${time}${zone}`)
  if (Number.isFinite(ms)) return ms
  throw new AppError('validation_error', `${path} is not an ISO 8601 time`, {
    details: { errors: [{ path, message: 'must be an ISO 8601 time' }] },
  })
}
