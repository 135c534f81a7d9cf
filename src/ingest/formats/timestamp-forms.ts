import type { Clock, ToUtc } from './zone.js'
import { toUtcMs, MINUTE_MS, HOUR_MS, DAY_MS } from '../../model/time.js'

const TIME = String.raw`(?<h>\d{1,2})[:.](?<min>\d\d)(?:[:.](?<s>\d\d)(?:[.,](?<f>\d{1,12}))?)?`
const ZONE = String.raw`(?: ?(?<zone>[zZ]|[A-Z]{3,4}|[+-]\d\d:?\d\d|[+-]\d\d))?`
const HALF = String.raw`(?:[ \u202f]?(?<half>[AaPp])\.?[Mm]\.?)?`
const MONTH = '(?<mon>[A-Za-z]{3})[a-z]{0,6}'
const WEEKDAY = String.raw`(?:[A-Za-z]{3},? )?`

/**
 * All forms but ISO 8601 and epoch numbers; the first match wins. A form matches a whole text without brackets around
 * it.
 */
const FORMS = [
  // 21/Nov/2026:09:28:19 +0000 (nginx, Apache access)
  String.raw`(?<d>\d{1,2})/${MONTH}/(?<y>\d{4})[: ]${TIME}${ZONE}`,
  // Nov 21 09:28:19 (syslog), Nov 21 2026 09:28:19 (Cisco), Sat Nov 21 09:28:19.123456 2026
  // (Apache error, ctime), Sat Nov 21 09:28:19 UTC 2026 (date)
  String.raw`${WEEKDAY}${MONTH} {1,2}(?<d>\d{1,2})(?: (?<y>\d{4}))? ${TIME}${ZONE}(?: (?<y2>\d{4}))?`,
  // 2026 Nov 21 09:28:19.123 UTC (Cisco NX-OS)
  String.raw`(?<y>\d{4}) ${MONTH} {1,2}(?<d>\d{1,2}) ${TIME}${ZONE}`,
  // Nov 21, 2026 @ 09:28:19.000 (Kibana), Nov 21, 2026 9:28:19 AM (java.util.logging)
  String.raw`${MONTH} (?<d>\d{1,2}),? (?<y>\d{4}),? (?:@ )?${TIME}${HALF}${ZONE}`,
  // Sat, 21 Nov 2026 09:28:19 GMT (RFC 2822), 21 Nov 2026 09:28:19,000 (log4j), 21-Nov-2026 09:28:19
  String.raw`${WEEKDAY}(?<d>\d{1,2})[ -]${MONTH}[ -](?<y>\d{4})[ :]${TIME}${ZONE}`,
  // 2026-11-21 @ 09:28:19.000 (Kibana CSV), 2026/11/21 09:28:19 (nginx error, Go),
  // 2005-06-03-15.42.50.363779 (BGL), 2026-11-21 09:28:19 UTC, 2026-11-21
  String.raw`(?<y>\d{4})[-/.](?<m>\d{1,2})[-/.](?<d>\d{1,2})(?:(?:[ T_:-]| @ )${TIME}${ZONE})?`,
  // 20261121T092819Z
  String.raw`(?<y>\d{4})(?<m>\d\d)(?<d>\d\d)T(?<h>\d\d)(?<min>\d\d)(?<s>\d\d)(?:[.,](?<f>\d{1,12}))?${ZONE}`,
  // 17/06/09 20:10:40 (Spark: year first)
  String.raw`(?<yy>\d\d)/(?<m>\d\d)/(?<d>\d\d) ${TIME}`,
  // 081109 203518 (HDFS)
  String.raw`(?<yy>\d\d)(?<m>\d\d)(?<d>\d\d) (?<h>\d\d)(?<min>\d\d)(?<s>\d\d)`,
  // E1121 09:28:19.000000 (glog, klog), 11-21 09:28:19.000 (Android), 11.21 09:28:19 (Proxifier)
  String.raw`[A-Z]?(?<m>\d\d)[-.]?(?<d>\d\d) ${TIME}`,
  // 20261121-9:28:19:7 (HealthApp: the last part is milliseconds)
  String.raw`(?<y>\d{4})(?<m>\d\d)(?<d>\d\d)-(?<h>\d{1,2}):(?<min>\d{1,2}):(?<s>\d{1,2}):(?<ms>\d{1,3})`,
  // 21.11.2026 09:28:19
  String.raw`(?<d>\d{1,2})\.(?<m>\d{1,2})\.(?<y>\d{4}),? ${TIME}`,
  // 11/21/2026 9:28:19 AM; day first only where the first number cannot be a month
  String.raw`(?<m>\d{1,2})(?<us>[/-])(?<d>\d{1,2})[/-](?<y>\d{4}),? ${TIME}${HALF}`,
].map((form) => new RegExp(`^${form}$`))

type Parts = Readonly<Partial<Record<string, string>>>

/**
 * Reads the forms of times that loggers write besides ISO 8601.
 *
 * @param text at most 64 characters, trimmed
 * @param clock gives the zone, and the year: the latest that is not over a day ahead
 * @returns ms since 1970, null when no form fits or the date does not exist
 */
export function parseTimeForm(text: string, clock: Clock): number | null {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  for (const form of FORMS) {
    const parts = form.exec(bare)?.groups
    if (parts !== undefined) return assemble(parts, clock)
  }
  return null
}

function assemble(parts: Parts, clock: Clock): number | null {
  const timeMs = timeOfDay(parts)
  const offsetMs = parts['zone'] === undefined ? 0 : zoneOffset(parts['zone'])
  if (timeMs === null || offsetMs === null) return null
  const toUtc: ToUtc = parts['zone'] === undefined ? clock.toUtc : (ms) => ms
  const first = parts['mon'] === undefined ? Number(parts['m']) : monthNumber(parts['mon'])
  const second = Number(parts['d'])
  const year = yearOf(parts)
  if (year === null)
    return inLatestYear(first, second, timeMs - offsetMs, { nowMs: clock.nowMs, toUtc })
  const [month, day] = first > 12 && parts['us'] !== undefined ? [second, first] : [first, second]
  const ms = toUtcMs(year, month, day, timeMs - offsetMs)
  return ms === null ? null : toUtc(ms)
}

/** Completes a year of two digits, which up to 69 is of this century, as in POSIX. */
function yearOf(parts: Parts): number | null {
  const full = parts['y'] ?? parts['y2']
  if (full !== undefined) return Number(full)
  if (parts['yy'] === undefined) return null
  const short = Number(parts['yy'])
  return short < 70 ? 2000 + short : 1900 + short
}

function timeOfDay(parts: Parts): number | null {
  const hours = hourOf(Number(parts['h'] ?? 0), parts['half'])
  const minutes = Number(parts['min'] ?? 0)
  const seconds = Number(parts['s'] ?? 0)
  if (hours === null || hours > 23 || minutes > 59 || seconds > 60) return null
  const ms = Number(parts['ms'] ?? (parts['f'] ?? '').padEnd(3, '0').slice(0, 3))
  return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms
}

/** @param half `a` or `p` of a 12-hour clock */
function hourOf(hour: number, half: string | undefined): number | null {
  if (half === undefined) return hour
  if (hour < 1 || hour > 12) return null
  return (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0)
}

/** Finds the latest year in which the date exists: 29 February may be several years ago. */
function inLatestYear(
  month: number,
  day: number,
  timeMs: number,
  { nowMs, toUtc }: Clock,
): number | null {
  const thisYear = new Date(nowMs).getUTCFullYear()
  // Begins with the next year, which may have begun in another time zone.
  for (let year = thisYear + 1; year > thisYear - 9; year -= 1) {
    const ms = toUtcMs(year, month, day, timeMs)
    const at = ms === null ? null : toUtc(ms)
    if (at !== null && at <= nowMs + DAY_MS) return at
  }
  return null
}

const MONTHS = 'janfebmaraprmayjunjulaugsepoctnovdec'

/** @returns NaN for a word that is no English month */
function monthNumber(name: string): number {
  const at = MONTHS.indexOf(name.toLowerCase())
  return at >= 0 && at % 3 === 0 ? at / 3 + 1 : Number.NaN
}

/** Hours east of Greenwich by the unambiguous names of zones: those of RFC 2822 and Europe. */
const ZONE_HOURS: ReadonlyMap<string, number> = new Map([
  ['Z', 0],
  ['UTC', 0],
  ['GMT', 0],
  ['WET', 0],
  ['WEST', 1],
  ['CET', 1],
  ['CEST', 2],
  ['EET', 2],
  ['EEST', 3],
  ['MSK', 3],
  ['JST', 9],
  ['EST', -5],
  ['EDT', -4],
  ['CST', -6],
  ['CDT', -5],
  ['MST', -7],
  ['MDT', -6],
  ['PST', -8],
  ['PDT', -7],
])

function zoneOffset(zone: string): number | null {
  const named = ZONE_HOURS.get(zone.toUpperCase())
  if (named !== undefined) return named * HOUR_MS
  const match = /^([+-])(\d\d):?(\d\d)?$/.exec(zone)
  if (match === null) return null
  const [, sign, hours, minutes = '0'] = match
  if (Number(hours) > 23 || Number(minutes) > 59) return null
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS
  return sign === '-' ? -offsetMs : offsetMs
}
