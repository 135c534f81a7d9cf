/**
 * Searches for texts on which a regular expression takes more than linear time: a repeated part of a match, behind a
 * prefix of a match and before a character that makes it fail.
 */

/** A text is timed at the first length and, when that is slow, at the second. */
const LENGTHS = [3_000, 12_000] as const
/** Slower texts are timed again: linear time is microseconds, quadratic time is milliseconds. */
const SUSPECT_MS = 1
/** At four times the length linear time grows 4 times, quadratic time 16 times. */
const GROWTH = 8
const TRIES = 2
/** All repetitions must be slow, because others on the machine take caches and clock rate from one. */
const ROUNDS = 5
const MAX_WINDOW = 14
const MAX_SAMPLE = 40

/** @returns the repeated part with its prefix and suffix; null when none is found */
export function findAttack(regex: RegExp): string | null {
  const marks = marksOf(regex)
  const samples = new Set([sampleOf(regex, CANDIDATES), sampleOf(regex, [])])
  for (const { prefix, pump } of [...samples].flatMap((sample) => [...attacks(sample, marks)])) {
    for (const suffix of ['\0', '\n\0', '']) {
      const text = (length: number): string =>
        prefix + pump.repeat(Math.ceil(length / pump.length)) + suffix
      if (timeOf(regex, text(LENGTHS[0])) < SUSPECT_MS) continue
      const grows = Array.from({ length: ROUNDS }, () => {
        const [short = 0, long = 0] = LENGTHS.map((length) => least(regex, text(length)))
        return long > short * GROWTH
      })
      if (grows.includes(false)) continue
      return JSON.stringify([prefix, pump, suffix])
    }
  }
  return null
}

function* attacks(sample: string, marks: readonly string[]) {
  const prefixes = Array.from({ length: Math.min(sample.length, 24) + 1 }, (_, i) =>
    sample.slice(0, i),
  )
  const singles = [...new Set([...marks, ...sample.split(''), 'a', '0', ' ', '\t'])]
  for (const prefix of prefixes) for (const pump of singles) yield { prefix, pump }
  const pairs = marks.flatMap((a) => marks.filter((b) => a !== b).map((b) => a + b))
  for (const prefix of prefixes.slice(0, 4)) for (const pump of pairs) yield { prefix, pump }
  const windows = new Set<string>()
  for (let from = 0; from < sample.length; from++)
    for (let length = 2; length <= MAX_WINDOW && from + length <= sample.length; length++)
      windows.add(sample.slice(from, from + length))
  for (const window of windows)
    for (const more of ['', ...marks.slice(0, 4)]) yield { prefix: '', pump: window + more }
}

/** @returns CPU time in milliseconds, which does not count what a busy machine does meanwhile */
function timeOf(regex: RegExp, text: string): number {
  const started = process.cpuUsage()
  // All matches, as `replaceAll` finds them.
  for (let found = regex.exec(text); found !== null && regex.global; found = regex.exec(text))
    if (found[0] === '') regex.lastIndex++
  regex.lastIndex = 0
  const { user, system } = process.cpuUsage(started)
  return (user + system) / 1_000
}

const least = (regex: RegExp, text: string): number =>
  Math.min(...Array.from({ length: TRIES }, () => timeOf(regex, text)))

/** Punctuation that the expression's source matches literally. */
const marksOf = ({ source }: RegExp): readonly string[] =>
  [...new Set(source.replaceAll(/\\[a-zA-Z]|\{\d+,?\d*\}|\(\?<?\w*>?|[a-zA-Z0-9]/g, ''))]
    .filter((mark) => !'|^$?*+()'.includes(mark))
    .slice(0, 10)

const CANDIDATES = [
  ...'a0A-_.:/ "\'=,;@[](){}<>|!#%&*+?~^$`\\\t\n'.split(''),
  'Z',
  'é',
  '中',
  '\u{10000}',
  '\0',
  '\ud800',
]

/**
 * A text that the expression may match: the first alternative of each group, each repetition once, and of a class the
 * first candidate or else its first character.
 */
function sampleOf({ source, flags }: RegExp, candidates: readonly string[]): string {
  const tokens = source.match(TOKEN) ?? []
  const cut = flags.replaceAll(/[gy]/g, '')
  let text = ''
  /** The depth of the group that is skipped: a lookaround, or the further alternatives. */
  let skipped = 0
  let depth = 0
  for (const token of tokens) {
    if (token.startsWith('(')) {
      depth++
      if (skipped === 0 && /^\(\?(?:[=!]|<[=!])/.test(token)) skipped = depth
      continue
    }
    if (token === ')') {
      if (skipped === depth) skipped = 0
      depth--
      continue
    }
    if (token === '|') {
      if (skipped === 0) skipped = depth
      continue
    }
    if (skipped > 0 || token === '^' || token === '$' || /^\\[bB]$/.test(token)) continue
    const times = /^\{(\d+)/.exec(token)
    if (times !== null) text += (text.at(-1) ?? '').repeat(Math.max(0, Number(times[1]) - 1))
    else if (!/^[*+?]/.test(token)) text += charOf(token, cut, candidates)
    if (text.length > MAX_SAMPLE) break
  }
  return text.slice(0, MAX_SAMPLE)
}

const TOKEN =
  /\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\.|\[(?:\\.|[^\]\\])*\]|\(\?<[=!]|\(\?<\w+>|\(\?[:=!]|\(|\)|\{\d+,?\d*\}\??|[*+?]\??|[^]/gu

function charOf(atom: string, flags: string, candidates: readonly string[]): string {
  try {
    const regex = new RegExp(`^${atom}$`, flags)
    return (
      [...candidates, ...atom.split(''), ...CANDIDATES].find((char) => regex.test(char)) ?? atom
    )
  } catch {
    return atom
  }
}
