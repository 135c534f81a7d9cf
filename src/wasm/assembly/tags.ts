/*
 * Writes the tags of a record as the JSON of an object: the tags of the scope or stream, and those
 * of the record. `line.ts` decides whether they need no parsing.
 */
import * as line from './line'
import { copyOver, newBytes, reserve } from './memory'

const object = newBytes(16 * 1024)
/** The members that all records have, and whether they are the member `TAGS` of the record. */
let commonFrom: usize = 0
let commonTo: usize = 0
let isCommon = false

/** A larger object must be parsed. */
const MAX_BYTES: usize = 64_000
/** An upper bound of the bytes of a number with its separators. */
const NUMBER_BYTES: usize = 32
/** Integers of more than 15 digits are parsed. */
const MAX_INTEGER: u64 = 1_000_000_000_000_000
/** 2^53 - 1: a double holds each integer up to here exactly. */
const MAX_EXACT: f64 = 9_007_199_254_740_992
/** Six decimal places of a fraction are written. */
const UNITS: u64 = 1_000_000

/** Must be called before records whose common tags are the member `TAGS`, if there are any. */
export function beginScope(hasTags: bool): void {
  commonFrom = hasTags ? line.startOf(line.TAGS) + 1 : 0
  commonTo = hasTags ? line.endOf(line.TAGS) - 1 : 0
  isCommon = hasTags
}

/** Must be called after these records, so that the common tags are the member `TAGS` again. */
export function endScope(): void {
  if (!isCommon && commonTo != 0) isCommon = line.setMember(line.TAGS, commonFrom - 1, commonTo + 1)
}

export function beginTags(): void {
  object.length = 1
}

/** Adds the tags of the scope or stream to those of this record. */
export function addCommon(): void {
  const length = commonTo - commonFrom
  if (length == 0) return
  reserve(object, length + 1)
  put(commonFrom, length)
  putByte(0x2c)
}

@inline
function put(from: usize, length: usize): void {
  copyOver(object.ptr + object.length, from, length)
  object.length += length
}

@inline
function putByte(c: u32): void {
  store<u8>(object.ptr + object.length, c)
  object.length++
}

/** Begins a tag. The name must be plain. @returns false for more bytes than tags may have */
export function addName(from: usize, to: usize): bool {
  const length = to - from
  if (object.length + length > MAX_BYTES) return false
  reserve(object, length + NUMBER_BYTES)
  putByte(0x22)
  put(from, length)
  // `":`
  store<u16>(object.ptr + object.length, 0x3a22)
  object.length += 2
  return true
}

/** Adds the value of a tag. @returns false for a text that must be parsed */
export function addText(from: usize, to: usize): bool {
  const length = to - from
  if (length > MAX_BYTES || !line.isPlain(from, to)) return false
  reserve(object, length + 3)
  putByte(0x22)
  put(from, length)
  // `",`
  store<u16>(object.ptr + object.length, 0x2c22)
  object.length += 2
  return true
}

export function addBoolean(value: bool): void {
  // `true`, `fals`
  store<u32>(object.ptr + object.length, value ? 0x65757274 : 0x736c6166)
  object.length += 4
  if (!value) putByte(0x65)
  putByte(0x2c)
}

/** @returns false for a number that must be parsed */
export function addInteger(value: i64): bool {
  const size = value < 0 ? -<u64>value : <u64>value
  if (size >= MAX_INTEGER) return false
  if (value < 0) putByte(0x2d)
  putDigits(size)
  putByte(0x2c)
  return true
}

/** Adds a number of at most six places, as JSON.stringify writes it. @returns as `addInteger` */
export function addDouble(value: f64): bool {
  const size = abs(value)
  if (!(size < <f64>MAX_INTEGER)) return false
  if (floor(size) == size) return addInteger(<i64>value)
  const parts = nearest(size * <f64>UNITS)
  // The quotient of two exact numbers equals the parsed decimal. `line.ts` leaves more than 15
  // digits to the parser, because that may not be the shortest form.
  if (!(parts < MAX_EXACT) || parts / <f64>UNITS != size) return false
  if (value < 0) putByte(0x2d)
  putDigits(<u64>parts / UNITS)
  putByte(0x2e)
  let rest = <u64>parts % UNITS
  for (let unit = UNITS / 10; rest != 0; unit /= 10) {
    putByte(<u32>(rest / unit) + 48)
    rest %= unit
  }
  putByte(0x2c)
  return true
}

function putDigits(value: u64): void {
  let unit: u64 = 1
  while (value / unit >= 10) unit *= 10
  for (let rest = value; unit != 0; unit /= 10) {
    putByte(<u32>(rest / unit) + 48)
    rest %= unit
  }
}

/**
 * Stores the collected tags as those of the record.
 *
 * @param hasOwn whether it has tags beside the common ones
 * @returns 1 when it has tags, 0 when it has none, -1 for tags that must be parsed
 */
export function endTags(hasOwn: bool): i32 {
  if (!hasOwn) {
    endScope()
    return isCommon ? 1 : 0
  }
  isCommon = false
  const from = object.ptr
  store<u8>(from, 0x7b)
  store<u8>(from + object.length - 1, 0x7d)
  return line.setMember(line.TAGS, from, from + object.length) ? 1 : -1
}
