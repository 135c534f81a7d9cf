import type { Severity } from './event.js'

/** Level spellings of at least two letters, in lower case; safe to search at the head of a text. */
export const LEVEL_WORDS = {
  DEBUG: [
    'debug',
    'dbg',
    'dbug',
    'trace',
    'trc',
    'verbose',
    'vrb',
    'silly',
    'finest',
    'finer',
    'fine',
    'config',
    'all',
  ],
  INFO: [
    'info',
    'inf',
    'information',
    'informational',
    'notice',
    'note',
    'http',
    'log',
    'success',
    'ok',
    'audit',
    'default',
  ],
  WARNING: ['warning', 'warn', 'wrn', 'caution'],
  ERROR: ['error', 'err', 'eror', 'severe', 'fail', 'failed', 'failure', 'exception'],
  CRITICAL: ['critical', 'crit', 'fatal', 'ftl', 'panic', 'dpanic', 'alert', 'emerg', 'emergency'],
} as const satisfies Record<Severity, readonly string[]>

/** Single letters (and MongoDB's D1 to D5) mean a level only in a level field or a klog prefix, never in a text. */
const LEVEL_LETTERS = {
  DEBUG: ['d', 't', 'v', 'd1', 'd2', 'd3', 'd4', 'd5'],
  INFO: ['i', 'n'],
  WARNING: ['w'],
  ERROR: ['e'],
  CRITICAL: ['c', 'f', 'a'],
} as const satisfies Record<Severity, readonly string[]>

/** Spellings without more information than the severity; any other is stored beside it. */
const PLAIN_SPELLINGS: ReadonlySet<string> = new Set(
  (
    'debug dbg dbug d info inf information informational i warning warn wrn w ' +
    'error err eror e critical crit c'
  )
    .split(' ')
    .flatMap(writings),
)

type Step = readonly [from: number, severity: Severity]

/** A step reaches from its number to the next step; `last` is the greatest number of the scale. */
interface Scale {
  readonly steps: readonly Step[]
  readonly last: number
}

const NUMBER_SCALES = {
  syslog: {
    steps: [
      [0, 'CRITICAL'],
      [3, 'ERROR'],
      [4, 'WARNING'],
      [5, 'INFO'],
      [7, 'DEBUG'],
    ],
    last: 7,
  },
  otel: {
    steps: [
      [0, 'INFO'],
      [1, 'DEBUG'],
      [9, 'INFO'],
      [13, 'WARNING'],
      [17, 'ERROR'],
      [21, 'CRITICAL'],
    ],
    last: 24,
  },
  /** Custom levels between multiples of ten (35, 45) belong to the multiple below. */
  pino: {
    steps: [
      [1, 'DEBUG'],
      [30, 'INFO'],
      [40, 'WARNING'],
      [50, 'ERROR'],
      [60, 'CRITICAL'],
    ],
    last: 99,
  },
  /** log4js has the same numbers. OFF (above FATAL) is never logged. */
  logback: {
    steps: [
      [1000, 'DEBUG'],
      [20_000, 'INFO'],
      [30_000, 'WARNING'],
      [40_000, 'ERROR'],
      [50_000, 'CRITICAL'],
    ],
    last: 99_999,
  },
  python: {
    steps: [
      [0, 'INFO'],
      [1, 'DEBUG'],
      [20, 'INFO'],
      [30, 'WARNING'],
      [40, 'ERROR'],
      [50, 'CRITICAL'],
    ],
    last: 99,
  },
  windows: {
    steps: [
      [0, 'INFO'],
      [1, 'CRITICAL'],
      [2, 'ERROR'],
      [3, 'WARNING'],
      [4, 'INFO'],
      [5, 'DEBUG'],
    ],
    last: 5,
  },
} as const satisfies Record<string, Scale>

export type SeverityScale = keyof typeof NUMBER_SCALES

const BY_SPELLING: ReadonlyMap<string, Severity> = indexSpellings()

/**
 * Parses a level field in any common spelling. Case, surrounding blanks and `[]<>:`, the colours of
 * terminals, the digit of an OpenTelemetry short name (`WARN2`), and the offset of a level of Go's
 * slog (`ERROR+2`), are ignored.
 *
 * @returns null for an empty, unknown or numeric text
 */
export function parseSeverity(text: string): Severity | null {
  const known = BY_SPELLING.get(text)
  if (known !== undefined) return known
  // A text that is longer than any spelling with its brackets is a message in the wrong field.
  if (text.length > 32) return null
  const bare = bareSpelling(text)
  return BY_SPELLING.get(bare) ?? BY_SPELLING.get(bare.replace(OFFSET, '')) ?? null
}

/**
 * @param value any number; fractions and numbers outside the scale name no level
 * @returns null when the scale does not know the number
 */
export function severityOfNumber(value: number, scale: SeverityScale): Severity | null {
  const { steps, last }: Scale = NUMBER_SCALES[scale]
  if (!Number.isInteger(value) || value > last) return null
  let found: Severity | null = null
  for (const [from, severity] of steps) {
    if (value < from) break
    found = severity
  }
  return found
}

/**
 * Chooses the scale of a number in a field that several loggers share (`level`).
 * 0–7 is syslog, 8–24 OpenTelemetry but for 10 and 20, up to 99 pino and bunyan, from 1000 logback and log4js.
 */
export function guessScale(value: number): SeverityScale {
  if (value <= 7) return 'syslog'
  if (value <= 24 && value % 10 !== 0) return 'otel'
  return value <= 99 ? 'pino' : 'logback'
}

/** Whether `text` is more precise than the five severities (`notice`, `fatal`, `trace`). */
export function saysMoreThanSeverity(text: string): boolean {
  if (PLAIN_SPELLINGS.has(text)) return false
  return text.length > 32 || !PLAIN_SPELLINGS.has(bareSpelling(text))
}

/** winston's `colorize()` stands before `json()` in many programs. */
const COLOUR = new RegExp(String.raw`\u001b\[[\d;]{0,16}m`, 'g')

export const withoutColours = (text: string): string =>
  text.includes('\u001b') ? text.replace(COLOUR, '') : text

const OFFSET = /(?<=^(?:debug|info|warn|error))[+-]\d{1,3}$/

const bareSpelling = (text: string): string =>
  withoutColours(text)
    .toLowerCase()
    .replace(/^[\s[\]<>:()]{1,32}/, '')
    .replace(/[\s[\]<>:()]{1,32}$/, '')
    .replace(/(?<=^(?:trace|debug|info|warn|error|fatal))[1-4]$/, '')

function indexSpellings(): Map<string, Severity> {
  const index = new Map<string, Severity>()
  for (const severity of ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const) {
    for (const spelling of [...LEVEL_WORDS[severity], ...LEVEL_LETTERS[severity]]) {
      for (const writing of writings(spelling)) index.set(writing, severity)
    }
  }
  return index
}

/** The three ways in which loggers write a word; a search for them needs no change of case. */
function writings(word: string): readonly string[] {
  return [word, word.toUpperCase(), word.charAt(0).toUpperCase() + word.slice(1)]
}
