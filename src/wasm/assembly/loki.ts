/*
 * Reads an entry of a stream of Loki: a plain line, its time, and metadata of plain texts. Other
 * entries must be decoded by `protocols/loki.ts`, which specifies both.
 */
import * as line from './line'
import { zeroed } from './memory'
import * as protobuf from './protobuf'
import * as tags from './tags'

const MAX_SECONDS: u64 = 1 << 40
const MAX_NANOS: u64 = 1 << 30
const NS_PER_MS: u64 = 1_000_000

const BRACE: u32 = 0x7b
const END_BRACE: u32 = 0x7d
const EQUALS: u32 = 0x3d

/** Names that are a level, best first. */
const LEVELS: usize = 5
const LEVEL_BYTES: usize = 16
const levelNames = zeroed(5 * 16)
const levelSizes = zeroed(5)

/** The bits of the members that the entry has, its time, and its line. */
export let seen: u32 = 0
export let ms: f64 = 0
export let textAt: usize = 0
export let textEnd: usize = 0

let pairs: u32 = 0
/** The rank of the best level in `LEVELS`, and whether metadata may name the level. */
let rank: usize = 0
let mayHaveLevel = false

export function initLoki(): void {
  const names = 'level severity detected_level severity_text loglevel'.split(' ')
  for (let i = 0; i < names.length; i++) {
    store<u8>(levelSizes + i, names[i].length)
    for (let k = 0; k < names[i].length; k++) store<u8>(levelNames + <usize>i * LEVEL_BYTES + k, names[i].charCodeAt(k))
  }
}

/** @param hasLevel whether the stream names the level */
export function beginStream(hasLevel: bool): void {
  mayHaveLevel = !hasLevel
}

/** Reads an entry. @returns false for one that must be parsed */
export function readEntry(start: usize, end: usize): bool {
  seen = 0
  ms = 0
  textAt = 0
  textEnd = 0
  pairs = 0
  rank = LEVELS
  let next: usize = 0
  for (let at = start; at < end; at = next) {
    if (!protobuf.readField(at, end)) return false
    next = protobuf.to
    if (!readMember()) return false
  }
  if (textAt == textEnd || !isPlainLine(textAt, textEnd)) return false
  const tagged = tags.endTags(pairs != 0)
  if (tagged > 0) seen |= 1 << line.TAGS
  return tagged >= 0
}

function readMember(): bool {
  switch (protobuf.tag) {
    case 0x0a:
      return readTime(protobuf.from, protobuf.to)
    case 0x12:
      textAt = protobuf.from
      textEnd = protobuf.to
      return true
    case 0x1a:
      return readPair(protobuf.from, protobuf.to)
    default:
      return false
  }
}

function readTime(start: usize, end: usize): bool {
  let seconds: u64 = 0
  let nanos: u64 = 0
  for (let at = start; at < end; at = protobuf.to) {
    if (!protobuf.readField(at, end)) return false
    if (protobuf.tag == 0x08) seconds = protobuf.number
    else if (protobuf.tag == 0x10) nanos = protobuf.number
    else return false
  }
  ms = <f64>(seconds * 1000 + nanos / NS_PER_MS)
  return seconds < MAX_SECONDS && nanos < MAX_NANOS
}

/** Reads a name and a value of metadata. */
function readPair(from: usize, to: usize): bool {
  if (from == to || !protobuf.readField(from, to) || protobuf.tag != 0x0a) return false
  const name = protobuf.from
  const nameEnd = protobuf.to
  if (nameEnd == to || !protobuf.readField(nameEnd, to) || protobuf.tag != 0x12 || protobuf.to != to) return false
  const value = protobuf.from
  const size = nameEnd - name
  if (size >= 6 && size <= 8) {
    // `traceid`, `spanid`, and the same with `_`, whose bit for small letters is set too
    const small = load<u64>(name) | 0x2020_2020_2020_2020
    const seven = small & 0x00ff_ffff_ffff_ffff
    if (size == 8 && small == 0x6469_7f65_6361_7274) return readId(line.TRACE, value, to)
    if (size == 7 && seven == 0x0064_6965_6361_7274) return readId(line.TRACE, value, to)
    if (size == 7 && seven == 0x0064_697f_6e61_7073) return readId(line.SPAN, value, to)
    if (size == 6 && (seven & 0xffff_ffff_ffff) == 0x6469_6e61_7073) return readId(line.SPAN, value, to)
  }
  if (!line.isPlain(name, nameEnd) || line.beginsAsException(name, nameEnd)) return false
  if (mayHaveLevel && value != to) readLevel(name, size, value, to)
  if (pairs == 0) {
    tags.beginTags()
    tags.addCommon()
  }
  pairs++
  return tags.addName(name, nameEnd) && tags.addText(value, to)
}

/** @returns false for an id that is not plain, or comes twice */
function readId(member: u32, from: usize, to: usize): bool {
  const bit: u32 = 1 << member
  if ((seen & bit) != 0 || !line.isPlain(from, to)) return false
  seen |= bit
  return line.setMember(member, from, to)
}

function readLevel(name: usize, size: usize, from: usize, to: usize): void {
  for (let i: usize = 0; i < rank; i++) {
    if (<usize>load<u8>(levelSizes + i) != size) continue
    if (memory.compare(levelNames + i * LEVEL_BYTES, name, size) != 0) continue
    rank = i
    seen |= 1 << line.SEVERITY
    line.setMember(line.SEVERITY, from, to)
  }
}

/** Whether `nestedIn` certainly returns null for a line. */
function isPlainLine(from: usize, to: usize): bool {
  if (<u32>load<u8>(from) == BRACE) return false
  const last = <u32>load<u8>(to - 1)
  const isClosed = last == END_BRACE
  // A line may end with `}` and white space, which may be a character beyond ASCII.
  if ((isClosed || last <= 0x20 || last >= 0x80) && mayHaveJson(from, to)) return false
  return isClosed || !mayBeLogfmt(from, to)
}

/** Whether there is ` {"`. */
function mayHaveJson(from: usize, to: usize): bool {
  for (let at = from; at + 2 < to; at++) if ((load<u32>(at) & 0xffffff) == 0x227b20) return true
  return false
}

/** Whether a line begins with a pair, and may have one with the message. */
function mayBeLogfmt(from: usize, to: usize): bool {
  let at = from
  while (at < to && isOfName(load<u8>(at))) at++
  return at < to && <u32>load<u8>(at) == EQUALS && mayHaveMessage(from, to)
}

/** Whether there is `msg=` or `message=`. */
function mayHaveMessage(from: usize, to: usize): bool {
  for (let at = from + 3; at < to; at++) {
    if (<u32>load<u8>(at) != EQUALS) continue
    if (load<u32>(at - 3) == 0x3d67736d) return true
    if (at >= from + 7 && load<u64>(at - 7) == 0x3d6567617373656d) return true
  }
  return false
}

/** Whether a byte is one of `A-Za-z0-9_@./-`. */
@inline
function isOfName(c: u32): bool {
  return (c | 0x20) - 97 < 26 || c - 0x2d < 13 || c == 0x5f || c == 0x40
}
