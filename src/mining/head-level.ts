import type { Severity } from '../model/event.js'
import { LEVEL_WORDS, parseSeverity } from '../model/severity.js'

/** Characters of a message in which its level is looked for. */
const HEAD_LENGTH = 240
const MAX_TOKENS = 14

/** Spellings that a level field may have but that say something else at the head of a text. */
const NOT_IN_TEXT = new Set(
  'all default http audit ok success log note fail failed failure exception'.split(' '),
)
/** Of those, the ones that are levels when they stand apart (`LOG:`, `fail:`, `[ok]`). */
const WHEN_MARKED = new Set('log note fail ok success audit'.split(' '))
/** They are levels in capitals only (`FINE`). */
const COMMON_WORDS = new Set('fine finer finest config information caution'.split(' '))

const SEVERITY_OF: ReadonlyMap<string, Severity> = new Map(
  (['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const).flatMap((severity) =>
    [...LEVEL_WORDS[severity], ...(severity === 'DEBUG' ? ['trce'] : [])].map(
      (word): [string, Severity] => [word, severity],
    ),
  ),
)

const KLOG: Readonly<Record<string, Severity>> = {
  I: 'INFO',
  W: 'WARNING',
  E: 'ERROR',
  F: 'CRITICAL',
}

const DATE_WORD =
  /^(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|utc|gmt|[cempi][ds]t|cest|am|pm)$/i
const TIME = /\d:\d\d|\d{4}[-/.]\d\d|\d\d[-/]\d\d|^\d{9,}/
/** What may follow an unmarked `Error` that begins a report of one: `Error while reading …`. */
const OPENS_REPORT =
  /^(?:in|while|when|on|at|from|during|occurred|trying|connecting|reading|writing|opening|loading|sending|receiving|parsing|processing|creating|executing|fetching|starting|calling|performing|saving|closing|initializing|getting|setting)$/i
const LEVEL_FIELD = /(?:^|,)[{("]*(?:level|lvl|severity|loglevel|log_level)"?[=:]"?([A-Za-z]+)/i

/**
 * The level that a message states at its head: `[error]`, `WARN:`, `level=info`, `E1121 09:28:19…`,
 * behind a time, host, process and logger. Words inside the message are no levels
 * (`no errors found`, `error_count=0`).
 *
 * @returns null when the head states none
 */
export function levelAtHead(message: string | Uint8Array): Severity | null {
  const head =
    typeof message === 'string'
      ? message.slice(0, HEAD_LENGTH)
      : Buffer.from(
          message.buffer,
          message.byteOffset,
          Math.min(message.length, HEAD_LENGTH),
        ).toString('latin1')
  const klog = /^([IWEF])\d{4} \d\d:\d\d:\d\d/.exec(head)
  if (klog !== null) return KLOG[klog[1] ?? ''] ?? null
  const tokens = head.split(/[\s|]+/, MAX_TOKENS + 2)
  if (tokens[0] === '') tokens.shift()
  return findLevel(tokens)
}

/** What the tokens read so far say about the place in the head. */
interface Place {
  timed: boolean
  words: number
  /** behind `program:`, where the message begins */
  opened: boolean
}

function findLevel(tokens: readonly string[]): Severity | null {
  const place: Place = { timed: false, words: 0, opened: false }
  for (const [i, token] of tokens.entries()) {
    if (i >= MAX_TOKENS) return null
    const level = levelOf(token, tokens[i + 1] ?? '', i, place)
    if (level !== null) return level
    if (!passes(token, place)) return null
  }
  return null
}

// oxlint-disable-next-line max-params -- a step of one loop
function levelOf(token: string, next: string, index: number, place: Place): Severity | null {
  const field = LEVEL_FIELD.exec(token)
  if (field !== null) return parseSeverity(field[1] ?? '')
  const parts = /^([[(<{"'*-]*)(?:[a-z_]+:)?([A-Za-z]+)([\])>}"'*:,!-]*)(.*)$/.exec(token)
  if (parts === null) return null
  const [, open = '', word = '', close = '', rest = ''] = parts
  const lower = word.toLowerCase()
  const severity = SEVERITY_OF.get(lower)
  if (severity === undefined) return null
  // `ERROR:root:text` is a level, `error.log` and `error_count=0` are names
  if (rest !== '' && !close.startsWith(':') && !close.startsWith(']')) return null
  const marked =
    close.startsWith(':') ||
    (open !== '' && close !== '') ||
    close === '!' ||
    (close !== '' && place.timed)
  if (marked && !COMMON_WORDS.has(lower)) {
    return NOT_IN_TEXT.has(lower) && !WHEN_MARKED.has(lower) ? null : severity
  }
  if (NOT_IN_TEXT.has(lower)) return null
  const capitals = word === word.toUpperCase()
  if (COMMON_WORDS.has(lower)) return capitals && (marked || place.timed) ? severity : null
  if (capitals) return severity
  if (place.timed && place.words === 0 && !place.opened) return severity
  return index === 0 && OPENS_REPORT.test(next) ? severity : null
}

/** Whether a token may stand before a level: a time, host, process, thread or logger. */
function passes(token: string, place: Place): boolean {
  if (place.opened) return false
  if (TIME.test(token)) {
    place.timed = true
    return true
  }
  if (/^[\w./-]+(?:\[[^\]]*\])?:$/.test(token) && !/^\d+:$/.test(token)) {
    place.opened = true
    return true
  }
  if (/\d|^[^A-Za-z]*$|^[[(<{]|[\])>}]$|[=./@]/.test(token)) return true
  if (DATE_WORD.test(token)) return true
  place.words++
  // host and program stand between the time and the level
  return place.timed && place.words <= 2 ? true : /^[DIWEFV],$/.test(token)
}
