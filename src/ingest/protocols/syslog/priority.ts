import { severityOfNumber } from '../../../model/severity.js'
import * as layout from '../../../wasm/layout.js'

/** By number (RFC 5424, table 1). */
export const FACILITIES = [
  ...'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp'.split(' '),
  ...'ntp audit alert clock'.split(' '),
  ...Array.from({ length: 8 }, (_, i) => `local${i}`),
]

/** The severities that five levels do not tell apart. */
export const FINE_LEVELS: Readonly<Partial<Record<number, string>>> = {
  0: 'emerg',
  1: 'alert',
  5: 'notice',
}

/** A table by PRI value (0 to 191): the severity and tags it means, laid out as `wasm/layout.ts` says. */
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
