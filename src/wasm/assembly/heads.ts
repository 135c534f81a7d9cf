/*
 * Lines that precede the records of a body and name their source, such as the actions of a bulk
 * request. The caller parses each distinct line once and gives it a number. An equal line later in
 * the body is recognised by comparing bytes.
 */
import { finish, hashRange, startHash } from './hash'
import { newBytes, reserve, zeroed } from './memory'

/** A head is the address and the length of its line, its number, and the word of its source. */
const HEADS: usize = 256
const HEAD_BYTES: usize = 16
const MAX_LINE: usize = 256
const LF: i8 = 10

const table = zeroed(256 * 16)
let isEmpty = true
/** The numbers of the heads whose records were read. */
export const passed = newBytes(4096)
/** The address of the line after the head that was found last. */
export let recordAt: usize = 0

/** Forgets the heads of the last body. */
export function clearHeads(): void {
  if (!isEmpty) memory.fill(table, 0, HEADS * HEAD_BYTES)
  isEmpty = true
}

@inline
function placeOf(at: usize, length: usize): usize {
  return table + (<usize>finish(hashRange(startHash(), at, length)) & (HEADS - 1)) * HEAD_BYTES
}

/** Caches a line, which replaces another one with the same hash. */
export function setHead(at: usize, length: usize, no: u32, source: u32): void {
  if (length > MAX_LINE) return
  const head = placeOf(at, length)
  store<u32>(head, <u32>at)
  store<u32>(head, <u32>length, 4)
  store<u32>(head, no, 8)
  store<u32>(head, source, 12)
  isEmpty = false
}

/** @returns the head that begins here and is followed by a line, 0 for another line */
export function headAt(at: usize, end: usize): usize {
  const to = lineFeed(at, min(end, at + MAX_LINE + 1))
  if (to == 0 || to + 1 >= end) return 0
  const length = to - at
  const head = placeOf(at, length)
  if (<usize>load<u32>(head, 4) != length || load<u32>(head) == 0) return 0
  if (memory.compare(load<u32>(head), at, length) != 0) return 0
  recordAt = to + 1
  return head
}

@inline
export function sourceOf(head: usize): u32 {
  return load<u32>(head, 12)
}

export function pass(head: usize): void {
  reserve(passed, 4)
  store<u32>(passed.ptr + passed.length, load<u32>(head, 8))
  passed.length += 4
}

/** @returns 0 for none */
function lineFeed(from: usize, to: usize): usize {
  for (let at = from; at < to; at += 16) {
    const found: u32 = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(LF)))
    if (found == 0) continue
    const stop = at + ctz<u32>(found)
    return stop < to ? stop : 0
  }
  return 0
}
