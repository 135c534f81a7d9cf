import type { Severity } from '../model/event.js'
import { LEVEL_WORDS, parseSeverity, withoutColours } from '../model/severity.js'

const DATE_WORDS =
  'mon tue wed thu fri sat sun jan feb mar apr may jun jul aug sep oct nov dec utc gmt cst cdt est edt mst mdt pst pdt ist cet cest am pm'.split(
    ' ',
  )
const DATE_WORD = new RegExp(`^(?:${DATE_WORDS.join('|')})$`, 'i')

/** The number of characters at the head of a message that are searched for a level. */
const HEAD_LENGTH = 240
const MAX_TOKENS = 14

/** Spellings of levels that have other meanings at the head of a text. */
const NOT_IN_TEXT = new Set(
  'all default http audit ok success log note fail failed failure exception'.split(' '),
)
/** Those of NOT_IN_TEXT that are levels when punctuation sets them apart (`LOG:`, `fail:`, `[ok]`). */
const WHEN_MARKED = new Set('log note fail ok success audit'.split(' '))
/** Common words that are levels only in capitals (`FINE`). */
const COMMON_WORDS = new Set('fine finer finest config information caution'.split(' '))

const SEVERITY_OF: ReadonlyMap<string, Severity> = new Map(
  (['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const).flatMap((severity) =>
    [...LEVEL_WORDS[severity], ...(severity === 'DEBUG' ? ['trce'] : [])].map(
      (word): [string, Severity] => [word, severity],
    ),
  ),
)

/** Words with which a message that states a level, or has a time before it, may begin. */
const MAY_OPEN: ReadonlySet<string> = new Set(
  [...SEVERITY_OF.keys(), ...DATE_WORDS].flatMap((word) => [
    word,
    word.toUpperCase(),
    word.charAt(0).toUpperCase() + word.slice(1),
  ]),
)

const KLOG: Readonly<Record<string, Severity>> = {
  I: 'INFO',
  W: 'WARNING',
  E: 'ERROR',
  F: 'CRITICAL',
}

/** The kernel's message about a process that it ended, in files without the kernel's levels. */
const OUT_OF_MEMORY =
  /^(?:\[ *\d{1,10}\.\d{6}\] )?(?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process /

/** The first character excludes nearly all messages. */
const mayBeOutOfMemory = (head: string): boolean => {
  const first = head.charCodeAt(0)
  return first === 0x4f || first === 0x4d || first === 0x5b
}

const TIME = /\d:\d\d|\d{4}[-/.]\d\d|\d\d[-/]\d\d|^\d{9,}/
/** Words that may follow an `Error` without punctuation at the beginning of a report: `Error while reading …`. */
const OPENS_REPORT =
  /^(?:in|while|when|on|at|from|during|occurred|trying|connecting|reading|writing|opening|loading|sending|receiving|parsing|processing|creating|executing|fetching|starting|calling|performing|saving|closing|initializing|getting|setting)$/i
const LEVEL_FIELD = /(?:^|,)[{("]*(?:level|lvl|severity|loglevel|log_level)"?[=:]"?([A-Za-z]+)/i

/**
 * Finds the level that a message states at its head: `[error]`, `WARN:`, `level=info`, `E1121 09:28:19…`, after an
 * optional time, host, process and logger. Words inside the message are no levels (`no errors found`,
 * `error_count=0`).
 *
 * @returns null when the head states none
 */
export function levelAtHead(message: string | Uint8Array): Severity | null {
  const start = typeof message === 'string' ? message.slice(0, HEAD_LENGTH) : decodeHead(message)
  const head = withoutColours(start)
  if (mayBeOutOfMemory(head) && OUT_OF_MEMORY.test(head)) return 'ERROR'
  if (beginsWithOtherWord(head)) return null
  const klog = /^([IWEF])\d{4} \d\d:\d\d:\d\d/.exec(head)
  if (klog !== null) return KLOG[klog[1] ?? ''] ?? null
  const tokens = head.split(/[\s|]+/, MAX_TOKENS + 2)
  if (tokens[0] === '') tokens.shift()
  return findLevel(tokens)
}

const isLetter = (code: number): boolean => (code | 32) >= 97 && (code | 32) <= 122

/** Recognises most messages at once by a first word that is no level. */
function beginsWithOtherWord(head: string): boolean {
  let end = 0
  while (end < head.length && isLetter(head.charCodeAt(end))) end++
  return end > 0 && head.charCodeAt(end) === 32 && !MAY_OPEN.has(head.slice(0, end))
}

const decodeHead = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, Math.min(length, HEAD_LENGTH)).toString('latin1')

/** The state of reading a head token by token. */
interface Place {
  index: number
  timed: boolean
  words: number
  /** Whether the last token was `program:`, after which the message begins. */
  opened: boolean
}

function findLevel(tokens: readonly string[]): Severity | null {
  const place: Place = { index: 0, timed: false, words: 0, opened: false }
  for (const token of tokens.slice(0, MAX_TOKENS)) {
    const level = levelOf(token, tokens[place.index + 1] ?? '', place)
    if (level !== null) return level
    if (!passes(token, place)) return null
    place.index++
  }
  return null
}

function levelOf(token: string, next: string, place: Place): Severity | null {
  const field = LEVEL_FIELD.exec(token)
  if (field !== null) return parseSeverity(field[1] ?? '')
  const parts = /^([[(<{"'*-]*)(?:[a-z_]+:)?([A-Za-z]+)([\])>}"'*:,!-]*)(.*)/s.exec(token)
  if (parts === null) return null
  const [, open = '', word = '', close = '', rest = ''] = parts
  const lower = word.toLowerCase()
  const severity = SEVERITY_OF.get(lower)
  if (severity === undefined) return null
  // `ERROR:root:text` is a level, `error.log` and `error_count=0` are names.
  if (rest !== '' && !/^[:\]]/.test(close)) return null
  const marked = /^[:!]/.test(close) || (close !== '' && (open !== '' || place.timed))
  const capitals = word === word.toUpperCase()
  const isLevel = COMMON_WORDS.has(lower)
    ? capitals && (marked || place.timed)
    : marked
      ? !NOT_IN_TEXT.has(lower) || WHEN_MARKED.has(lower)
      : !NOT_IN_TEXT.has(lower) && (capitals || opensMessage(next, place))
  return isLevel ? severity : null
}

/** Whether a level without punctuation counts: lower case directly after the time, or `Error while reading`. */
const opensMessage = (next: string, { index, timed, words, opened }: Place): boolean =>
  (timed && words === 0 && !opened) || (index === 0 && OPENS_REPORT.test(next))

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
  // Host and program stand between the time and the level.
  return place.timed && place.words <= 3 ? true : /^[DIWEFV],$/.test(token)
}
