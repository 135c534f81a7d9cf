interface RegexFault {
  /** Offset in the pattern. */
  readonly at: number
  readonly length: number
  readonly message: string
}

/** The parts of a pattern: a quote, an escape, a class and its end, the head of a group, a repetition, or one character. */
const PART =
  /\\Q[^]*?(?:\\E|$)|\\x\{[0-9a-fA-F]{1,6}\}|\\[^]?|\[\^?\]?(?:\\[^]|\[:\^?\w{1,10}:\]|[^\]\\])*(?<end>\])?|\(\?(?:<?[=!]|>)|\(\?(?:P?<\w{1,99}>|[a-zA-Z-]{0,9}[:)])|\{\d{1,9}(?:,\d{0,9})?\}|[^]/gu
const ESCAPE = /^\\(?:[^a-zA-Z1-9]|[aftnrvxQEAbBCzdDsSwWpP])/
const LOOKAROUND = /^\(\?(?:<?[=!]|>)/
const COUNTED = /^\{(\d+)(?:,(\d*))?\}$/
const MAX_REPETITIONS = 1000

/** What precedes a repetition. */
type Before = 'nothing' | 'something' | 'repetition' | 'lazy repetition'

/**
 * Finds syntax of other regular expressions that RE2 lacks, and what is not closed. Other faults
 * show when ClickHouse compiles the pattern.
 */
export function regexFault(pattern: string): RegexFault | null {
  const groups: number[] = []
  let before: Before = 'nothing'
  for (const { 0: part, index: at, groups: found } of pattern.matchAll(PART)) {
    const isClosed = !part.startsWith('[') || found?.['end'] !== undefined
    const message = isClosed ? partFault(part, before, groups.length) : 'this [ has no ]'
    if (message !== null) return { at, length: part.length, message }
    if (part.startsWith('(') && !part.endsWith(')')) groups.push(at)
    else if (part === ')') groups.pop()
    before = afterPart(part, before)
  }
  const open = groups.at(-1)
  return open === undefined ? null : { at: open, length: 1, message: 'this ( has no )' }
}

function afterPart(part: string, before: Before): Before {
  if (isRepetition(part)) return before === 'repetition' ? 'lazy repetition' : 'repetition'
  return part === '|' || part.startsWith('(') ? 'nothing' : 'something'
}

const isRepetition = (part: string): boolean => '*+?'.includes(part) || COUNTED.test(part)

function partFault(part: string, before: Before, groups: number): string | null {
  if (part.startsWith('\\')) return escapeFault(part)
  if (LOOKAROUND.test(part)) return 'RE2 has no look-around and no atomic groups'
  if (part === ')' && groups === 0) return 'this ) has no ('
  return isRepetition(part) ? repetitionFault(part, before) : null
}

function escapeFault(part: string): string | null {
  if (ESCAPE.test(part)) return null
  if (part === '\\') return 'the backslash escapes nothing'
  return /\d/.test(part) ? 'RE2 has no back-references' : `RE2 does not know ${part}`
}

function repetitionFault(part: string, before: Before): string | null {
  const [, least = '', most = ''] = COUNTED.exec(part) ?? []
  if (Math.max(Number(least), Number(most)) > MAX_REPETITIONS)
    return `RE2 repeats at most ${MAX_REPETITIONS} times`
  if (before === 'nothing') return 'there is nothing to repeat'
  const isLazy = before === 'repetition' && part === '?'
  return before === 'something' || isLazy ? null : 'a repetition cannot be repeated'
}
