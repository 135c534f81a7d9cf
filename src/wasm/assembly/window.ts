import * as layout from '../layout'

/**
 * What the dedup window holds, and the look-ups of many rows at a time; see `pipeline/dedup-window.ts`.
 *
 * Entries lie in a ring, chained from the newest to the oldest of a bucket as in the match finder of DEFLATE
 * (zlib's deflate.c): a chain ends where it leads to a turn that the ring has gone past, so nothing is unlinked.
 * A bucket also has a bit for some of each hash in its chain: most messages are new, and then no entry is looked at.
 */

/** rows of one call: what they need of the buckets is in the processor's caches; bench/micro/sequencer.bench.ts */
const BATCH: u32 = 512
/** entries looked at per bucket of one message: only times that run backwards by milliseconds make more */
const MAX_CHAIN: u32 = 64
const FORGOTTEN: u32 = 0xffff_ffff
/** steps whose buckets lie side by side */
const RUN_BITS: u32 = 4
/** hash u64, turn before it in its chain u32, owner u32, first ms f64, id and priority u64 */
const ENTRY: usize = 32
const ID_MASK: u64 = 0x00ff_ffff_ffff_ffff
/** in the place of the id, of an entry that was added in this batch: the rest is the row */
const UNSETTLED: u64 = 0x8000_0000_0000_0000
const PAGE: usize = 65_536
/** memory is asked for in steps of 16 MiB */
const STEP_PAGES: usize = 256

/** The arrays of a batch, by row. */
const batchHashes: usize = memory.data(512 * 8)
const batchTimes: usize = memory.data(512 * 8)
const batchOwners: usize = memory.data(512 * 4)
const batchIds: usize = memory.data(512 * 8)
const batchNew: usize = memory.data(512)
const batchPriorities: usize = memory.data(512)
const batchEntries: usize = memory.data(512 * 4)
const batchBuckets: usize = memory.data(512 * 4)

/** What `batchNew` says. */
const REPEATS: u8 = 0
const BEGINS: u8 = 1
/** an event that began in the same batch */
const REPEATS_ROW: u8 = 2
/** of a bucket number: the step is the first of a run */
const FIRST_OF_RUN: u32 = 1 << 31

let windowMs: f64 = 1
let capacity: u32 = 0
let maxTurns: u32 = 0
/** newest turn of a chain u32, bits of its hashes u32 */
let heads: usize = 0
let bucketMask: u32 = 0
let entries: usize = 0
/** entries that there is memory for */
let roomFor: u32 = 0
let count: u32 = 0
/** turn of the next entry; 0 is none */
let next: u32 = 1
/** turn of the entry that lies first in the ring */
let lap: u32 = 1

/** @param turns after which they are counted anew */
export function openWindow(ms: f64, most: u32, turns: u32): void {
  windowMs = ms
  capacity = most
  maxTurns = turns
  let buckets: u32 = 2
  while (buckets < most && buckets < 1 << 27) buckets *= 2
  bucketMask = buckets - 1
  heads = <usize>memory.size() * PAGE
  if (memory.grow(<i32>((<usize>buckets * 8 + PAGE - 1) / PAGE)) < 0) unreachable()
  entries = <usize>memory.size() * PAGE
}

export function windowSize(): u32 {
  return count
}

export function windowBatch(): u32 {
  return BATCH
}

/** Where an array of the batch begins. @param what see `layout.ts` */
export function windowAt(what: u32): usize {
  switch (what) {
    case layout.WINDOW_HASHES:
      return batchHashes
    case layout.WINDOW_TIMES:
      return batchTimes
    case layout.WINDOW_OWNERS:
      return batchOwners
    case layout.WINDOW_IDS:
      return batchIds
    case layout.WINDOW_BEGINS:
      return batchNew
    default:
      return batchPriorities
  }
}

/** Makes room for a batch, as far as the window may grow; views of the memory are made anew when it did. */
export function reserveWindow(): void {
  const wanted = min(next + BATCH - lap, capacity)
  while (roomFor < wanted) {
    if (memory.grow(<i32>STEP_PAGES) < 0) {
      // the system has no more: what there is must do
      if (roomFor == 0) unreachable()
      capacity = min(capacity, roomFor)
      return
    }
    roomFor += <u32>((STEP_PAGES * PAGE) / ENTRY)
  }
}

/**
 * Finds the event of each row of the batch, or begins one.
 * @returns how many began; their ids and priorities are to be written before `settleRows`
 */
export function lookUpRows(rows: u32): u32 {
  readAhead(rows)
  let added: u32 = 0
  for (let row: u32 = 0; row < rows; row++) {
    const hash = load<u64>(batchHashes + row * 8)
    const timeMs = load<f64>(batchTimes + row * 8)
    const known = load<u32>(batchBuckets + row * 4)
    const bucket = known & ~FIRST_OF_RUN
    const bit = bitOf(hash)
    let slot = findIn(bucket, hash, bit, timeMs)
    if (slot < 0) {
      const before = bucket == known ? bucket ^ 1 : bucketOf(hash, stepOf(timeMs) - 1)
      slot = findIn(before, hash, bit, timeMs)
    }
    if (slot < 0) {
      store<u32>(batchEntries + row * 4, begin(row, hash, bit, bucket))
      store<u8>(batchNew + row, BEGINS)
      added++
    } else repeat(row, load<u64>(entryAt(<u32>slot), 24))
  }
  return added
}

/** The entry may be overwritten before the batch is settled: what it says is taken at once. */
function repeat(row: u32, idAndPriority: u64): void {
  if ((idAndPriority & UNSETTLED) != 0) {
    store<u32>(batchEntries + row * 4, <u32>idAndPriority)
    store<u8>(batchNew + row, REPEATS_ROW)
    return
  }
  store<u64>(batchIds + row * 8, idAndPriority & ID_MASK)
  store<u8>(batchPriorities + row, <u8>(idAndPriority >> 56))
  store<u8>(batchNew + row, REPEATS)
}

/** Gives the events that began their ids and priorities, and so the rows that repeat them. */
export function settleRows(rows: u32): void {
  for (let row: u32 = 0; row < rows; row++) {
    const kind = load<u8>(batchNew + row)
    if (kind == REPEATS) continue
    const place = load<u32>(batchEntries + row * 4)
    if (kind == REPEATS_ROW) {
      store<u64>(batchIds + row * 8, load<u64>(batchIds + place * 8))
      store<u8>(batchPriorities + row, load<u8>(batchPriorities + place))
      store<u8>(batchNew + row, REPEATS)
      continue
    }
    const id = <u64>load<f64>(batchIds + row * 8)
    store<u64>(batchIds + row * 8, id)
    const at = entryAt(place)
    // a later row of the batch may have taken the place
    if (load<u64>(at, 24) == (UNSETTLED | <u64>row))
      store<u64>(at, id | ((<u64>load<u8>(batchPriorities + row)) << 56), 24)
  }
}

/** Repeats of event `id` are counted under another priority from here on. */
export function setWindowPriority(id: f64, priority: u32): void {
  const wanted = <u64>id
  for (let slot: u32 = 0; slot < count; slot++) {
    const at = entryAt(slot)
    if ((load<u64>(at, 24) & ID_MASK) == wanted) store<u64>(at, wanted | ((<u64>priority) << 56), 24)
  }
}

/** No later message joins an event of this source. */
export function forgetOwner(owner: u32): void {
  for (let slot: u32 = 0; slot < count; slot++) {
    const at = entryAt(slot)
    if (load<u32>(at, 12) == owner) store<u32>(at, FORGOTTEN, 12)
  }
}

export function clearWindow(): void {
  memory.fill(heads, 0, (<usize>bucketMask + 1) * 8)
  count = 0
  next = 1
  lap = 1
}

let seen: u32 = 0

/**
 * Reads what the look-ups will need: they look at places all over the memory, each only after the last one
 * is decided; here the processor fetches many at a time.
 */
function readAhead(rows: u32): void {
  let sum: u32 = 0
  for (let row: u32 = 0; row < rows; row++) {
    const step = stepOf(load<f64>(batchTimes + row * 8))
    const bucket = bucketOf(load<u64>(batchHashes + row * 8), step)
    const isFirst = (step & ((1 << RUN_BITS) - 1)) == 0
    store<u32>(batchBuckets + row * 4, isFirst ? bucket | FIRST_OF_RUN : bucket)
    sum ^= load<u32>(heads + (<usize>bucket << 3))
  }
  // the compiler removes reads whose result is unused
  seen = sum
}

@inline
function stepOf(timeMs: f64): i64 {
  return <i64>Math.floor(timeMs / windowMs)
}

@inline
function entryAt(slot: u32): usize {
  return entries + <usize>slot * ENTRY
}

@inline
function bitOf(hash: u64): u32 {
  return <u32>1 << <u32>(hash >> 59)
}

/** A step and the one before it differ in the last bit, but for the first of a run. */
@inline
function bucketOf(hash: u64, step: i64): u32 {
  const h = <u32>hash ^ (<u32>(hash >> 32) * 0x9e3779b1) ^ (<u32>(step >> RUN_BITS) * 0x85ebca6b)
  return ((h ^ (h >> 15)) & bucketMask) ^ (<u32>step & 1)
}

/** Where the entry of a turn lies, -1 when the ring has gone past it. */
@inline
function slotOf(turn: u32): i64 {
  if (turn == 0 || turn < next - count) return -1
  return turn >= lap ? <i64>(turn - lap) : <i64>turn - <i64>lap + <i64>capacity
}

@inline
function findIn(bucket: u32, hash: u64, bit: u32, timeMs: f64): i64 {
  const head = heads + (<usize>bucket << 3)
  return (load<u32>(head, 4) & bit) == 0 ? -1 : walk(load<u32>(head), hash, timeMs)
}

function walk(newest: u32, hash: u64, timeMs: f64): i64 {
  let slot = slotOf(newest)
  for (let walked: u32 = 0; slot >= 0 && walked < MAX_CHAIN; walked++) {
    const at = entryAt(<u32>slot)
    if (load<u64>(at) == hash && isOf(at, timeMs)) return slot
    slot = slotOf(load<u32>(at, 8))
  }
  return -1
}

function isOf(at: usize, timeMs: f64): bool {
  const first = load<f64>(at, 16)
  return timeMs >= first && timeMs < first + windowMs && load<u32>(at, 12) != FORGOTTEN
}

/** @returns where the entry lies */
function begin(row: u32, hash: u64, bit: u32, bucket: u32): u32 {
  if (next - lap == capacity) lap = next
  if (next > maxTurns) countAnew()
  const slot = next - lap
  const at = entryAt(slot)
  const head = heads + (<usize>bucket << 3)
  const before = load<u32>(head)
  const isLinked = slotOf(before) >= 0
  store<u64>(at, hash)
  store<u32>(at, isLinked ? before : 0, 8)
  store<u32>(at, load<u32>(batchOwners + row * 4), 12)
  store<f64>(at, load<f64>(batchTimes + row * 8), 16)
  store<u64>(at, UNSETTLED | <u64>row, 24)
  store<u32>(head, next)
  store<u32>(head, isLinked ? load<u32>(head, 4) | bit : bit, 4)
  next++
  if (count < capacity) count++
  return slot
}

/** Turns are counted from the lap before this one on. */
function countAnew(): void {
  const by = lap > capacity ? lap - capacity - 1 : 0
  if (by == 0) return
  for (let bucket: u32 = 0; bucket <= bucketMask; bucket++) shift(heads + (<usize>bucket << 3), by)
  for (let slot: u32 = 0; slot < count; slot++) shift(entryAt(slot) + 8, by)
  next -= by
  lap -= by
}

/** A turn that the ring has gone past leads nowhere. */
function shift(at: usize, by: u32): void {
  const turn = load<u32>(at)
  store<u32>(at, slotOf(turn) < 0 ? 0 : turn - by)
}
