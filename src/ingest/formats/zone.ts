/** Converts a local time to UTC. Both are ms since 1970; a local time is given as if it were in UTC. */
export type ToUtc = (clockMs: number) => number

/** The context that completes a time without a year or zone. */
export interface Clock {
  readonly nowMs: number
  readonly toUtc: ToUtc
}

export const UTC: ToUtc = (clockMs) => clockMs

/** The offsets of time zones change at multiples of this. */
const STEP_MS = 900_000
const MAX_KNOWN = 10_000

/** The time zones of one thread, each created once. */
export class Zones {
  readonly #byName = new Map<string, ToUtc>()

  /**
   * @param name of the IANA
   * @throws RangeError for a name that is none
   */
  of(name: string): ToUtc {
    const known = this.#byName.get(name) ?? zoneOf(name)
    this.#byName.set(name, known)
    return known
  }
}

/**
 * @param name of the IANA: `Europe/Vienna`
 * @throws RangeError for a name that is none
 */
function zoneOf(name: string): ToUtc {
  if (name === 'UTC') return UTC
  const format = new Intl.DateTimeFormat('en', { timeZone: name, timeZoneName: 'longOffset' })
  const known = new Map<number, number>()
  const offsetAt = (utcMs: number): number => {
    const step = Math.floor(utcMs / STEP_MS)
    const found = known.get(step) ?? offsetOf(format, step * STEP_MS)
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(step, found)
    return found
  }
  // The second lookup is needed for the hours after a change of the offset. A local time that
  // occurs twice is the first of the two.
  return (clockMs) => {
    const guessMs = clockMs - offsetAt(clockMs)
    const earlyMs = clockMs - offsetAt(guessMs - STEP_MS * 8)
    if (clockMs - offsetAt(earlyMs) === earlyMs) return earlyMs
    return clockMs - offsetAt(guessMs)
  }
}

/** Reads `GMT`, `GMT+05:30` or `GMT-00:01:15`. @returns ms */
function offsetOf(format: Intl.DateTimeFormat, utcMs: number): number {
  // The range of dates, beyond which the format throws.
  const at = Math.min(Math.max(utcMs, -8e15), 8e15)
  const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const match = /([+-])(\d\d):?(\d\d)?:?(\d\d)?/.exec(name)
  if (match === null) return 0
  const [, sign, hours = '0', minutes = '0', seconds = '0'] = match
  const offsetMs = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
  return sign === '-' ? -offsetMs : offsetMs
}
