/** What a byte is to the scanner; the word classes are the ones from `WORD` up. */
export const SPACE: u32 = 0
const PUNCT: u32 = 1
/** punctuation that may stand inside a word: `java.io`, `sshd-session`, `user@host`, `a/b`, `cpu#0` */
export const JOINER: u32 = 2
/** bit 2: part of a word; bit 1: not a hex digit; bit 0: a decimal digit */
export const WORD: u32 = 4
export const DIGIT_BIT: u32 = 1
export const NOT_HEX_BIT: u32 = 2
/** bit 3: part of a character beyond ASCII */
export const HIGH_BIT: u32 = 8

/** class of every byte */
const CLASS: usize = memory.data(256)
/** 1 for a byte that ends a path or URL */
const ENDS_PATH: usize = memory.data(256)
/** 1 for punctuation that belongs to the sentence when it stands at the end of a path */
const CLOSES_SENTENCE: usize = memory.data(256)

function mark(table: usize, letters: string): void {
  for (let i = 0; i < letters.length; i++) store<u8>(table + letters.charCodeAt(i), 1)
}

function classOf(c: u32): u32 {
  if (c == 32 || (c >= 9 && c <= 13)) return SPACE
  if (c >= 128) return WORD | NOT_HEX_BIT | HIGH_BIT
  if (isDigit(c)) return WORD | DIGIT_BIT
  const letter = c | 32
  if (letter >= 97 && letter <= 102 && c >= 65) return WORD
  if ((letter >= 103 && letter <= 122 && c >= 65) || c == 95 || c == 126) return WORD | NOT_HEX_BIT
  return c == 46 || c == 45 || c == 47 || c == 64 || c == 35 || c == 92 ? JOINER : PUNCT
}

/** Fills the tables; before anything else. */
export function initBytes(): void {
  for (let c: u32 = 0; c < 256; c++) {
    store<u8>(CLASS + c, classOf(c))
    if (c <= 32 || c == 127) store<u8>(ENDS_PATH + c, 1)
  }
  mark(ENDS_PATH, '"\'`,;()[]{}<>|')
  mark(CLOSES_SENTENCE, '.:!?=')
  initHostNames()
}

@inline
export function isDigit(c: u32): bool {
  return c - 48 < 10
}

@inline
export function classAt(at: usize): u32 {
  return load<u8>(CLASS + load<u8>(at))
}

@inline
export function classByte(c: u32): u32 {
  return load<u8>(CLASS + c)
}

/** Behind a path or URL that begins at or before `from`. */
export function pathEnd(from: usize, end: usize): usize {
  let i = from
  while (i < end && load<u8>(ENDS_PATH + load<u8>(i)) == 0) i++
  while (i > from && load<u8>(CLOSES_SENTENCE + load<u8>(i - 1)) == 1) i--
  return i
}

/**
 * Behind `3` or more groups of up to 4 hex digits joined by colons (a MAC or IPv6 address) that begin at
 * `from`, else 0.
 */
export function colonHexEnd(from: usize, end: usize): usize {
  let colons = 0
  let digits: u32 = 0
  let width = 0
  let short = false
  let i = from
  for (; i < end; i++) {
    if (load<u8>(i) == 58) {
      colons++
      width = 0
      if (load<u8>(i - 1) == 58) short = true
      continue
    }
    const kind = classAt(i)
    if (kind < WORD) break
    if ((kind & NOT_HEX_BIT) != 0 || ++width > 4) return 0
    digits += kind & DIGIT_BIT
  }
  const stop = load<u8>(i - 1) == 58 ? i - 1 : i
  return colons >= 3 || (short && digits > 0) ? stop : 0
}

/**
 * Where a run of letters and digits changes between digits and characters beyond ASCII, which scripts
 * without blanks do inside a sentence; `to` when it does not.
 */
export function scriptChange(from: usize, to: usize): usize {
  const both = DIGIT_BIT | HIGH_BIT
  for (let i = from + 1; i < to; i++) {
    const before = classAt(i - 1) & both
    const here = classAt(i) & both
    if ((before | here) == both && before != here) return i
  }
  return to
}

@inline
function isIpPoint(c: u32): bool {
  return c == 58 || c == 46
}

/** Behind a short IPv6 address (`::1`, `::ffff:10.0.0.1`) that begins at `from`, else 0. */
export function shortIpEnd(from: usize, end: usize): usize {
  let digits: u32 = 0
  let i = from + 2
  for (; i < end; i++) {
    if (isIpPoint(load<u8>(i))) continue
    const kind = classAt(i)
    if (kind < WORD) break
    if ((kind & NOT_HEX_BIT) != 0) return 0
    digits += kind & DIGIT_BIT
  }
  while (isIpPoint(load<u8>(i - 1))) i--
  return digits > 0 ? i : 0
}

const MAX_NAMES = 16
const TOP_LEVEL: usize = memory.data(MAX_NAMES * 8)
const SECOND_LEVEL: usize = memory.data(MAX_NAMES * 8)

function initHostNames(): void {
  const top = 'com net org edu gov mil arpa local internal lan corp intranet home'.split(' ')
  for (let i = 0; i < top.length; i++) store<u64>(TOP_LEVEL + i * 8, packLabel(top[i]))
  const second = 'com net org edu gov co ac ne or go'.split(' ')
  for (let i = 0; i < second.length; i++) store<u64>(SECOND_LEVEL + i * 8, packLabel(second[i]))
}

/** lower-case letters of a label as a number in base 32; exact up to 10 letters */
function packLabel(label: string): u64 {
  let packed: u64 = 0
  for (let i = 0; i < label.length; i++) packed = packed * 32 + (label.charCodeAt(i) & 31)
  return packed
}

/** As `packLabel`; 0 for a label too long to be one of ours. */
function packBytes(from: usize, to: usize): u64 {
  if (to - from > 10) return 0
  let packed: u64 = 0
  for (let i = from; i < to; i++) packed = packed * 32 + (load<u8>(i) & 31)
  return packed
}

function holds(table: usize, packed: u64): bool {
  if (packed == 0) return false
  for (let i = 0; i < MAX_NAMES; i++) if (load<u64>(table + i * 8) == packed) return true
  return false
}

/**
 * Whether a dotted name is a host by its last label: a generic top-level domain, or a country's behind
 * `com`, `co`, `ac` and the like. `java.io.IOException` and `access.log` are not.
 */
export function isHostName(from: usize, to: usize): bool {
  const dot = labelStart(from, to) - 1
  if (dot <= from) return false
  if (holds(TOP_LEVEL, packBytes(dot + 1, to))) return true
  if (to - dot != 3) return false
  const second = labelStart(from, dot)
  return second > from && holds(SECOND_LEVEL, packBytes(second, dot))
}

function labelStart(from: usize, to: usize): usize {
  let i = to
  while (i > from && load<u8>(i - 1) != 46) i--
  return i
}
