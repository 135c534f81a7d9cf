import { textHasTooManyValues } from './json-size.js'

/** @returns undefined for a text that is not JSON, and for one with more values than a record may have */
export const parseJson = (text: string): unknown =>
  textHasTooManyValues(text) ? undefined : parseCounted(text)

/** Parses a text whose values were counted before. @returns undefined for a text that is not JSON */
export function parseCounted(text: string): unknown {
  const depth = Error.stackTraceLimit
  // A stack trace would be most of the cost of an invalid text.
  Error.stackTraceLimit = 0
  try {
    return JSON.parse(mayLoseDigits(text) ? withTexts(text) : text)
  } catch {
    return undefined
  } finally {
    Error.stackTraceLimit = depth
  }
}

/** @returns '' for undefined, and for a value that is nested too deeply for JSON.stringify */
export function rawText(value: unknown): string {
  try {
    return value === undefined ? '' : JSON.stringify(value)
  } catch {
    return ''
  }
}

/** A double may not hold sixteen digits exactly, and exponents of three digits may exceed its range. */
const mayLoseDigits = (text: string): boolean => /\d{16}|\d\.\d{15}|\d[eE][+-]?\d{3}/.test(text)

/** Matches a string, which may lack its end so that the search is linear, or a number. The text between matches is copied. */
const TEXT_OR_NUMBER =
  /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|\\?$)|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Turns numbers that a double cannot hold into strings, so that they keep their digits. */
const withTexts = (text: string): string =>
  text.replace(TEXT_OR_NUMBER, (part) =>
    part.startsWith('"') || isExact(part) ? part : `"${part}"`,
  )

function isExact(number: string): boolean {
  const value = Number(number)
  if (/^-?\d+$/.test(number)) return Number.isSafeInteger(value)
  if (!Number.isFinite(value)) return false
  const [mantissa = ''] = number.split(/[eE]/)
  const digits = mantissa.replace(/[-.]/g, '').replace(/^0+/, '')
  // A double holds fifteen significant digits exactly. With more digits, the number is compared with its text.
  return digits.length <= 15 ? value !== 0 || digits === '' : String(value) === number
}
