import { parseTimeForm } from './timestamp-forms.js'
import type { Clock } from './zone.js'
import { toUtcMs, MINUTE_MS, DAY_MS } from '../../model/time.js'

/** `auto` tells seconds, milli-, micro- and nanoseconds apart by size. */
export type TimeUnit = 'auto' | 's' | 'ms' | 'us' | 'ns'

/**
 * Reads a point in time in any form that a logger writes: ISO 8601 (no zone is that of the clock), an epoch
 * number or its digits, and the forms of `timestamp-forms.ts`.
 *
 * @param clock completes forms without a year or a zone
 * @param unit of an epoch number
 * @returns ms since 1970, integer, possibly outside the accepted range; null when unreadable
 */
export function parseTimestamp(
  value: string | number,
  clock: Clock,
  unit: TimeUnit = 'auto',
): number | null {
  if (typeof value === 'number') return epochToMs(value, unit)
  const iso = parseIso(value, clock)
  if (iso !== null) return iso
  // No timestamp format has more characters, and the regular expressions below must not run over a whole message.
  if (value.length > 64) return null
  const text = value.trim()
  return digitsToMs(text, unit, clock) ?? parseIso(text, clock) ?? parseTimeForm(text, clock)
}

/** Whether a time is between 1970 and one day after `nowMs`. */
export const isAcceptedTime = (timestampMs: number, nowMs: number): boolean =>
  timestampMs >= 0 && timestampMs <= nowMs + DAY_MS

function epochToMs(value: number, unit: TimeUnit): number | null {
  if (!Number.isFinite(value)) return null
  const chosen = unit === 'auto' ? unitBySize(Math.abs(value)) : unit
  if (chosen === 'ms') return Math.floor(value)
  if (chosen === 'us') return Math.floor(value / 1e3)
  // Rounded to microseconds first, because the floor of an inexact double may be the millisecond before.
  return Math.floor(Math.round(chosen === 'ns' ? value / 1e3 : value * 1e6) / 1e3)
}

function unitBySize(size: number): Exclude<TimeUnit, 'auto'> {
  if (size < 1e11) return 's'
  if (size < 1e14) return 'ms'
  return size < 1e17 ? 'us' : 'ns'
}

function digitsToMs(text: string, unit: TimeUnit, { toUtc }: Clock): number | null {
  const match = /^-?0{0,30}(\d{1,30})(\.\d{1,12})?$/.exec(text)
  const digits = match?.[1]
  if (digits === undefined) return null
  const isCompact = unit === 'auto' && (text.length === 14 || text.length === 8)
  const compact = isCompact ? parseCompact(text) : null
  if (compact !== null) return toUtc(compact)
  const chosen = unit === 'auto' ? unitBySize(Number(digits)) : unit
  const subMsDigits = digits === text ? SUB_MS_DIGITS[chosen] : 0
  return subMsDigits > 0 ? Number(digits.slice(0, -subMsDigits)) : epochToMs(Number(text), chosen)
}

/** Digits that are removed instead of dividing, because a double has fewer than 19 digits. */
const SUB_MS_DIGITS = { s: 0, ms: 0, us: 3, ns: 6 } as const

/** Reads `20261121` or `20261121092819`, which as epoch numbers would be in 1970 or centuries ahead. */
function parseCompact(digits: string): number | null {
  const part = (from: number, to: number) => Number(digits.slice(from, to))
  if (!/^(?:19|20)/.test(digits)) return null
  if (part(8, 10) > 23 || part(10, 12) > 59 || part(12, 14) > 59) return null
  const time = (part(8, 10) * 60 + part(10, 12)) * 60 + part(12, 14)
  return toUtcMs(part(0, 4), part(4, 6), part(6, 8), time * 1000)
}

const ZERO = 48
const PLUS = 43
const COMMA = 44
const MINUS = 45
const DOT = 46
const COLON = 58

/** @returns NaN unless there are two digits at `at` */
function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - ZERO
  const units = text.charCodeAt(at + 1) - ZERO
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : Number.NaN
}

/**
 * Reads `2026-11-21T09:28:19.123Z` with T or blank, dot or comma, any number of decimals, any offset or none. Most
 * times have this form, so it uses no expression, no Date and no substring (bench/micro/timestamp.bench.ts).
 */
function parseIso(text: string, { toUtc }: Clock): number | null {
  if (text.length < 16) return null
  if (text.charCodeAt(4) !== MINUS || text.charCodeAt(7) !== MINUS) return null
  const separator = text.charCodeAt(10) | 0x20
  if (separator !== 0x74 && separator !== 0x20) return null
  const hours = twoDigits(text, 11)
  const minutes = twoDigits(text, 14)
  if (!(hours <= 23) || !(minutes <= 59) || text.charCodeAt(13) !== COLON) return null
  const restMs = isoRest(text)
  if (restMs === null) return null
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const timeMs = (hours * 60 + minutes) * MINUTE_MS + restMs
  const ms = toUtcMs(year, twoDigits(text, 5), twoDigits(text, 8), timeMs)
  return ms === null || hasZone(text) ? ms : toUtc(ms)
}

/** Whether a text ends with an offset or `Z`. A time without one ends with a digit, and has no sign after the date. */
const hasZone = (text: string): boolean =>
  text.charCodeAt(text.length - 1) > 57 || text.includes('+', 16) || text.includes('-', 16)

/** Reads seconds, decimals and offset after `2026-11-21T09:28`. @returns ms */
function isoRest(text: string): number | null {
  let at = 16
  let ms = 0
  if (text.charCodeAt(at) === COLON) {
    const seconds = twoDigits(text, 17)
    // 60 is a leap second and belongs to the next minute.
    if (!(seconds <= 60)) return null
    ms = seconds * 1000
    at = 19
  }
  const separator = text.charCodeAt(at)
  if (separator === DOT || separator === COMMA) {
    const end = digitsEnd(text, at + 1)
    if (end === at + 1) return null
    ms += fractionMs(text, at + 1, end)
    at = end
  }
  const offsetMs = at === text.length ? 0 : parseOffset(text, at)
  return Number.isNaN(offsetMs) ? null : ms - offsetMs
}

function digitsEnd(text: string, from: number): number {
  let end = from
  while (end < text.length && text.charCodeAt(end) >= ZERO && text.charCodeAt(end) <= 57) end += 1
  return end
}

/** Reads the first three decimals. More are truncated, not rounded, so that an event never moves ahead. */
function fractionMs(text: string, from: number, end: number): number {
  let ms = 0
  for (let at = from; at < from + 3; at += 1) {
    ms = ms * 10 + (at < end ? text.charCodeAt(at) - ZERO : 0)
  }
  return ms
}

/** Reads `Z`, `+hh:mm`, `+hhmm` or `+hh` up to the end of the text. @returns NaN for anything else */
function parseOffset(text: string, at: number): number {
  const rest = text.length - at
  const sign = text.charCodeAt(at)
  if ((sign | 0x20) === 0x7a) return rest === 1 ? 0 : Number.NaN
  if (sign !== PLUS && sign !== MINUS) return Number.NaN
  const hours = twoDigits(text, at + 1)
  let minutes = 0
  if (rest === 6 && text.charCodeAt(at + 3) === COLON) minutes = twoDigits(text, at + 4)
  else if (rest === 5) minutes = twoDigits(text, at + 3)
  else if (rest !== 3) return Number.NaN
  if (!(hours <= 23) || !(minutes <= 59)) return Number.NaN
  const offsetMs = (hours * 60 + minutes) * MINUTE_MS
  return sign === MINUS ? -offsetMs : offsetMs
}
