import { Bytes, copyOver, newBytes, putVarint, reserve, widened, zeroed } from './memory'
import { wordLength, wordStart } from './words'

/**
 * Splits a message of a known template into the template's constant text and the variables, as described in
 * `model/stored-message.ts`. Every byte of the constant text is compared, so that the two together are the message.
 */

/** @returns 1 + the word that is the template's constant text, 0 when it has none */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'constantTextOf')
declare function constantTextOf(template: u32): u32

const DELIMITER: u32 = 1
/** `model/stored-message.ts` allows fewer. */
const MAX_VALUES: u32 = 256

let capacity: u32 = 1024
/** The block for which `constantTextOf` was last called, and its result, by template. */
let stamps = zeroed(1024 * 4)
let results = zeroed(1024 * 4)
/** Offset of a template's record in `lengths`. */
let places = zeroed(1024 * 4)
let block: u32 = 0
/** For each constant text of the block: the number of its literals, their lengths, the sum of these. */
const lengths = newBytes(4096)

const input = newBytes(4096)

/** @returns the address to which the caller writes the bytes of a constant text */
export function constantTextAt(length: usize): usize {
  input.length = 0
  reserve(input, length)
  return input.ptr
}

/** Invalidates the cached constant texts, because the texts of templates change between blocks. */
export function beginConstantTexts(): void {
  block++
  lengths.length = 0
}

/**
 * Appends the variables of a message to a column of texts. Each literal is matched at its first place after the one
 * before it, the last at the end: this finds a split if there is one.
 *
 * @param mayHoldDelimiter whether the message may contain the delimiter
 * @returns 1 + the word that is its constant text, 0 when it has none and nothing was appended
 */
export function split(column: Bytes, start: usize, length: usize, template: u32, mayHoldDelimiter: bool): u32 {
  const result = resultOf(template)
  if (result == 0) return 0
  const constantText = wordStart(result - 1)
  const sizes = lengths.ptr + load<u32>(places + template * 4)
  const count = load<u32>(sizes)
  const constant = <usize>load<u32>(sizes + (count + 1) * 4)
  if (length < constant || count > MAX_VALUES) return 0
  const first = <usize>load<u32>(sizes, 4)
  if (!isSame(start, constantText, first)) return 0
  const before = column.length
  reserve(column, length + count + 5)
  if (count == 1) {
    if (length != first) return 0
    putVarint(column, 0)
    return result
  }
  const last = <usize>load<u32>(sizes + count * 4)
  const end = start + length - last
  const left = length - constant + count - 2
  putVarint(column, <u32>left)
  let to = column.ptr + column.length
  let at = start + first
  let literal = constantText + first + 1
  for (let i: u32 = 2; i < count; i++) {
    const size = <usize>load<u32>(sizes + i * 4)
    const found = find(literal, size, at, end)
    if (found == 0) {
      column.length = before
      return 0
    }
    copyOver(to, at, found - at)
    to += found - at
    store<u8>(to++, DELIMITER)
    at = found + size
    literal += size + 1
  }
  if (at > end || !isSame(end, literal, last) || (mayHoldDelimiter && holdsDelimiter(start, length))) {
    column.length = before
    return 0
  }
  copyOver(to, at, end - at)
  column.length += left
  return result
}

function resultOf(template: u32): u32 {
  if (template >= capacity) widen(template)
  if (load<u32>(stamps + template * 4) == block) return load<u32>(results + template * 4)
  const result = constantTextOf(template)
  store<u32>(stamps + template * 4, block)
  store<u32>(results + template * 4, result)
  if (result != 0) measure(template, result - 1)
  return result
}

function measure(template: u32, word: u32): void {
  const text = wordStart(word)
  const size = wordLength(word)
  store<u32>(places + template * 4, <u32>lengths.length)
  reserve(lengths, (size + 3) * 4)
  const at = lengths.ptr + lengths.length
  let count: u32 = 0
  let literal: u32 = 0
  let sum: u32 = 0
  for (let i: u32 = 0; i <= size; i++) {
    if (i < size && <u32>load<u8>(text + i) != DELIMITER) {
      literal++
      continue
    }
    count++
    store<u32>(at + count * 4, literal)
    sum += literal
    literal = 0
  }
  store<u32>(at, count)
  store<u32>(at + (count + 1) * 4, sum)
  lengths.length += (count + 2) * 4
}

/** Returns the first place of a text of at least one byte between `from` and `end`, 0 for none. */
function find(text: usize, size: usize, from: usize, end: usize): usize {
  const first = i8x16.splat(load<i8>(text))
  for (let at = from; at + size <= end; at += 16) {
    let hits: u32 = i8x16.bitmask(i8x16.eq(v128.load(at), first))
    while (hits != 0) {
      const place = at + ctz(hits)
      if (place + size > end) return 0
      if (isSame(place, text, size)) return place
      hits &= hits - 1
    }
  }
  return 0
}

function holdsDelimiter(start: usize, length: usize): bool {
  const delimiter = i8x16.splat(<i8>DELIMITER)
  const end = start + length
  for (let at = start; at < end; at += 16) {
    const hits: u32 = i8x16.bitmask(i8x16.eq(v128.load(at), delimiter))
    if (hits != 0 && at + ctz(hits) < end) return true
  }
  return false
}

/** Compares whole vectors, at least two; bytes after the texts are read and ignored. */
@inline
function isSame(a: usize, b: usize, size: usize): bool {
  const first: u32 = i8x16.bitmask(i8x16.eq(v128.load(a), v128.load(b)))
  const second: u32 = i8x16.bitmask(i8x16.eq(v128.load(a, 16), v128.load(b, 16)))
  if (ctz<u32>(~(first | (second << 16))) < <u32>min<usize>(size, 32)) return false
  for (let i: usize = 32; i < size; i += 16) {
    const same: u32 = i8x16.bitmask(i8x16.eq(v128.load(a + i), v128.load(b + i)))
    const left = size - i
    if (~same << (left < 16 ? <u32>32 - <u32>left : 16) != 0) return false
  }
  return true
}

function widen(template: u32): void {
  const from = capacity
  capacity = max(template + 1, capacity * 2)
  stamps = widened(stamps, from * 4, capacity * 4)
  results = widened(results, from * 4, capacity * 4)
  places = widened(places, from * 4, capacity * 4)
}
