import { AppError } from '../../model/errors.js'

const QUOTE = 0x22
const COMMA = 0x2c
const BRACKET = 0x5b
const BACKSLASH = 0x5c
const BRACE = 0x7b
/** In ASCII, a closing bracket or brace is two above the opening one. */
const CLOSING = 2

/**
 * Limit of the values in one record. JSON.parse takes 100 times the memory of a text of many small values, so they are
 * counted first: 16 MiB of `[{},{},…]` would be 5.6 million objects.
 */
const RECORD_VALUES = 50_000

/** The problem of a record that is not parsed. */
export const TOO_MANY_VALUES = {
  reason: 'invalid_event',
  message: `the record has more than ${RECORD_VALUES} values`,
  source: '',
} as const

/** Whether the JSON text between two offsets has more values than a record may have. */
export const hasTooManyValues = (bytes: Uint8Array, from: number, to: number): boolean =>
  // A value takes two bytes.
  (to - from) / 2 > RECORD_VALUES && measure(bytes, from, to).values > RECORD_VALUES

/** Whether a JSON text, such as a member that holds JSON, has more values than a record may have. */
export function textHasTooManyValues(text: string): boolean {
  if (text.length / 2 <= RECORD_VALUES) return false
  const bytes = Buffer.from(text)
  return hasTooManyValues(bytes, 0, bytes.length)
}

/** Limit of the values in one request or file of JSON: JSON.parse takes up to 100 times the memory of a text of many small values. */
const REQUEST_VALUES = 2_000_000

/**
 * Checks a request before it is parsed, whatever it is.
 *
 * @throws AppError `body_too_large` for too many values, or too many members of one object
 */
export function checkRequest(bytes: Uint8Array): void {
  const excess = excessOf(bytes)
  if (excess !== null) throw new AppError('body_too_large', `the body has more than ${excess}`)
}

/** Checks whether a JSON text may be parsed. @returns the limit that it exceeds; null for none */
export function excessOf(bytes: Uint8Array): string | null {
  let values = 0
  /** The members of the innermost open object and of those around it. Outside of objects the count stays below any limit. */
  let members = -REQUEST_VALUES
  const around: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    switch (byte) {
      case QUOTE:
        at = endOfText(bytes, at, bytes.length)
        break
      case BRACE:
      case BRACKET:
        values++
        around.push(members)
        members = byte === BRACE ? 1 : -REQUEST_VALUES
        break
      case BRACE + CLOSING:
      case BRACKET + CLOSING:
        members = around.pop() ?? -REQUEST_VALUES
        break
      case COMMA:
        values++
        members++
    }
    const excess = excessIn(values, members)
    if (excess !== null) return excess
  }
  return null
}

function excessIn(values: number, members: number): string | null {
  if (values > REQUEST_VALUES) return `${REQUEST_VALUES} JSON values`
  // JSON.parse takes seconds for an object with 600,000 names.
  return members > RECORD_VALUES ? `${RECORD_VALUES} members in one object` : null
}

export interface JsonSize {
  /** The offset of the comma or closing bracket after the value, or the end of the text. */
  readonly end: number
  /** Upper limit of the arrays, objects and their members in the value. */
  readonly values: number
}

/** Finds the end of a JSON value and counts what is in it, without checking it. @param from its first byte */
export function measure(bytes: Uint8Array, from: number, to: number): JsonSize {
  let depth = 0
  let values = 0
  for (let at = from; at < to; at++) {
    switch (bytes[at] ?? 0) {
      case QUOTE:
        at = endOfText(bytes, at, to)
        break
      case BRACE:
      case BRACKET:
        depth++
        values++
        break
      case BRACE + CLOSING:
      case BRACKET + CLOSING:
        if (depth === 0) return { end: at, values }
        depth--
        break
      case COMMA:
        if (depth === 0) return { end: at, values }
        values++
    }
  }
  return { end: to, values }
}

/**
 * Finds the end of a JSON object without checking what is in it.
 *
 * @param from its opening brace
 * @returns the offset after its closing brace, -1 when there is none
 */
export function objectEnd(bytes: Uint8Array, from: number): number {
  let depth = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    switch (byte) {
      case QUOTE:
        at = endOfText(bytes, at, bytes.length)
        break
      case BRACE:
      case BRACKET:
        depth++
        break
      case BRACE + CLOSING:
      case BRACKET + CLOSING:
        depth--
        if (depth === 0) return byte === BRACE + CLOSING ? at + 1 : -1
    }
  }
  return -1
}

/** @returns the offset of the closing quote, or `to` */
function endOfText(bytes: Uint8Array, from: number, to: number): number {
  for (let at = from + 1; at < to; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) return at
    if (byte === BACKSLASH) at++
  }
  return to
}

/**
 * Finds the items of a JSON array without checking them.
 *
 * @param from after the opening bracket
 * @param most ends the search after this many items
 * @returns the offsets after the items, each of a comma or of the closing bracket; null for an array without an end
 */
export function itemEnds(bytes: Uint8Array, from: number, most: number): readonly number[] | null {
  const ends: number[] = []
  for (let at = from; ; at++) {
    const { end } = measure(bytes, at, bytes.length)
    if (end === bytes.length) return null
    ends.push(end)
    if (ends.length > most) return ends
    if (bytes[end] === BRACKET + CLOSING) return ends
    if (bytes[end] !== COMMA) return null
    at = end
  }
}
