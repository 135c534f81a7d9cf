import { MINUTE_MS, DAY_MS } from '../../model/time.js'

/** ISO 8601 and `2026-11-21 09:28:19 UTC`; seconds, fraction and zone may be missing. */
const TIME =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)? ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?$/i

/**
 * Reads a time as source-control platforms write it; one without zone is UTC.
 *
 * @returns ms since 1970, or null when `value` is no such text
 */
export function parseTime(value: unknown): number | null {
  if (typeof value !== 'string' || value.length > 64) return null
  const parts = TIME.exec(value.trim())
  if (parts === null) return null
  const number = (group: number): number => Number(parts[group] ?? 0)
  const day = dayMs(number(1), number(2), number(3))
  const clock = clockMs(number(4), number(5), number(6))
  const zone = zoneMs(parts[8] ?? 'Z')
  if (day === null || clock === null || zone === null) return null
  const fractionMs = Number((parts[7] ?? '').slice(0, 3).padEnd(3, '0'))
  return day + clock + fractionMs - zone
}

/** Returns the first of `candidates` that is a time in 1970..now + 1 day, else the time of arrival. */
export function eventTimeMs(candidates: readonly unknown[], nowMs: number): number {
  for (const candidate of candidates) {
    const ms = parseTime(candidate)
    if (ms !== null && ms >= 0 && ms <= nowMs + DAY_MS) return ms
  }
  return nowMs
}

/** @returns null for a date that does not exist, such as 31 April */
function dayMs(year: number, month: number, day: number): number | null {
  const ms = Date.UTC(year, month - 1, day)
  const date = new Date(ms)
  const same = date.getUTCFullYear() === year && date.getUTCMonth() === month - 1
  return same && date.getUTCDate() === day ? ms : null
}

function clockMs(hour: number, minute: number, second: number): number | null {
  // 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60) return null
  return ((hour * 60 + minute) * 60 + second) * 1000
}

function zoneMs(zone: string): number | null {
  if (!/^[+-]/.test(zone)) return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(3).replace(':', ''))
  if (hours > 23 || minutes > 59) return null
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * MINUTE_MS
}
