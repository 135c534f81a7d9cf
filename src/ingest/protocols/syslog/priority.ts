import { severityOfNumber } from '../../../model/severity.js'
import * as layout from '../../../wasm/layout.js'

/** The facilities by number (RFC 5424, table 1). */
export const FACILITIES = [
  ...'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp'.split(' '),
  ...'ntp audit alert clock'.split(' '),
  ...Array.from({ length: 8 }, (_, i) => `local${i}`),
]

/** The syslog severities that are more precise than the five levels. */
export const FINE_LEVELS: Readonly<Partial<Record<number, string>>> = {
  0: 'emerg',
  1: 'alert',
  5: 'notice',
}

/** A table by PRI value (0 to 191) of the severity and tags, in the layout of `wasm/layout.ts`. */
export const PRIORITIES = Buffer.concat(
  Array.from({ length: layout.PRIORITIES }, (_, number) => {
    const severity = severityOfNumber(number % 8, 'syslog') ?? ''
    const level = FINE_LEVELS[number % 8]
    const facility = FACILITIES[number >> 3]
    const tags = JSON.stringify({ facility, severity_text: level }).slice(1)
    const head = Buffer.from([severity.length, tags.length])
    return Buffer.concat([head, Buffer.from(severity + tags)], layout.PRIORITY_BYTES)
  }),
)
