/*
 * Reads one line of NDJSON without parsing it as a whole: `readMembers` finds the values of the
 * known members, sixteen bytes at a time, and rejects a line that the JSON parser may read
 * differently.
 */
import * as layout from '../layout'
import { isDigit } from './bytes'
import { copyOver, newBytes, reserve } from './memory'
import { intern, nameState } from './words'

/** Whether a member of this name is always a tag: 1 no, 2 yes. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'checkName')
declare function checkName(word: u32): u32

/** Members of a record, in the order of their bits. */
export const TIMESTAMP: u32 = 0
export const SOURCE: u32 = layout.MEMBER_SOURCE
export const SEVERITY: u32 = layout.MEMBER_SEVERITY
export const MESSAGE: u32 = 3
export const HOST: u32 = layout.MEMBER_HOST
export const ENVIRONMENT: u32 = layout.MEMBER_ENVIRONMENT
export const TYPE: u32 = 6
export const TRACE: u32 = 7
export const SPAN: u32 = 8
export const SUMMARY: u32 = 9
export const DEDUP: u32 = 10
export const TAGS: u32 = layout.MEMBER_TAGS
const MEMBERS: u32 = 12
/** The timestamp is a number. */
export const NUMERIC_TIME: u32 = 1 << 30

/** The members by name: first the canonical names, in the order of their bits, then others that loggers have for them. */
const NAMES: u32 = 17
const TIME_NAME: u32 = 16
/** By name: its first four bytes, the others with the closing quote, their mask, the bytes of name and quote, the member. */
const HEADS: usize = memory.data(17 * 4)
const RESTS: usize = memory.data(17 * 8)
const MASKS: usize = memory.data(17 * 8)
const SIZES: usize = memory.data(17 * 4)
const MEMBER_OF: usize = memory.data<u8>([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 2, 3, 4, 0])

const starts: usize = memory.data(12 * 4)
const ends: usize = memory.data(12 * 4)

/** Bits of the kinds of bytes in the message. */
export const HIGH: u32 = 1
export const ESCAPE: u32 = 2
export let messageKinds: u32 = 0
/** Where the next line begins. */
export let lineEnd: usize = 0

const unescaped = newBytes(65_536)

export function initLine(): void {
  memory.fill(QUOTES, 0x22, 16)
  memory.fill(QUOTES + 16, 0x5c, 16)
  memory.fill(QUOTES + 32, 0x20, 16)
  const names =
    'timestamp source severity message host environment type trace_id span_id summary dedup_key tags @timestamp level msg hostname time'.split(' ')
  for (let i: u32 = 0; i < NAMES; i++) {
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

/**
 * Sets the text of a member that was found elsewhere.
 *
 * @returns false for tags that are not flat
 */
export function setMember(member: u32, start: usize, end: usize): bool {
  store<u32>(starts + member * 4, <u32>start)
  store<u32>(ends + member * 4, <u32>end)
  if (member != TAGS) return true
  forgetFlatTags()
  return flatObjectEnd(start, end) == end
}

/** Must be called before a record that is not a line. */
@inline
export function forgetNames(): void {
  isMapped = false
}

/** Whether a text is ASCII and needs no escapes in JSON. */
export function isPlain(start: usize, end: usize): bool {
  return special(start, end) >= end
}

/** Bits of the bytes of a text. */
export const CONTROL: u32 = 2

/** Returns `HIGH` for a text with bytes beyond ASCII, and `CONTROL` for one with control characters. */
export function kindsOf(start: usize, end: usize): u32 {
  const space = v128.load(QUOTES, 32)
  let high: u32 = 0
  let control: u32 = 0
  for (let at = start; at < end; at += 16) {
    const bytes = v128.load(at)
    const left = end - at
    const part: u32 = left < 16 ? (<u32>1 << <u32>left) - 1 : 0xffff
    high |= i8x16.bitmask(bytes) & part
    control |= i8x16.bitmask(i8x16.lt_u(bytes, space)) & part
  }
  return (high == 0 ? 0 : HIGH) | (control == 0 ? 0 : CONTROL)
}

/** Sixteen quotes, sixteen backslashes, sixteen blanks. */
const QUOTES: usize = memory.data(48)

/** Returns the first quote, backslash, control character or byte beyond ASCII from `at` on. */
@inline
function special(at: usize, end: usize): usize {
  // The vectors are loaded from memory, because the engine would rebuild a constant wherever it is used.
  const quote = v128.load(QUOTES)
  const backslash = v128.load(QUOTES, 16)
  const space = v128.load(QUOTES, 32)
  let i = at
  while (i < end) {
    const bytes = v128.load(i)
    // As signed numbers, bytes beyond ASCII are negative.
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

/** By name: the name that followed it last, because lines of one sender have their members in the same order. */
const followers: usize = memory.data(18)

/** Returns the number of the name at `at`, `NAMES` for another one. @param before the name before, `NAMES` for the first */
function nameAt(at: usize, before: u32): u32 {
  const head = load<u32>(at)
  const rest = load<u64>(at, 4)
  const likely = <u32>load<u8>(followers + before)
  if (
    load<u32>(HEADS + likely * 4) == head &&
    (rest & load<u64>(MASKS + likely * 8)) == load<u64>(RESTS + likely * 8)
  )
    return likely
  for (let i: u32 = 0; i < NAMES; i++) {
    if (load<u32>(HEADS + i * 4) != head) continue
    if ((rest & load<u64>(MASKS + i * 8)) != load<u64>(RESTS + i * 8)) continue
    store<u8>(followers + before, i)
    return i
  }
  return NAMES
}

/** Whether the last line has other names than the canonical ones, which changes the meaning of its level and tags. */
export let isMapped = false
/** The members that a line with other names may have; further members are tags. */
const MAPPED: u32 =
  NUMERIC_TIME |
  (1 << TIMESTAMP) |
  (1 << SOURCE) |
  (1 << SEVERITY) |
  (1 << MESSAGE) |
  (1 << HOST) |
  (1 << ENVIRONMENT) |
  (1 << TAGS)

/**
 * Finds the members of the JSON object on the line at `from`: each at most once, a text in ASCII
 * without escapes (the message may have both), the time and the level possibly a number, the tags
 * an object. Other members are tags. Any other line must be parsed.
 *
 * @param end of the body; the 16 bytes after it are readable
 * @returns a bit for each member, 0 when the line must be parsed
 */
export function readMembers(from: usize, end: usize): u32 {
  flatFrom = 0
  isMapped = false
  others.length = 0
  let at = from
  if (load<u8>(at++) != 0x7b) return 0
  let seen: u32 = 0
  let name = NAMES
  let tags: u32 = 0
  for (;;) {
    while (load<u8>(at) == 32) at++
    if (load<u8>(at++) != 0x22) return 0
    name = nameAt(at, name)
    if (name >= MEMBERS) isMapped = true
    if (name == NAMES) {
      // Each name is a word; a line may have a million.
      if (++tags > MAX_FLAT_TAGS) return 0
      at = otherMember(at, end)
      if (at == 0) return 0
    } else {
      const member = <u32>load<u8>(MEMBER_OF + name)
      if ((seen & (1 << member)) != 0) return 0
      seen |= 1 << member
      at += load<u32>(SIZES + name * 4)
      while (load<u8>(at) == 32) at++
      if (load<u8>(at++) != 0x3a) return 0
      while (load<u8>(at) == 32) at++
      if (load<u8>(at) == 0x22 && member != TAGS) {
        at++
        store<u32>(starts + member * 4, <u32>at)
        let kinds: u32 = 0
        // Skips a probable time that ends in `.123Z"`; if it is not one, the line is parsed later.
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
        const stop = valueEnd(member, name, at, end)
        if (stop == 0) return 0
        store<u32>(starts + member * 4, <u32>at)
        store<u32>(ends + member * 4, <u32>stop)
        at = stop
        if (member == TIMESTAMP) seen |= NUMERIC_TIME
      }
    }
    while (load<u8>(at) == 32) at++
    const separator = load<u8>(at++)
    if (separator == 0x7d) break
    if (separator != 0x2c) return 0
  }
  while (load<u8>(at) == 32 || load<u8>(at) == 13) at++
  if (at > end || (at < end && load<u8>(at) != 10)) return 0
  lineEnd = at < end ? at + 1 : end
  if (!isMapped) return (seen & (1 << TAGS)) != 0 && hasException() ? 0 : seen
  return (seen & ~MAPPED) != 0 ? 0 : withOthers(seen)
}

/** Returns the offset after a number, true, false or null; 0 for a value that needs the JSON parser. */
function valueEnd(member: u32, name: u32, at: usize, end: usize): usize {
  if (member == TAGS) return flatObjectEnd(at, end)
  if (member == TIMESTAMP) {
    const stop = digitsEnd(at)
    // A smaller number under this name is a duration.
    return name == TIME_NAME && stop - at < MIN_TIME_DIGITS ? 0 : stop
  }
  if (member != SEVERITY) return 0
  const stop = digitsEnd(at)
  return stop - at > MAX_LEVEL_DIGITS ? 0 : stop
}

const MIN_TIME_DIGITS: usize = 9
const MAX_LEVEL_DIGITS: usize = 5

/** The members that are tags, as the JSON of an object. */
const others = newBytes(16 * 1024)

/**
 * Adds the member whose name is at `at` to the tags. Empty texts and nulls are no tags.
 *
 * @returns the end of its value, 0 for a line that must be parsed
 */
function otherMember(at: usize, end: usize): usize {
  const close = textEnd(at, end)
  if (close == 0 || close - at > MAX_FLAT_NAME || !mayBeTag(at, close - at)) return 0
  let value = close + 1
  while (load<u8>(value) == 32) value++
  if (load<u8>(value++) != 0x3a) return 0
  while (load<u8>(value) == 32) value++
  // `null`
  if (load<u32>(value) == 0x6c6c756e) return value + 4
  const stop = flatValueEnd(value, end)
  // `""`
  if (stop == 0 || load<u16>(value) == 0x2222) return stop
  const name = close + 1 - at
  reserve(others, name + (stop - value) + 4)
  let to = others.ptr + others.length
  store<u8>(to, others.length == 0 ? 0x7b : 0x2c)
  store<u8>(to + 1, 0x22)
  to += 2
  copyOver(to, at, name)
  store<u8>(to + name, 0x3a)
  copyOver(to + name + 1, value, stop - value)
  others.length += name + (stop - value) + 3
  return stop
}

function mayBeTag(at: usize, length: usize): bool {
  const word = intern(at, length)
  const known = nameState(word)
  return (known == 0 ? checkName(word) : known) == 2
}

/** Completes the tags. @returns the bits of the members, 0 for tags that must be parsed */
function withOthers(seen: u32): u32 {
  if ((seen & (1 << TAGS)) != 0) return others.length == 0 && areKeptTags() ? seen : 0
  if (others.length == 0) return seen
  reserve(others, 1)
  store<u8>(others.ptr + others.length, 0x7d)
  others.length++
  const start = others.ptr
  return setMember(TAGS, start, start + others.length) ? seen | (1 << TAGS) : 0
}

/** Returns the end of a JSON number of 1 to 15 digits, 0 for anything else. */
function digitsEnd(from: usize): usize {
  let at = from
  while (at - from < 16 && isDigit(load<u8>(at))) at++
  const digits = at - from
  const next = <u32>load<u8>(at)
  const goesOn = next == 0x2e || (next | 0x20) == 0x65
  const leads = digits > 1 && load<u8>(from) == 0x30
  return digits == 0 || digits > 15 || goesOn || leads ? 0 : at
}

/** Lines with more tags are parsed. */
const MAX_FLAT_TAGS: u32 = 128
/** Most bytes of an attribute's text; with its two quotes it is the 1 KiB that is indexed. */
const MAX_FLAT_TEXT: usize = 1022
/** Fewer than the characters that the tags of an event may have, which count up to seven more for a number. */
const MAX_FLAT_OBJECT: usize = 64_000
/** The bound of an attribute's name. */
const MAX_FLAT_NAME: usize = 128
const tagStarts: usize = memory.data(128 * 4)
const tagEnds: usize = memory.data(128 * 4)
const tagValueEnds: usize = memory.data(128 * 4)
/** A Bloom filter of the names of an object: 256 bits, one a name. */
const nameBits: usize = memory.data(32)

/** The object that the arrays above are of, 0 for none. */
let flatFrom: usize = 0

/** Must be called before the memory of tags is overwritten. */
export function forgetFlatTags(): void {
  flatFrom = 0
}

/**
 * Returns the end of an object that is written as `JSON.stringify` would write it: no blanks, no escapes, ASCII,
 * distinct names that begin with a letter, values that are short texts, plain numbers or booleans. 0 for others, and
 * for texts that may be a number in another than its shortest form.
 */
function flatObjectEnd(from: usize, end: usize): usize {
  if (load<u8>(from) != 0x7b) return 0
  let at = from + 1
  memory.fill(nameBits, 0, 32)
  for (let count: u32 = 0; count < MAX_FLAT_TAGS; count++) {
    if (load<u8>(at) != 0x22) return 0
    const letter = <u32>load<u8>(at + 1) | 32
    if (letter < 97 || letter > 122) return 0
    const close = textEnd(at + 1, end)
    if (close == 0 || close - (at + 1) > MAX_FLAT_NAME || isRepeated(at + 1, close, count)) return 0
    store<u32>(tagStarts + count * 4, <u32>(at + 1))
    store<u32>(tagEnds + count * 4, <u32>close)
    at = close + 1
    if (load<u8>(at++) != 0x3a) return 0
    at = flatValueEnd(at, end)
    if (at == 0) return 0
    store<u32>(tagValueEnds + count * 4, <u32>at)
    const separator = load<u8>(at++)
    if (separator == 0x7d) {
      if (at - from > MAX_FLAT_OBJECT) return 0
      flatFrom = from
      return at
    }
    if (separator != 0x2c) return 0
  }
  return 0
}

/** Finds the tags of an object. @returns their number, 0 for an object that `readMembers` does not take */
export function flatTags(from: usize, end: usize): u32 {
  if (flatFrom != from && flatObjectEnd(from, end) != end) return 0
  let count: u32 = 1
  while (<usize>load<u32>(tagValueEnds + (count - 1) * 4) + 1 != end) count++
  return count
}

/** Returns the address of the name of a tag that `flatTags` found. */
@inline
export function tagStart(no: u32): usize {
  return load<u32>(tagStarts + no * 4)
}

/** Returns the end of a tag's name. */
@inline
export function tagNameEnd(no: u32): usize {
  return load<u32>(tagEnds + no * 4)
}

/** Returns the address of a tag's value. */
@inline
export function tagValue(no: u32): usize {
  return tagNameEnd(no) + 2
}

/** Returns the end of a tag's value. */
@inline
export function tagEnd(no: u32): usize {
  return load<u32>(tagValueEnds + no * 4)
}

/** Whether the decoders would keep each of the flat tags unchanged: its value is not empty, not JSON, and not a list of words. */
function areKeptTags(): bool {
  const from = <usize>load<u32>(starts + TAGS * 4)
  const count = flatTags(from, load<u32>(ends + TAGS * 4))
  for (let i: u32 = 0; i < count; i++) {
    const value = load<u16>(tagValue(i))
    // `""`, `"{`
    if (value == 0x2222 || value == 0x7b22) return false
    const name = tagStart(i)
    const length = tagNameEnd(i) - name
    // `tags`, `ddtags`
    if (length == 4 && load<u32>(name) == 0x73676174) return false
    if (length == 6 && load<u32>(name, 2) == 0x73676174) return false
  }
  return true
}

/** Whether a text among the flat tags may be an exception, whose words are searched: its name begins as one of `exception.ts`. */
function hasException(): bool {
  const count = flatTags(load<u32>(starts + TAGS * 4), load<u32>(ends + TAGS * 4))
  for (let i: u32 = 0; i < count; i++) {
    const letter = <u32>load<u8>(tagStart(i)) | 32
    if (letter != 101 && letter != 115) continue
    if (load<u8>(tagValue(i)) == 0x22 && beginsAsException(tagStart(i), tagNameEnd(i))) return true
  }
  return false
}

/** Beginnings of names in compared form (`aliases.ts`): `err`, `exc`, `stac`. */
export function beginsAsException(from: usize, end: usize): bool {
  let head: u32 = 0
  let length: u32 = 0
  for (let at = from; at < end && length < 4; at++) {
    const c = <u32>load<u8>(at)
    // `_`, `-`, `.`, a blank, `@`
    if (c == 0x5f || c == 0x2d || c == 0x2e || c == 0x20 || c == 0x40) continue
    head = (head << 8) | c | 32
    length++
  }
  if (length == 3) head <<= 8
  const three = head >> 8
  return three == 0x657272 || three == 0x657863 || head == 0x73746163
}

/** Whether an object has a member of this name already. A bitmap of name hashes, as a Bloom filter, saves most comparisons. */
function isRepeated(start: usize, close: usize, count: u32): bool {
  const length = close - start
  const last = load<u64>(close - 8)
  const key = length < 8 ? last >> ((8 - length) * 8) : last
  const bit = (key * 0x9e3779b97f4a7c15 + length * 0xd6e8feb86659fd93) >> 56
  const byte = nameBits + <usize>(bit >> 3)
  const mask: u32 = 1 << <u32>(bit & 7)
  const bits: u32 = load<u8>(byte)
  store<u8>(byte, bits | mask)
  if ((bits & mask) == 0) return false
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
    return close == 0 || mayBeLongNumber(at + 1, close) ? 0 : close + 1
  }
  if (isDigit(c) || c == 0x2d) return plainNumberEnd(at)
  // `true`, `fals`
  if (load<u32>(at) == 0x65757274) return at + 4
  return load<u32>(at) == 0x736c6166 && load<u8>(at + 4) == 0x65 ? at + 5 : 0
}

/** Returns the end of a number that is certainly in its shortest form, 0 for any other. */
function plainNumberEnd(from: usize): usize {
  const first = load<u8>(from) == 0x2d ? from + 1 : from
  let at = first
  while (at - first < 16 && isDigit(load<u8>(at))) at++
  const digits = at - first
  const isZero = load<u8>(first) == 0x30
  if (digits == 0 || digits > 15 || (isZero && digits > 1)) return 0
  if (load<u8>(at) != 0x2e) return (load<u8>(at) | 0x20) == 0x65 || (isZero && first != from) ? 0 : at
  const fraction = ++at
  while (at - fraction < 7 && isDigit(load<u8>(at))) at++
  const places = at - fraction
  // With seven places `0.0000001` is `1e-7`.
  if (places == 0 || places > 6 || digits + places > 15) return 0
  return load<u8>(at - 1) == 0x30 || (load<u8>(at) | 0x20) == 0x65 ? 0 : at
}

/** Whether a text may be a number that is not in its shortest form, such as `5e2` or `1.50`. */
function mayBeLongNumber(from: usize, close: usize): bool {
  const c = <u32>load<u8>(from)
  if (!isDigit(c) && c != 0x2d) return false
  if (plainNumberEnd(from) == close) return false
  let points: u32 = 0
  let exponents: u32 = 0
  for (let at = from + 1; at < close; at++) {
    const next = <u32>load<u8>(at)
    if (isDigit(next)) continue
    if (next == 0x2e) points++
    else if ((next | 0x20) == 0x65) exponents++
    else if ((next != 0x2b && next != 0x2d) || (load<u8>(at - 1) | 0x20) != 0x65) return false
  }
  const isZero = close - from == 2 && c == 0x2d && load<u8>(from + 1) == 0x30
  return isZero || (points <= 1 && points + exponents > 0)
}

/** Returns the address of a short text's closing quote, 0 when it is long or not plain. */
function textEnd(from: usize, end: usize): usize {
  const at = special(from, end)
  return at < end && load<u8>(at) == 0x22 && at - from <= MAX_FLAT_TEXT ? at : 0
}

/** Address of the unescaped text, valid until the next line. */
export let textStart: usize = 0

/**
 * Writes a text without its escapes to `textStart`.
 * @returns the length, -1 for an escape that is no JSON or stands for a character beyond ASCII
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
      const escape = <u32>load<u8>(at++)
      if (escape == 0x75) {
        if (at + 4 > end) return -1
        c = asciiEscape(at)
        at += 4
      } else c = escaped(escape)
      if (c > 127) return -1
    }
    store<u8>(out + length, c)
    length++
  }
  textStart = out
  return length
}

function escaped(escape: u32): u32 {
  switch (escape) {
    case 0x22:
    case 0x2f:
    case 0x5c:
      return escape
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

/** Reads the four hex digits of an escaped ASCII character, such as `001b`. */
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
