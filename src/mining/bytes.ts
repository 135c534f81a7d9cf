/** What a byte is to the scanner; the word classes are the ones from `WORD` up. */
export const SPACE = 0
const PUNCT = 1
/** punctuation that may stand inside a word: `java.io`, `sshd-session`, `user@host`, `a/b`, `cpu#0` */
export const JOINER = 2
/** bit 2: part of a word; bit 1: not a hex digit; bit 0: a decimal digit */
export const WORD = 4
export const DIGIT_BIT = 1
export const NOT_HEX_BIT = 2
/** bit 3: part of a character beyond ASCII */
export const HIGH_BIT = 8

const JOINERS = '.-/@#\\'

function classOf(code: number): number {
  if (code === 32 || (code >= 9 && code <= 13)) return SPACE
  if (code >= 128) return WORD | NOT_HEX_BIT | HIGH_BIT
  const text = String.fromCharCode(code)
  if (/\d/.test(text)) return WORD | DIGIT_BIT
  if (/[a-f]/i.test(text)) return WORD
  if (/[g-z_~]/i.test(text)) return WORD | NOT_HEX_BIT
  return JOINERS.includes(text) ? JOINER : PUNCT
}

/** class of every byte */
export const CLASS = Uint8Array.from({ length: 256 }, (_, code) => classOf(code))

/** the byte at `i`, 0 outside */
export const byteAt = (bytes: Uint8Array, i: number): number => bytes[i] ?? 0
/** the class of the byte at `i`, `SPACE` outside */
export const classAt = (bytes: Uint8Array, i: number): number => CLASS[bytes[i] ?? 0] ?? SPACE

/** 1 for a byte that ends a path or URL */
const ENDS_PATH = Uint8Array.from({ length: 256 }, (_, code) =>
  code <= 32 || code === 127 || '"\'`,;()[]{}<>|'.includes(String.fromCharCode(code)) ? 1 : 0,
)

/** 1 for punctuation that belongs to the sentence when it stands at the end of a path */
const CLOSES_SENTENCE = Uint8Array.from({ length: 256 }, (_, code) =>
  '.:!?='.includes(String.fromCharCode(code)) ? 1 : 0,
)

/** Index behind a path or URL that begins at or before `from`. */
export function pathEnd(bytes: Uint8Array, from: number, end: number): number {
  const ends = ENDS_PATH
  let i = from
  while (i < end && ends[bytes[i] ?? 0] === 0) i++
  while (i > from && CLOSES_SENTENCE[bytes[i - 1] ?? 0] === 1) i--
  return i
}

/**
 * Index behind `3` or more groups of up to 4 hex digits joined by colons (a MAC or IPv6 address)
 * that begin at `from`, else 0.
 */
export function colonHexEnd(bytes: Uint8Array, from: number, end: number): number {
  let colons = 0
  let digits = 0
  let width = 0
  let short = false
  let i = from
  for (; i < end; i++) {
    const kind = classAt(bytes, i)
    if (bytes[i] === 58) {
      colons++
      width = 0
      short ||= bytes[i - 1] === 58
      continue
    }
    if (kind < WORD) break
    if ((kind & NOT_HEX_BIT) !== 0 || ++width > 4) return 0
    digits += kind & DIGIT_BIT
  }
  const stop = bytes[i - 1] === 58 ? i - 1 : i
  return colons >= 3 || (short && digits > 0) ? stop : 0
}

/**
 * Where a run of letters and digits changes between digits and characters beyond ASCII, which
 * scripts without blanks do inside a sentence; `to` when it does not.
 */
export function scriptChange(bytes: Uint8Array, from: number, to: number): number {
  const both = DIGIT_BIT | HIGH_BIT
  for (let i = from + 1; i < to; i++) {
    const before = classAt(bytes, i - 1) & both
    const here = classAt(bytes, i) & both
    if ((before | here) === both && before !== here) return i
  }
  return to
}

/** Index behind a short IPv6 address (`::1`, `::ffff:10.0.0.1`) that begins at `from`, else 0. */
export function shortIpEnd(bytes: Uint8Array, from: number, end: number): number {
  let digits = 0
  let i = from + 2
  for (; i < end; i++) {
    const kind = classAt(bytes, i)
    if (isIpPoint(bytes[i])) continue
    if (kind < WORD) break
    if ((kind & NOT_HEX_BIT) !== 0) return 0
    digits += kind & DIGIT_BIT
  }
  while (isIpPoint(bytes[i - 1])) i--
  return digits > 0 ? i : 0
}

const isIpPoint = (c: number | undefined): boolean => c === 58 || c === 46

/** lower-case letters of a label as a number in base 32; exact up to 10 letters */
function packLabel(label: string): number {
  let packed = 0
  for (const letter of label) packed = packed * 32 + (letter.charCodeAt(0) & 31)
  return packed
}

const TOP_LEVEL = new Set(
  ['com', 'net', 'org', 'edu', 'gov', 'mil', 'arpa', 'local', 'internal', 'lan', 'corp']
    .concat(['intranet', 'home'])
    .map(packLabel),
)
const SECOND_LEVEL = new Set(
  ['com', 'net', 'org', 'edu', 'gov', 'co', 'ac', 'ne', 'or', 'go'].map(packLabel),
)

/**
 * Whether a dotted name is a host by its last label: a generic top-level domain, or a country's
 * behind `com`, `co`, `ac` and the like. `java.io.IOException` and `access.log` are not.
 */
export function isHostName(bytes: Uint8Array, from: number, to: number): boolean {
  const dot = labelStart(bytes, from, to) - 1
  if (dot <= from) return false
  if (TOP_LEVEL.has(packBytes(bytes, dot + 1, to))) return true
  if (to - dot !== 3) return false
  const second = labelStart(bytes, from, dot)
  return second > from && SECOND_LEVEL.has(packBytes(bytes, second, dot))
}

function labelStart(bytes: Uint8Array, from: number, to: number): number {
  let i = to
  while (i > from && bytes[i - 1] !== 46) i--
  return i
}

/** As `packLabel`; 0 for a label too long to be one of ours. */
function packBytes(bytes: Uint8Array, from: number, to: number): number {
  if (to - from > 10) return 0
  let packed = 0
  for (let i = from; i < to; i++) packed = packed * 32 + (byteAt(bytes, i) & 31)
  return packed
}
