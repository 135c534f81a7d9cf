import { isDigit } from './bytes'
import { newBytes, reserve } from './memory'

/** Members of a record, in the order of their bits. */
export const TIMESTAMP: u32 = 0
export const SOURCE: u32 = 1
export const SEVERITY: u32 = 2
export const MESSAGE: u32 = 3
export const HOST: u32 = 4
export const ENVIRONMENT: u32 = 5
export const TYPE: u32 = 6
export const TRACE: u32 = 7
export const SPAN: u32 = 8
export const SUMMARY: u32 = 9
export const DEDUP: u32 = 10
export const TAGS: u32 = 11
const MEMBERS: u32 = 12
/** the timestamp is a number */
export const NUMERIC_TIME: u32 = 1 << 30

/** name's first four letters, the others with the closing quote, their mask, all letters with the quote */
const HEADS: usize = memory.data(12 * 4)
const RESTS: usize = memory.data(12 * 8)
const MASKS: usize = memory.data(12 * 8)
const SIZES: usize = memory.data(12 * 4)

const starts: usize = memory.data(12 * 4)
const ends: usize = memory.data(12 * 4)

/** kinds of bytes of the message */
export const HIGH: u32 = 1
export const ESCAPE: u32 = 2
export let messageKinds: u32 = 0
/** behind the line read last and its line end */
export let lineEnd: usize = 0

const unescaped = newBytes(65_536)

export function initLine(): void {
  memory.fill(QUOTES, 0x22, 16)
  memory.fill(QUOTES + 16, 0x5c, 16)
  memory.fill(QUOTES + 32, 0x20, 16)
  const names =
    'timestamp source severity message host environment type trace_id span_id summary dedup_key tags'.split(' ')
  for (let i: u32 = 0; i < MEMBERS; i++) {
    const name = names[i] + '"'
    const size = <u32>name.length
    let head: u32 = 0
    let rest: u64 = 0
    for (let k: u32 = 0; k < 4; k++) head |= name.charCodeAt(k) << (k * 8)
    for (let k: u32 = 4; k < size; k++) rest |= (<u64>name.charCodeAt(k)) << ((k - 4) * 8)
    store<u32>(HEADS + i * 4, head)
    store<u64>(RESTS + i * 8, rest)
    store<u64>(MASKS + i * 8, size == 12 ? u64.MAX_VALUE : (<u64>1 << ((size - 4) * 8)) - 1)
    store<u32>(SIZES + i * 4, size)
  }
}

@inline
export function startOf(member: u32): usize {
  return load<u32>(starts + member * 4)
}

@inline
export function endOf(member: u32): usize {
  return load<u32>(ends + member * 4)
}

/** sixteen quotes, backslashes and blanks */
const QUOTES: usize = memory.data(48)

/** The first quote, backslash, control character or byte beyond ASCII at or behind `at`. */
@inline
function special(at: usize, end: usize): usize {
  // from memory: the engine makes a constant anew wherever it is used
  const quote = v128.load(QUOTES)
  const backslash = v128.load(QUOTES, 16)
  const space = v128.load(QUOTES, 32)
  let i = at
  while (i < end) {
    const bytes = v128.load(i)
    // as signed numbers, bytes beyond ASCII are below zero
    const found = v128.or(
      v128.or(i8x16.eq(bytes, quote), i8x16.eq(bytes, backslash)),
      i8x16.lt_s(bytes, space),
    )
    const bits = i8x16.bitmask(found)
    if (bits != 0) return i + ctz<u32>(bits)
    i += 16
  }
  return end
}

/** of each member, the one that stood behind it last: lines of one sender have them in one order */
const followers: usize = memory.data(13)

/** @param before the member before it, `MEMBERS` for the first */
function memberAt(at: usize, before: u32): u32 {
  const head = load<u32>(at)
  const rest = load<u64>(at, 4)
  const likely = <u32>load<u8>(followers + before)
  if (
    load<u32>(HEADS + likely * 4) == head &&
    (rest & load<u64>(MASKS + likely * 8)) == load<u64>(RESTS + likely * 8)
  )
    return likely
  for (let i: u32 = 0; i < MEMBERS; i++) {
    if (load<u32>(HEADS + i * 4) != head) continue
    if ((rest & load<u64>(MASKS + i * 8)) != load<u64>(RESTS + i * 8)) return MEMBERS
    store<u8>(followers + before, i)
    return i
  }
  return MEMBERS
}

/**
 * Finds the members of the JSON object on the line at `from`: each at most once, under its canonical name,
 * a text in ASCII without escapes (the message may have both), the time possibly a number, the tags an
 * object. Anything else is for a parser.
 *
 * @param end of the body; 16 bytes behind it are readable
 * @returns a bit for each member, 0 when the line must be parsed
 */
export function readMembers(from: usize, end: usize): u32 {
  let at = from
  if (load<u8>(at++) != 0x7b) return 0
  let seen: u32 = 0
  let member = MEMBERS
  for (;;) {
    while (load<u8>(at) == 32) at++
    if (load<u8>(at++) != 0x22) return 0
    member = memberAt(at, member)
    if (member == MEMBERS || (seen & (1 << member)) != 0) return 0
    seen |= 1 << member
    at += load<u32>(SIZES + member * 4)
    while (load<u8>(at) == 32) at++
    if (load<u8>(at++) != 0x3a) return 0
    while (load<u8>(at) == 32) at++
    if (load<u8>(at) == 0x22 && member != TAGS) {
      at++
      store<u32>(starts + member * 4, <u32>at)
      let kinds: u32 = 0
      // `.123Z"`: what is no time is found out where it is read, and then the line is left alone
      if (member == TIMESTAMP && load<u16>(at, 23) == 0x225a && at + 24 < end) at += 24
      else {
        for (;;) {
          at = special(at, end)
          if (at >= end) return 0
          const c = load<u8>(at)
          if (c == 0x22) break
          if (c == 0x5c) {
            kinds |= ESCAPE
            at += 2
          } else if (c >= 0x80) {
            kinds |= HIGH
            at++
          } else return 0
        }
      }
      if (member == MESSAGE) messageKinds = kinds
      else if (kinds != 0) return 0
      store<u32>(ends + member * 4, <u32>at)
      at++
    } else {
      const stop = member == TAGS ? flatObjectEnd(at, end) : member == TIMESTAMP ? digitsEnd(at) : 0
      if (stop == 0) return 0
      store<u32>(starts + member * 4, <u32>at)
      store<u32>(ends + member * 4, <u32>stop)
      at = stop
      if (member == TIMESTAMP) seen |= NUMERIC_TIME
    }
    while (load<u8>(at) == 32) at++
    const mark = load<u8>(at++)
    if (mark == 0x7d) break
    if (mark != 0x2c) return 0
  }
  while (load<u8>(at) == 32 || load<u8>(at) == 13) at++
  if (at > end || (at < end && load<u8>(at) != 10)) return 0
  lineEnd = at < end ? at + 1 : end
  return seen
}

/** 1 to 15 digits that are a JSON number. @returns 0 for anything else */
function digitsEnd(from: usize): usize {
  let at = from
  while (at - from < 16 && isDigit(load<u8>(at))) at++
  const digits = at - from
  const next = <u32>load<u8>(at)
  const goesOn = next == 0x2e || (next | 0x20) == 0x65
  const leads = digits > 1 && load<u8>(from) == 0x30
  return digits == 0 || digits > 15 || goesOn || leads ? 0 : at
}

/** A record of more tags than this is for the parser. */
const MAX_FLAT_TAGS: u32 = 16
const MAX_FLAT_TEXT: usize = 256
const tagStarts: usize = memory.data(16 * 4)
const tagEnds: usize = memory.data(16 * 4)
const tagValueEnds: usize = memory.data(16 * 4)

/**
 * Behind an object that is written as `JSON.stringify` would write it again: no blanks, no escapes, ASCII,
 * names that begin with a letter and differ, values that are short texts, plain integers or booleans.
 * @returns 0 for any other, which a parser must look at
 */
function flatObjectEnd(from: usize, end: usize): usize {
  if (load<u8>(from) != 0x7b) return 0
  let at = from + 1
  for (let count: u32 = 0; count < MAX_FLAT_TAGS; count++) {
    if (load<u8>(at) != 0x22) return 0
    const letter = <u32>load<u8>(at + 1) | 32
    if (letter < 97 || letter > 122) return 0
    const close = textEnd(at + 1, end)
    if (close == 0 || isRepeated(at + 1, close, count)) return 0
    store<u32>(tagStarts + count * 4, <u32>(at + 1))
    store<u32>(tagEnds + count * 4, <u32>close)
    at = close + 1
    if (load<u8>(at++) != 0x3a) return 0
    at = flatValueEnd(at, end)
    if (at == 0) return 0
    store<u32>(tagValueEnds + count * 4, <u32>at)
    const mark = load<u8>(at++)
    if (mark == 0x7d) return at
    if (mark != 0x2c) return 0
  }
  return 0
}

/** Looks at tags by themselves. @returns how many there are, 0 when they are none that `readMembers` takes */
export function flatTags(from: usize, end: usize): u32 {
  if (flatObjectEnd(from, end) != end) return 0
  let count: u32 = 1
  while (<usize>load<u32>(tagValueEnds + (count - 1) * 4) + 1 != end) count++
  return count
}

/** Where a tag that was looked at begins: its name. */
@inline
export function tagStart(no: u32): usize {
  return load<u32>(tagStarts + no * 4)
}

/** Behind the value of a tag. */
@inline
export function tagEnd(no: u32): usize {
  return load<u32>(tagValueEnds + no * 4)
}

function isRepeated(start: usize, close: usize, count: u32): bool {
  for (let i: u32 = 0; i < count; i++) {
    const other = <usize>load<u32>(tagStarts + i * 4)
    if (<usize>load<u32>(tagEnds + i * 4) - other != close - start) continue
    if (memory.compare(other, start, close - start) == 0) return true
  }
  return false
}

function flatValueEnd(at: usize, end: usize): usize {
  const c = <u32>load<u8>(at)
  if (c == 0x22) {
    const close = textEnd(at + 1, end)
    return close == 0 ? 0 : close + 1
  }
  if (isDigit(c)) return digitsEnd(at)
  // true, fals
  if (load<u32>(at) == 0x65757274) return at + 4
  return load<u32>(at) == 0x736c6166 && load<u8>(at + 4) == 0x65 ? at + 5 : 0
}

/** Where a short text's closing quote is, 0 when it is long or not plain. */
function textEnd(from: usize, end: usize): usize {
  const at = special(from, end)
  return at < end && load<u8>(at) == 0x22 && at - from <= MAX_FLAT_TEXT ? at : 0
}

/** The message without its escapes, in memory of its own until the next line. */
export let textStart: usize = 0

/**
 * Replaces the escapes of a text.
 * @returns the length at `textStart`, -1 for an escape that is no JSON or that stands for a letter beyond ASCII
 */
export function unescape(start: usize, end: usize): i32 {
  unescaped.length = 0
  reserve(unescaped, end - start)
  const out = unescaped.ptr
  let length: i32 = 0
  let at = start
  while (at < end) {
    let c: u32 = load<u8>(at++)
    if (c == 0x5c) {
      const mark = <u32>load<u8>(at++)
      if (mark == 0x75) {
        if (at + 4 > end) return -1
        c = asciiEscape(at)
        at += 4
      } else c = escaped(mark)
      if (c > 127) return -1
    }
    store<u8>(out + length, c)
    length++
  }
  textStart = out
  return length
}

function escaped(mark: u32): u32 {
  switch (mark) {
    case 0x22:
    case 0x2f:
    case 0x5c:
      return mark
    case 0x62:
      return 8
    case 0x66:
      return 12
    case 0x6e:
      return 10
    case 0x72:
      return 13
    case 0x74:
      return 9
    default:
      return 255
  }
}

/** `001b`: a letter of ASCII by its number. */
function asciiEscape(at: usize): u32 {
  if (load<u16>(at) != 0x3030) return 255
  const high = <u32>load<u8>(at + 2) - 48
  const low = hexDigit(load<u8>(at + 3))
  return high < 8 && low < 16 ? high * 16 + low : 255
}

function hexDigit(c: u32): u32 {
  if (isDigit(c)) return c - 48
  const letter = (c | 32) - 97
  return letter < 6 ? letter + 10 : 16
}
