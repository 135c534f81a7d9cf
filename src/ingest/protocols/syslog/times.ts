import { parseTimestamp } from '../../formats/timestamp.js'
import type { Clock } from '../../formats/zone.js'

const BLANK = 0x20
const DASH = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const COLON = 0x3a
const LETTER_T = 0x54
const LETTER_Z = 0x5a
/** `2026-11-21T09:28:` */
const MINUTE_BYTES = 17
/** `Nov 21 09:28:19` */
export const BSD_TIME_BYTES = 15

/** A text of the body, by its first byte and the one behind it. */
export interface Extent {
  from: number
  to: number
}

/** Whether a part of the body has the same bytes as another one. */
export function isSame(bytes: Buffer, other: Extent, from: number, to: number): boolean {
  const length = to - from
  if (length === 0 || other.to - other.from !== length) return false
  for (let i = 0; i < length; i++) if (bytes[other.from + i] !== bytes[from + i]) return false
  return true
}

/** Reads the times of the messages of one body, which mostly are of one minute or second. */
export class Times {
  readonly #bytes: Buffer
  readonly #clock: Clock
  readonly #minute: Extent = { from: 0, to: 0 }
  readonly #zone: Extent = { from: 0, to: 0 }
  #minuteMs: number | null = null
  readonly #second: Extent = { from: 0, to: 0 }
  #secondMs: number | null = null

  constructor(bytes: Buffer, clock: Clock) {
    this.#bytes = bytes
    this.#clock = clock
  }

  /** Reads `2026-11-21T09:28:19.123Z`, with any fraction, and any zone. @returns null for another time */
  iso(from: number, to: number): number | null {
    const bytes = this.#bytes
    const at = from + MINUTE_BYTES
    if (to - from < MINUTE_BYTES + 3 || bytes[from + 10] !== LETTER_T) return null
    const second = digitAt(bytes, at) * 10 + digitAt(bytes, at + 1)
    const zone = zoneAt(bytes, at + 2)
    if (!(second < 60) || zone === -1 || !isZone(bytes, zone, to)) return null
    const minuteMs = this.#minuteOf(from, at, zone, to)
    return minuteMs === null ? null : minuteMs + second * 1000 + fractionMs(bytes, at + 2)
  }

  /** Reads `Nov 21 09:28:19` before a blank. @returns null for another time */
  bsd(from: number, end: number): number | null {
    const to = from + BSD_TIME_BYTES
    if (to >= end || this.#bytes[to] !== BLANK) return null
    if (isSame(this.#bytes, this.#second, from, to)) return this.#secondMs
    const text = this.#bytes.toString('latin1', from, to)
    const isTime = /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d$/.test(text)
    this.#secondMs = isTime ? parseTimestamp(text.replace('  ', ' '), this.#clock) : null
    this.#second.from = from
    this.#second.to = to
    return this.#secondMs
  }

  #minuteOf(from: number, second: number, zone: number, to: number): number | null {
    const bytes = this.#bytes
    if (isSame(bytes, this.#minute, from, second) && isSame(bytes, this.#zone, zone, to))
      return this.#minuteMs
    const text = `${bytes.toString('latin1', from, second)}00${bytes.toString('latin1', zone, to)}`
    const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\D/.test(text)
    this.#minuteMs = isTime ? parseTimestamp(text, this.#clock) : null
    Object.assign(this.#minute, { from, to: second })
    Object.assign(this.#zone, { from: zone, to })
    return this.#minuteMs
  }
}

/** @returns NaN when there is no digit */
function digitAt(bytes: Buffer, at: number): number {
  const digit = (bytes[at] ?? 0) - ZERO
  return digit >= 0 && digit <= 9 ? digit : Number.NaN
}

/** @returns where the zone begins behind a fraction of up to nine digits, or none; -1 for another fraction */
function zoneAt(bytes: Buffer, from: number): number {
  if (bytes[from] !== DOT) return from
  let at = from + 1
  while (digitAt(bytes, at) >= 0) at++
  return at === from + 1 || at - from > 10 ? -1 : at
}

/** Reads the first three digits of a fraction. */
function fractionMs(bytes: Buffer, from: number): number {
  if (bytes[from] !== DOT) return 0
  let ms = 0
  for (let at = from + 1, scale = 100; at < from + 4; at++, scale /= 10) {
    const digit = digitAt(bytes, at)
    if (!(digit >= 0)) return ms
    ms += digit * scale
  }
  return ms
}

const isZone = (bytes: Buffer, at: number, to: number): boolean =>
  bytes[at] === LETTER_Z ? at + 1 === to : isOffset(bytes, at, to)

/** Whether there is `+01:30` between two offsets. */
const isOffset = (bytes: Buffer, at: number, to: number): boolean =>
  to - at === 6 && (bytes[at] === DASH || bytes[at] === 0x2b) && bytes[at + 3] === COLON
