/* Classes of bytes, and functions that find the end of a word, path, address or host name, sixteen bytes at a time. */
/** Classes of bytes in the scanner; bytes of the classes from `WORD` up are parts of words. */
export const SPACE: u32 = 0
const PUNCT: u32 = 1
/** Punctuation that may stand inside a word: `java.io`, `sshd-session`, `user@host`, `a/b`, `cpu#0`. */
export const JOINER: u32 = 2
/** Bit 2: part of a word; bit 1: not a hex digit; bit 0: a decimal digit. */
export const WORD: u32 = 4
export const DIGIT_BIT: u32 = 1
export const NOT_HEX_BIT: u32 = 2
/** Bit 3: part of a character beyond ASCII. */
export const HIGH_BIT: u32 = 8

const CLASS: usize = memory.data(256)
/**
 * Sixteen bytes are classified at once by two table look-ups, one by the lower and one by the upper half of each
 * byte: a byte belongs to the groups (a bit each) that both tables name.
 * Source: the vectorised classification of simdjson (Langdale, Lemire: "Parsing Gigabytes of JSON per Second").
 */
const BY_LOW: usize = memory.data(16)
const BY_HIGH: usize = memory.data(16)
const HALF: usize = memory.data(16)
const DIGITS: u32 = 0x80
const HEX_LETTERS: u32 = 0x40
/** 1 for a byte that ends a path or URL. */
const ENDS_PATH: usize = memory.data(256)
/** 1 for punctuation that belongs to the sentence when it is at the end of a path. */
const CLOSES_SENTENCE: usize = memory.data(256)

function mark(table: usize, chars: string): void {
  for (let i = 0; i < chars.length; i++) store<u8>(table + chars.charCodeAt(i), 1)
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

function groupOf(c: u32): u32 {
  if (c >= 128) return 1
  if (isDigit(c)) return DIGITS
  if (classOf(c) == WORD) return HEX_LETTERS
  if (c == 95) return 8
  if (c == 126) return 16
  return (c & 16) == 0 ? 2 : 4
}

/** Fills the tables; called before any other function of this file. */
export function initBytes(): void {
  memory.fill(HALF, 15, 16)
  memory.fill(ONES, 0xff, 16)
  for (let c: u32 = 0; c < 256; c++) {
    const cls = classOf(c)
    store<u8>(CLASS + c, cls)
    const group = cls < WORD ? 0 : groupOf(c)
    store<u8>(BY_LOW + (c & 15), load<u8>(BY_LOW + (c & 15)) | group)
    store<u8>(BY_HIGH + (c >> 4), load<u8>(BY_HIGH + (c >> 4)) | group)
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

/** Bytes of a vector. */
export const VECTOR: u32 = 16

/** Returns the groups of sixteen bytes; 0 for bytes that are not part of a word. */
@inline
export function groupsAt(at: usize): v128 {
  const bytes = v128.load(at)
  const half = v128.load(HALF)
  return v128.and(
    i8x16.swizzle(v128.load(BY_LOW), v128.and(bytes, half)),
    i8x16.swizzle(v128.load(BY_HIGH), v128.and(i16x8.shr_u(bytes, 4), half)),
  )
}

/** Sixteen bytes of ones, then sixteen zeros. */
const ONES: usize = memory.data(32)

/** Loads up to sixteen bytes followed by zeros, without a branch, which would often be mispredicted. */
@inline
export function firstBytes(at: usize, length: usize): v128 {
  return v128.and(v128.load(at), v128.load(ONES + 16 - length))
}

/** Counts the leading bytes that are part of a word. */
@inline
export function wordBytes(groups: v128, left: usize): u32 {
  const others: u32 = i8x16.bitmask(i8x16.eq(groups, i8x16.splat(0)))
  return min<u32>(ctz<u32>(others), <u32>min<usize>(left, VECTOR))
}

/** Returns a bit for each decimal digit. */
@inline
export function digitBits(groups: v128): u32 {
  return i8x16.bitmask(groups)
}

/** Returns a bit for each of a to f, in either case. */
@inline
export function hexLetterBits(groups: v128): u32 {
  return i8x16.bitmask(i16x8.shl(groups, 1))
}

/** Returns a bit for each byte beyond ASCII. */
@inline
export function highBits(at: usize): u32 {
  return i8x16.bitmask(v128.load(at))
}

/** Further results of `wordEnd`: the number of digits, and whether some byte is not hexadecimal or beyond ASCII. */
export let wordDigits: u32 = 0
export let wordNotHex = false
export let wordHigh = false

/** Returns the end of the word that begins at `from`. */
export function wordEnd(from: usize, end: usize): usize {
  let digits: u32 = 0
  let notHex: u32 = 0
  let high: u32 = 0
  let at = from
  for (;;) {
    const groups = groupsAt(at)
    const length = wordBytes(groups, end - at)
    const part = (<u32>1 << length) - 1
    const found = digitBits(groups) & part
    digits += popcnt<u32>(found)
    notHex |= part & ~(found | hexLetterBits(groups))
    high |= highBits(at) & part
    at += length
    if (length < VECTOR) break
  }
  wordDigits = digits
  wordNotHex = notHex != 0
  wordHigh = high != 0
  return at
}

/** Returns the end of a path or URL that begins at or before `from`. */
export function pathEnd(from: usize, end: usize): usize {
  let i = from
  while (i < end && load<u8>(ENDS_PATH + load<u8>(i)) == 0 && !isEscapedQuote(i, end)) i++
  while (i > from && load<u8>(CLOSES_SENTENCE + load<u8>(i - 1)) == 1) i--
  return i
}

/** Recognises `\\"`, which ends a quoted text within another one. */
@inline
function isEscapedQuote(i: usize, end: usize): bool {
  return load<u8>(i) == 92 && i + 1 < end && load<u8>(i + 1) == 34
}

/** Returns the end of 3 or more groups of up to 4 hex digits joined by colons (a MAC or IPv6 address), else 0. */
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
 * Returns where a run of letters and digits changes between digits and characters beyond ASCII, `to` when it does
 * not. Scripts without blanks write numbers next to words.
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

/** Returns the end of a short IPv6 address (`::1`, `::ffff:10.0.0.1`) that begins at `from`, else 0. */
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

/** Packs the lower-case letters of a label into a number of base 32; exact up to 10 letters. */
function packLabel(label: string): u64 {
  let packed: u64 = 0
  for (let i = 0; i < label.length; i++) packed = packed * 32 + (label.charCodeAt(i) & 31)
  return packed
}

/** Packs the bytes of a label as `packLabel` does; 0 for one that is longer than those of the table. */
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
 * Tells whether a dotted name is a host by its last label: a generic top-level domain, or a country's after `com`,
 * `co`, `ac` and the like. `java.io.IOException` and `access.log` are none.
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
