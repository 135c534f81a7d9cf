import { HOUR_S, DAY_S } from './time.js'

export const GRANULARITIES = ['second', 'minute', 'hour', 'day'] as const
export type Granularity = (typeof GRANULARITIES)[number]

/** Width of a bucket, s; buckets begin at multiples of it since 1970 (UTC). */
export const STEP_S = {
  second: 5,
  minute: 60,
  hour: HOUR_S,
  day: DAY_S,
} as const satisfies Record<Granularity, number>

/** Windows of the API; `seconds` is null for a calendar month. */
export const WINDOWS = {
  '5s': { granularity: 'second', seconds: 5 },
  '1m': { granularity: 'minute', seconds: 60 },
  '5m': { granularity: 'minute', seconds: 300 },
  '10m': { granularity: 'minute', seconds: 600 },
  '15m': { granularity: 'minute', seconds: 900 },
  '1h': { granularity: 'hour', seconds: HOUR_S },
  '2h': { granularity: 'hour', seconds: 2 * HOUR_S },
  '24h': { granularity: 'hour', seconds: DAY_S },
  '7d': { granularity: 'day', seconds: 7 * DAY_S },
  '30d': { granularity: 'day', seconds: 30 * DAY_S },
  '1mo': { granularity: 'day', seconds: null },
} as const satisfies Record<
  string,
  { readonly granularity: Granularity; readonly seconds: number | null }
>

export type Window = keyof typeof WINDOWS

/** The start of a window that ends at `endS`; both in s since 1970. */
export function startOfWindow(window: Window, endS: number): number {
  const { seconds } = WINDOWS[window]
  return seconds === null ? monthBefore(endS) : endS - seconds
}

/** The same time of day one calendar month earlier, on the last day of a month that is too short. */
export function monthBefore(atS: number): number {
  const at = new Date(atS * 1000)
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()]
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate()
  const day = Math.min(at.getUTCDate(), lastDay)
  return Date.UTC(year, month - 1, day) / 1000 + (atS % DAY_S)
}

/** The multiple of `stepS` at or before `atS`. */
export const alignDown = (atS: number, stepS: number): number => Math.floor(atS / stepS) * stepS
