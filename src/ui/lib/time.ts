const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const RELATIVE = /^now(?:-(\d{1,6})([smhdw]))?$/

/** A time range in an address: ISO 8601, or relative to now. */
export interface Range {
  readonly from: string
  readonly to: string
}

/** @returns ms since 1970; null for an invalid text */
export function toMs(text: string, nowMs: number): number | null {
  const match = RELATIVE.exec(text)
  if (match !== null) {
    const [, count = '0', unit = 's'] = match
    return nowMs - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS] // the pattern has these units
  }
  const ms = Date.parse(text)
  return Number.isFinite(ms) ? ms : null
}

export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * Makes a range absolute. An invalid range, or one whose end is not after its start, becomes the last
 * hour. `now` is rounded up to the next second, because ranges of whole seconds are counted
 * fastest.
 */
export function toSpan({ from, to }: Range, atMs: number): Span {
  const nowMs = Math.ceil(atMs / UNIT_MS.s) * UNIT_MS.s
  const fromMs = toMs(from, nowMs)
  const toEnd = toMs(to, nowMs)
  if (fromMs === null || toEnd === null || fromMs >= toEnd)
    return { fromMs: nowMs - UNIT_MS.h, toMs: nowMs }
  return { fromMs, toMs: toEnd }
}

export const toRange = ({ fromMs, toMs: end }: Span): Range => ({
  from: new Date(Math.round(fromMs)).toISOString(),
  to: new Date(Math.round(end)).toISOString(),
})

/** The hour that ends with an event, the event included. */
export const hourTo = (ms: number): Range =>
  toRange({ fromMs: ms - UNIT_MS.h, toMs: ms + UNIT_MS.s })

export const QUICK_RANGES = [
  { label: 'Last 5 minutes', from: 'now-5m' },
  { label: 'Last 15 minutes', from: 'now-15m' },
  { label: 'Last hour', from: 'now-1h' },
  { label: 'Last 6 hours', from: 'now-6h' },
  { label: 'Last 24 hours', from: 'now-24h' },
  { label: 'Last 7 days', from: 'now-7d' },
  { label: 'Last 30 days', from: 'now-30d' },
] as const

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${JSON.stringify(options)}`
  let format = formats.get(key)
  if (format === undefined) {
    const named = zone === '' ? {} : { timeZone: zone }
    format = new Intl.DateTimeFormat('en-GB', { hourCycle: 'h23', ...options, ...named })
    formats.set(key, format)
  }
  return format
}

const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const
const DAY = { month: 'short', day: '2-digit' } as const

/** @param zone an IANA name, '' for the browser's own */
export const clock = (ms: number, zone: string): string => formatOf(zone, CLOCK).format(ms)

const millis = (ms: number): string => String(((ms % 1000) + 1000) % 1000).padStart(3, '0')

/** Time of day with milliseconds. */
export const preciseClock = (ms: number, zone: string): string => `${clock(ms, zone)}.${millis(ms)}`

export const day = (ms: number, zone: string): string => formatOf(zone, DAY).format(ms)

/** Day and time of day to the minute. */
export const shortTime = (ms: number, zone: string): string =>
  `${day(ms, zone)}, ${formatOf(zone, { hour: '2-digit', minute: '2-digit' }).format(ms)}`

/** The full date and time. */
export const fullTime = (ms: number, zone: string): string =>
  `${formatOf(zone, { weekday: 'short', year: 'numeric', ...DAY }).format(ms)}, ${preciseClock(ms, zone)}`

/** A duration in its two largest units: `2 h 5 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const units: readonly (readonly [string, number])[] = [
    ['d', UNIT_MS.d],
    ['h', UNIT_MS.h],
    ['min', UNIT_MS.m],
    ['s', UNIT_MS.s],
  ]
  const at = units.findIndex(([, unit]) => ms >= unit)
  let rest = ms
  const parts: string[] = []
  for (const [name, unit] of units.slice(at, at + 2)) {
    const count = Math.floor(rest / unit)
    rest -= count * unit
    if (count > 0) parts.push(`${count} ${name}`)
  }
  return parts.join(' ')
}

const YEAR_MS = 365.25 * UNIT_MS.d

/** The time since something in words. */
export function ago(ms: number, nowMs: number): string {
  const passed = nowMs - ms
  if (passed < 5000) return 'now'
  if (passed >= 2 * YEAR_MS) return `${Math.floor(passed / YEAR_MS)} y ago`
  return `${duration(passed).split(' ').slice(0, 2).join(' ')} ago`
}

export function rangeLabel(range: Range, zone: string, nowMs: number): string {
  const quick = QUICK_RANGES.find(({ from }) => from === range.from && range.to === 'now')
  if (quick !== undefined) return quick.label
  const { fromMs, toMs: end } = toSpan(range, nowMs)
  if (range.to === 'now' && RELATIVE.test(range.from)) return `Last ${duration(end - fromMs)}`
  const isSameDay = day(fromMs, zone) === day(end, zone)
  const last = isSameDay ? clock(end, zone) : `${day(end, zone)}, ${clock(end, zone)}`
  return `${day(fromMs, zone)}, ${clock(fromMs, zone)} – ${last}`
}
