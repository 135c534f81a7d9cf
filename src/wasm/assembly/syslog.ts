/*
 * Reads the head of an RFC 5424 or RFC 3164 message without creating strings, if it has a plain
 * program and plain structured data. Other messages must be decoded by `formats/text-forms.ts`,
 * which specifies both.
 */
import * as layout from '../layout'
import { isDigit } from './bytes'
import { keyWith } from './hash'
import * as line from './line'
import { copyOver, zeroed } from './memory'
import { isoTime } from './time'

/** Returns the ms since 1970 of a time without a year, such as `Nov 21 09:28:19`; 0 for another text. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'clockTime')
declare function clockTime(at: usize, length: u32): f64

const MAX_HOST: usize = 255
const MAX_PROGRAM: usize = 64
const MAX_PID: usize = 128
const MAX_MSGID: usize = 64
const MAX_DATA: usize = 1024
const MAX_PARAMS: u32 = 12
const CLOCK_BYTES: usize = 15

/** By priority: the length of its severity and that of its tags, then both. See `priority.ts` of the protocol. */
export const priorities = zeroed(<usize>(layout.PRIORITIES * layout.PRIORITY_BYTES))
/** The tags of the message, as the JSON of an object. */
const tags = zeroed(4096)
let tagsLength: usize = 0

/** The last time without a year, and its ms. */
const clock = zeroed(16)
let clockMs: f64 = 0

/** The bits of the members that the message has, its time, and where its text begins. */
export let seen: u32 = 0
export let ms: f64 = 0
export let textAt: usize = 0

/** Names of parameters, in compared form, that become a field or have the name of another tag. */
const OTHER_KEYS = zeroed(7 * 8)
const OTHERS: usize = 7

export function initSyslog(): void {
  const names = 'traceid spanid pid msgid program facility severitytext'.split(' ')
  for (let i = 0; i < names.length; i++) {
    let key: u64 = 0
    for (let k = 0; k < names[i].length; k++) key = keyWith(key, names[i].charCodeAt(k))
    store<u64>(OTHER_KEYS + i * 8, key)
  }
}

/** Must be called before each body, because its clock may differ. */
export function forgetClock(): void {
  store<u8>(clock, 0)
}

/** Reads the head of a message. @returns false for a message that is to be parsed */
export function readHead(start: usize, end: usize, senderAt: usize, senderEnd: usize): bool {
  if (load<u8>(start) != 0x3c || end - start < 6) return false
  let at = start + 1
  let priority: u32 = 0
  while (isDigit(load<u8>(at)) && at <= start + 3) priority = priority * 10 + <u32>load<u8>(at++) - 48
  if (at == start + 1 || load<u8>(at) != 0x3e || priority >= <u32>layout.PRIORITIES) return false
  at++
  seen = 0
  tagsLength = 1
  // `1 `
  at = load<u16>(at) == 0x2031 ? readNew(at + 2, end) : readOld(at, end)
  if (at == 0) return false
  // rsyslog forwards a message with the blank before it, so two blanks follow the head.
  if (at < end && load<u8>(at) == 0x20) at++
  if (at >= end || mayHaveInner(at, end)) return false
  textAt = at
  if ((seen & (1 << line.HOST)) == 0 && senderAt < senderEnd) setMember(line.HOST, senderAt, senderEnd)
  const entry = priorities + <usize>(priority * <u32>layout.PRIORITY_BYTES)
  const severityEnd = entry + 2 + <usize>load<u8>(entry)
  setMember(line.SEVERITY, entry + 2, severityEnd)
  const tagBytes: usize = load<u8>(entry, 1)
  copyOver(tags + tagsLength, severityEnd, tagBytes)
  store<u8>(tags, 0x7b)
  return setMember(line.TAGS, tags, tags + tagsLength + tagBytes)
}

@inline
function setMember(member: u32, start: usize, end: usize): bool {
  seen |= 1 << member
  return line.setMember(member, start, end)
}

/**
 * Reads the head of RFC 5424 after its version.
 *
 * @returns where the message begins, 0 for another head
 */
function readNew(from: usize, end: usize): usize {
  let at = from
  ms = 0
  // `- `
  if (load<u16>(at) == 0x202d) at += 2
  else if ((at = readIso(at, end)) == 0) return 0
  if ((at = readName(line.HOST, at, end, MAX_HOST)) == 0) return 0
  if ((at = readName(line.SOURCE, at, end, MAX_PROGRAM)) == 0) return 0
  const pid = at
  if ((at = tokenEnd(at, end, MAX_PID)) == 0) return 0
  const msgid = at + 1
  if ((at = tokenEnd(msgid, end, MAX_MSGID)) == 0) return 0
  const data = at + 1
  at = load<u16>(data) == 0x202d ? data + 2 : readData(data, end)
  if (at == 0) return 0
  // `pid"`, `msgid"`
  addTag(0x22646970, 4, pid, msgid - 1)
  addTag(0x22646967736d, 6, msgid, data - 1)
  // A byte order mark.
  return (load<u32>(at) & 0xffffff) == 0xbfbbef ? at + 3 : at
}

/**
 * Reads the head of RFC 3164 after its priority, with either kind of time.
 *
 * @returns as `readNew`
 */
function readOld(from: usize, end: usize): usize {
  let at = isDigit(load<u8>(from)) ? readIso(from, end) : readClock(from, end)
  if (at == 0) return 0
  at = readName(line.HOST, at, end, MAX_HOST)
  if (at == 0 || load<u8>(at - 2) == 0x3a) return 0
  const program = at
  while (at < end && isOfName(load<u8>(at))) at++
  const length = at - program
  // `CEF`, `LEEF`: these are heads of messages.
  const word = load<u32>(program)
  const isFormat = (length == 3 && (word & 0xffffff) == 0x464543) || (length == 4 && word == 0x4645454c)
  if (length == 0 || length > MAX_PROGRAM || !isLetter(load<u8>(program)) || isFormat) return 0
  setMember(line.SOURCE, program, at)
  if (load<u8>(at) == 0x5b) {
    const pid = ++at
    while (at < end && isDigit(load<u8>(at))) at++
    if (at == pid || at - pid > 32 || load<u8>(at) != 0x5d) return 0
    addTag(0x22646970, 4, pid, at++)
  }
  // `: `
  return load<u16>(at) == 0x203a ? at + 2 : 0
}

/** @returns the offset after the time and a blank, 0 for another time */
function readIso(from: usize, end: usize): usize {
  const to = tokenEnd(from, end, 40)
  if (to == 0 || load<u8>(from + 10) != 0x54) return 0
  const read = isoTime(from, to, false)
  ms = <f64>read
  return read > 0 ? to + 1 : 0
}

function readClock(from: usize, end: usize): usize {
  const to = from + CLOCK_BYTES
  if (to >= end || load<u8>(to) != 0x20) return 0
  const bytes = v128.load(from)
  if (!i8x16.all_true(i8x16.eq(bytes, v128.load(clock)))) {
    clockMs = clockTime(from, <u32>CLOCK_BYTES)
    v128.store(clock, bytes)
  }
  ms = clockMs
  return ms > 0 ? to + 1 : 0
}

/**
 * Reads a word that is a member, unless it is a lone dash.
 *
 * @returns the offset after it and a blank, 0 for another text
 */
function readName(member: u32, from: usize, end: usize, most: usize): usize {
  const to = tokenEnd(from, end, most)
  if (to == 0) return 0
  if (to - from > 1 || load<u8>(from) != 0x2d) setMember(member, from, to)
  return to + 1
}

/** Returns where a token of printable ASCII ends, which a blank must follow; 0 when there is no such token. */
function tokenEnd(from: usize, end: usize, most: usize): usize {
  // A word in brackets may mean a missing value.
  if (load<u8>(from) == 0x5b) return 0
  let at = from
  for (; at < end; at++) {
    const c = <u32>load<u8>(at)
    if (c == 0x20) break
    if (c < 0x20 || c > 0x7e || c == 0x22 || c == 0x5c) return 0
  }
  return at == from || at == end || at - from > most ? 0 : at
}

/** Adds a tag, unless its value is a lone dash. @param name with a closing quote */
function addTag(name: u64, nameLength: usize, from: usize, to: usize): void {
  if (to - from == 1 && load<u8>(from) == 0x2d) return
  const at = tags + tagsLength
  store<u8>(at, 0x22)
  store<u64>(at + 1, name)
  endTag(at + 1 + nameLength, from, to)
}

/** Writes a value with its separators. */
function endTag(at: usize, from: usize, to: usize): void {
  // `:"`, `",`
  store<u16>(at, 0x223a)
  copyOver(at + 2, from, to - from)
  store<u16>(at + 2 + (to - from), 0x2c22)
  tagsLength = at + 4 + (to - from) - tags
}

/**
 * Reads elements such as `[meta@32473 run="x" seq="7"]` and makes tags of their parameters.
 *
 * @returns the offset after them and a blank, 0 for elements that are not plain
 */
function readData(from: usize, end: usize): usize {
  let at = from
  let count: u32 = 0
  const most = min(end, from + MAX_DATA)
  while (load<u8>(at) == 0x5b) {
    const id = ++at
    while (at < most && isOfParam(load<u8>(at), 0x40)) at++
    if (at == id || at - id > 64) return 0
    while (load<u8>(at) == 0x20) {
      if (++count > MAX_PARAMS) return 0
      at = readParam(at + 1, most)
      if (at == 0) return 0
    }
    if (load<u8>(at++) != 0x5d) return 0
  }
  return at == from || at > most || load<u8>(at) != 0x20 ? 0 : at + 1
}

/** @returns the offset after a parameter, 0 for one that is not plain or empty */
function readParam(from: usize, end: usize): usize {
  if (!isLetter(load<u8>(from))) return 0
  let at = from
  let key: u64 = 0
  for (; at < end; at++) {
    const c = <u32>load<u8>(at)
    if (!isOfParam(c, 0x2d)) break
    if (c != 0x2d && c != 0x2e && c != 0x5f) key = keyWith(key, c)
  }
  // `="`
  if (at - from > 64 || isOther(key) || load<u16>(at) != 0x223d) return 0
  const name = tags + tagsLength
  const value = at + 2
  let to = value
  for (; to < end; to++) {
    const c = <u32>load<u8>(to)
    if (c == 0x22) break
    if (c < 0x20 || c > 0x7e || c == 0x5c || c == 0x5d) return 0
  }
  if (to == value || to - value > 255 || to == end) return 0
  store<u8>(name, 0x22)
  copyOver(name + 1, from, at - from)
  store<u8>(name + 1 + (at - from), 0x22)
  endTag(name + 2 + (at - from), value, to)
  return to + 1
}

function isOther(key: u64): bool {
  for (let i: usize = 0; i < OTHERS; i++) if (load<u64>(OTHER_KEYS + i * 8) == key) return true
  return false
}

/**
 * Whether the message must be decoded in JavaScript, because it may begin with one of
 * `INNER_FORMS`, JSON, a cookie, or the code of a Cisco device.
 */
function mayHaveInner(from: usize, end: usize): bool {
  const c = <u32>load<u8>(from)
  const word = load<u32>(from)
  const next = <u32>load<u8>(from + 4)
  if (c == 0x20 || c == 0x7b || c == 0x40 || c == 0x25) return true
  // `CEF:`, `LEEF:`, `node=`, `type=`
  if (word == 0x3a464543 || (word == 0x4645454c && next == 0x3a)) return true
  if ((word == 0x65646f6e || word == 0x65707974) && next == 0x3d) return true
  // A day in brackets: `[21/`
  for (let at = from; at < end; at += 16) {
    let found: u32 = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(0x5b)))
    for (; found != 0; found &= found - 1) {
      const day = at + ctz<u32>(found) + 1
      if (isDigit(load<u8>(day)) && isDigit(load<u8>(day + 1)) && load<u8>(day + 2) == 0x2f) return true
    }
  }
  return false
}

@inline
function isLetter(c: u32): bool {
  return (c | 0x20) - 97 < 26
}

/** Whether a byte is one of `A-Za-z0-9_./-`. */
function isOfName(c: u32): bool {
  return isLetter(c) || c - 0x2d < 13 || c == 0x5f
}

/** Whether a byte is one of `A-Za-z0-9_.-` or the given one. */
function isOfParam(c: u32, other: u32): bool {
  return (isOfName(c) && c != 0x2f) || c == other
}

/** Whether a text is printable ASCII. */
export function isPrintable(from: usize, end: usize): bool {
  for (let at = from; at < end; at++) if (<u32>load<u8>(at) - 0x20 > 0x5e) return false
  return true
}
