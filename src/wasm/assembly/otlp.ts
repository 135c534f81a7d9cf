/*
 * Reads a log record of OTLP that has a severity number, a text as body, and attributes of plain
 * values. Other records must be decoded by `protocols/otlp`, whose `toLog` specifies both.
 */
import * as layout from '../layout'
import { firstBytes } from './bytes'
import { keyWith } from './hash'
import * as line from './line'
import { zeroed } from './memory'
import * as protobuf from './protobuf'
import * as tags from './tags'

/** Returns the index into SEVERITIES of a severity number, if the sender's own word adds nothing to it; else `UNREAD_LEVEL`. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'logLevel')
declare function logLevel(number: u32, at: usize, length: u32): u32

const MAX_LEVEL: u64 = 24
const MAX_WORD: usize = 16
const TRACE_BYTES: usize = 16
const SPAN_BYTES: usize = 8

/** By severity number: 1 + the level, the length of the word that came with it last, and at 16 the word. */
const LEVEL_BYTES: usize = 32
const levels = zeroed(25 * 32)
const traceHex = zeroed(32)
const spanHex = zeroed(32)
const HEX: usize = memory.data<u8>([48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102])

/** Names of attributes that may be ids of a record without them, in the form of `comparedName`. */
const ID_KEYS = zeroed(6 * 8)
const IDS: usize = 6
const TRACE_IDS: usize = 3

/** The bits of the members that the record has, its time, level, and message. */
export let seen: u32 = 0
export let ms: f64 = 0
export let level: u32 = 0
export let textAt: usize = 0
export let textEnd: usize = 0

/** The address of the next field of the record. */
let next: usize = 0
let wordAt: usize = 0
let wordEnd: usize = 0
let traceAt: usize = 0
let spanAt: usize = 0
let severity: u64 = 0
let timeMs: f64 = 0
let observedMs: f64 = 0
let attributes: u32 = 0
/** Bits of the ids that attributes may be. */
let named: u32 = 0
const TRACE: u32 = 1
const SPAN: u32 = 2

export function initOtlp(): void {
  const names = 'traceid oteltraceid ddtraceid spanid otelspanid ddspanid'.split(' ')
  for (let i = 0; i < names.length; i++) {
    let key: u64 = 0
    for (let k = 0; k < names[i].length; k++) key = keyWith(key, names[i].charCodeAt(k))
    store<u64>(ID_KEYS + i * 8, key)
  }
}

/** Reads a record. @returns false for one that must be parsed */
export function readLog(start: usize, end: usize): bool {
  severity = 0
  timeMs = 0
  observedMs = 0
  attributes = 0
  named = 0
  textAt = 0
  textEnd = 0
  wordAt = 0
  wordEnd = 0
  traceAt = 0
  spanAt = 0
  tags.beginTags()
  for (let at = start; at < end; at = next) if (!protobuf.readField(at, end) || !readMember()) return false
  if (textAt == textEnd || severity == 0 || severity > MAX_LEVEL) return false
  level = levelOf(<u32>severity)
  return level != layout.UNREAD_LEVEL && setTime() && setIds() && setTags()
}

function readMember(): bool {
  const from = protobuf.from
  const to = protobuf.to
  next = to
  switch (protobuf.tag) {
    case 0x09:
      timeMs = readTime(from)
      return true
    case 0x10:
      severity = protobuf.number
      return true
    case 0x1a:
      wordAt = from
      wordEnd = to
      return to - from <= MAX_WORD
    case 0x2a:
      return readBody(from, to)
    case 0x32:
      attributes++
      return readAttribute(from, to)
    case 0x4a:
      traceAt = isZero(from, to) ? 0 : from
      return to == from || to - from == TRACE_BYTES
    case 0x52:
      spanAt = isZero(from, to) ? 0 : from
      return to == from || to - from == SPAN_BYTES
    case 0x59:
      observedMs = readTime(from)
      return true
    // The name of an event.
    case 0x62:
      return to == from
    default:
      return !isMember(protobuf.tag >> 3)
  }
}

/** Whether fields of this number are read here. One of another type must then be parsed. */
function isMember(no: u32): bool {
  return no <= 12 && ((0x1e6e >> no) & 1) != 0
}

/** As `readTime` of `message-form.ts` does, whose rounding it has. */
function readTime(at: usize): f64 {
  const high = <f64>load<u32>(at, 4)
  const rest = high * 967_296 + <f64>load<u32>(at)
  const ms = floor(rest / 1e6)
  return high * 4294 + ms + (rest - ms * 1e6) / 1e6
}

/** Reads an AnyValue that is a plain text. */
function readBody(from: usize, to: usize): bool {
  if (from == to || !protobuf.readField(from, to) || protobuf.tag != 0x0a || protobuf.to != to) return false
  textAt = protobuf.from
  textEnd = to
  return true
}

function readAttribute(from: usize, to: usize): bool {
  if (from == to || !protobuf.readField(from, to) || protobuf.tag != 0x0a) return false
  const name = protobuf.from
  const nameEnd = protobuf.to
  if (nameEnd == to || !isTag(name, nameEnd)) return false
  if (!protobuf.readField(nameEnd, to) || protobuf.tag != 0x12 || protobuf.to != to) return false
  const value = protobuf.from
  if (value == to || !protobuf.readField(value, to) || protobuf.to != to) return false
  // `string_value`, whose words are searched
  if (protobuf.tag == 0x0a && line.beginsAsException(name, nameEnd)) return false
  return tags.addName(name, nameEnd) && addValue()
}

function addValue(): bool {
  switch (protobuf.tag) {
    case 0x0a:
      return tags.addText(protobuf.from, protobuf.to)
    case 0x10:
      tags.addBoolean(protobuf.number != 0)
      return true
    case 0x18:
      return tags.addInteger(<i64>protobuf.number)
    case 0x21:
      return tags.addDouble(load<f64>(protobuf.from))
    default:
      return false
  }
}

/** Whether an attribute is a tag, unless the record lacks an id of this name. */
function isTag(from: usize, to: usize): bool {
  // `scope`, `resource.`
  if (to - from == 5 && load<u32>(from) == 0x706f6373 && load<u8>(from + 4) == 0x65) return false
  if (to - from > 8 && load<u64>(from) == 0x656372756f736572 && load<u8>(from + 8) == 0x2e) return false
  if (!line.isPlain(from, to)) return false
  const last = <u32>load<u8>(to - 1)
  if ((last | 0x20) == 0x64 || isJoint(last)) noteId(from, to)
  return true
}

/** Whether a byte is ignored when names are compared. */
@inline
function isJoint(c: u32): bool {
  return c == 0x5f || c == 0x2d || c == 0x2e || c == 0x20 || c == 0x40
}

function noteId(from: usize, to: usize): void {
  let key: u64 = 0
  for (let at = from; at < to; at++) {
    const c = <u32>load<u8>(at)
    if (!isJoint(c)) key = keyWith(key, c)
  }
  for (let i: usize = 0; i < IDS; i++) if (load<u64>(ID_KEYS + i * 8) == key) named |= i < TRACE_IDS ? TRACE : SPAN
}

function levelOf(no: u32): u32 {
  const length = wordEnd - wordAt
  const entry = levels + <usize>no * LEVEL_BYTES
  const word = firstBytes(wordAt, length)
  const known = <u32>load<u8>(entry)
  if (known != 0 && <usize>load<u8>(entry, 1) == length && i8x16.all_true(i8x16.eq(word, v128.load(entry, 16))))
    return known - 1
  const found = logLevel(no, wordAt, <u32>length)
  store<u8>(entry, found + 1)
  store<u8>(entry, length, 1)
  v128.store(entry, word, 16)
  return found
}

/** The time of the record, else when it was observed; 0 for neither. */
function setTime(): bool {
  const found = timeMs > 0 ? timeMs : observedMs
  ms = floor(found)
  return found == 0 || ms > 0
}

function setIds(): bool {
  seen = 0
  if (traceAt != 0) {
    putHex(traceAt, traceHex)
    setMember(line.TRACE, traceHex, 2 * TRACE_BYTES)
  }
  if (spanAt != 0) {
    putHex(spanAt, spanHex)
    setMember(line.SPAN, spanHex, 2 * SPAN_BYTES)
  }
  return (traceAt != 0 || (named & TRACE) == 0) && (spanAt != 0 || (named & SPAN) == 0)
}

@inline
function setMember(member: u32, start: usize, length: usize): void {
  seen |= 1 << member
  line.setMember(member, start, start + length)
}

/** Writes sixteen bytes as 32 digits. */
function putHex(from: usize, to: usize): void {
  const bytes = v128.load(from)
  const digits = v128.load(HEX)
  const high = i8x16.swizzle(digits, i8x16.shr_u(bytes, 4))
  const low = i8x16.swizzle(digits, v128.and(bytes, i8x16.splat(15)))
  v128.store(to, i8x16.shuffle(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23))
  v128.store(to, i8x16.shuffle(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16)
}

/** Whether an id has only zeros, which means that there is none. */
function isZero(from: usize, to: usize): bool {
  for (let at = from; at < to; at++) if (load<u8>(at) != 0) return false
  return true
}

function setTags(): bool {
  if (attributes != 0) tags.addCommon()
  const tagged = tags.endTags(attributes != 0)
  if (tagged > 0) seen |= 1 << line.TAGS
  return tagged >= 0
}
