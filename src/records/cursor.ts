import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { AppError } from '../model/errors.js'

/** Cursors of one list cannot be used on another, nor with other filters. */
export interface CursorFilters {
  /** The name of the list. */
  readonly list: string
  readonly [name: string]: unknown
}

const MAC_BYTES = 16
const MAX_CURSOR_CHARACTERS = 2_048

/** Derives the key that signs cursors from the secret of the tokens. */
export const cursorKey = (secret: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', 'keyset cursor', 32))

/**
 * Encodes the position of the last row of a page, signed together with the filters.
 *
 * @param filters JSON values; the order of their names does not matter
 * @param position a JSON value, which the client can read but not change
 * @returns URL-safe text
 */
export function encodeCursor(key: Buffer, filters: CursorFilters, position: unknown): string {
  const body = Buffer.from(JSON.stringify(position))
  return Buffer.concat([sign(key, filters, body), body]).toString('base64url')
}

/**
 * @param isPosition checks the type of the position
 * @throws AppError invalid_cursor when the cursor was changed, or made with other filters or another key
 */
export function decodeCursor<T>(
  key: Buffer,
  filters: CursorFilters,
  text: string,
  isPosition: (value: unknown) => value is T,
): T {
  const bytes = Buffer.from(text.slice(0, MAX_CURSOR_CHARACTERS + 1), 'base64url')
  const body = bytes.subarray(MAC_BYTES)
  // Only the canonical text of a cursor is accepted, because the decoder would ignore invalid characters.
  if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== text) throw invalidCursor()
  if (text.length > MAX_CURSOR_CHARACTERS) throw invalidCursor()
  if (!timingSafeEqual(bytes.subarray(0, MAC_BYTES), sign(key, filters, body))) {
    throw invalidCursor()
  }
  const position: unknown = JSON.parse(body.toString())
  if (isPosition(position)) return position
  throw invalidCursor()
}

const sign = (key: Buffer, filters: CursorFilters, body: Buffer): Buffer =>
  createHmac('sha256', key)
    .update(JSON.stringify(canonical(filters)))
    .update('\n')
    .update(body)
    .digest()
    .subarray(0, MAC_BYTES)

/** Sorts the names of objects and leaves out undefined values. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  const entries = Object.entries(value).filter(([, each]) => each !== undefined)
  return entries
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, each]) => [name, canonical(each)])
}

const invalidCursor = (): AppError =>
  new AppError('invalid_cursor', 'the cursor is not one of this list with these filters')
