import * as layout from '../layout'

/**
 * The entries of the dedup window and its look-ups; `ingest/dedup-window.ts` has the contract.
 *
 * Each entry has a serial number and a slot in a ring. The entries of a bucket are chained from the newest to the
 * oldest as in the match finder of DEFLATE (zlib's deflate.c): a chain ends at a serial number that the ring has
 * overwritten, so nothing is unlinked. A bucket also has a 32-bit Bloom filter over the hashes of its chain, because
 * most messages are new, and then no entry is read.
 */

/** Rows of a batch: their buckets fit the processor's caches (bench/micro/sequencer.bench.ts). */
const BATCH: u32 = 512
/** Entries read per look-up and bucket; only times that run backwards by milliseconds make longer chains. */
const MAX_CHAIN: u32 = 64
const FORGOTTEN: u32 = 0xffff_ffff
/** Binary logarithm of the steps of time whose two buckets are neighbours. */
const RUN_BITS: u32 = 4
/**
 * Bytes of an entry: hash u64, serial number of the next older entry in its chain u32, owner u32, first ms f64, id and
 * priority u64.
 */
const ENTRY: usize = 32
const ID_MASK: u64 = 0x00ff_ffff_ffff_ffff
/** Replaces the id of an entry that was added in this batch; the other bits are the row. */
const UNSETTLED: u64 = 0x8000_0000_0000_0000
const PAGE: usize = 65_536
/** The memory grows in steps of 16 MiB. */
const STEP_PAGES: usize = 256

/** Arrays of a batch, by row. */
const batchHashes: usize = memory.data(512 * 8)
const batchTimes: usize = memory.data(512 * 8)
const batchOwners: usize = memory.data(512 * 4)
const batchIds: usize = memory.data(512 * 8)
const batchNew: usize = memory.data(512)
const batchPriorities: usize = memory.data(512)
const batchEntries: usize = memory.data(512 * 4)
const batchBuckets: usize = memory.data(512 * 4)

/** Values of `batchNew`. */
const REPEATS: u8 = 0
const BEGINS: u8 = 1
/** The row repeats an event that began in the same batch. */
const REPEATS_ROW: u8 = 2
/** Flag in a bucket number: the step is the first of a run. */
const FIRST_OF_RUN: u32 = 1 << 31

/** 0 = no message repeats another. */
let windowMs: f64 = 1
let capacity: u32 = 0
let maxSerial: u32 = 0
/** By bucket: serial number of the newest entry u32, Bloom filter of the hashes u32. */
let heads: usize = 0
let bucketMask: u32 = 0
let entries: usize = 0
/** Entries for which memory is allocated. */
let allocated: u32 = 0
let count: u32 = 0
/** Serial number of the next entry; 0 is none. */
let next: u32 = 1
/** Serial number of the entry in slot 0. */
let lap: u32 = 1

/** @param lastSerial serial numbers are reduced when they exceed it */
export function openWindow(ms: f64, most: u32, lastSerial: u32): void {
  windowMs = ms
  capacity = most
  maxSerial = lastSerial
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

/** Returns the address of an array of the batch. @param what see `layout.ts` */
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

/** Allocates memory for a batch up to the limit of the window; views of the memory are invalid when it grows. */
export function reserveWindow(): void {
  const wanted = min(next + BATCH - lap, capacity)
  while (allocated < wanted) {
    if (memory.grow(<i32>STEP_PAGES) < 0) {
      // If the system has no more memory, the window keeps its size.
      if (allocated == 0) unreachable()
      capacity = min(capacity, allocated)
      return
    }
    allocated += <u32>((STEP_PAGES * PAGE) / ENTRY)
  }
}

/**
 * Finds the event of each row of the batch, or begins one.
 * @returns the number of new events, whose ids and priorities the caller writes before `settleRows`
 */
export function lookUpRows(rows: u32): u32 {
  prefetch(rows)
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

/** Copies id and priority at once, because a later row of the batch may overwrite the entry. */
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

/** Stores ids and priorities of the new events and copies them to the rows that repeat these. */
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
    // A later row of the batch may have overwritten the entry.
    if (load<u64>(at, 24) == (UNSETTLED | <u64>row))
      store<u64>(at, id | ((<u64>load<u8>(batchPriorities + row)) << 56), 24)
  }
}

export function setWindowPriority(id: f64, priority: u32): void {
  const wanted = <u64>id
  for (let slot: u32 = 0; slot < count; slot++) {
    const at = entryAt(slot)
    if ((load<u64>(at, 24) & ID_MASK) == wanted) store<u64>(at, wanted | ((<u64>priority) << 56), 24)
  }
}

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

let prefetched: u32 = 0

/** Prefetches the buckets: these reads do not depend on one another, so their cache misses overlap. */
function prefetch(rows: u32): void {
  let sum: u32 = 0
  for (let row: u32 = 0; row < rows; row++) {
    const step = stepOf(load<f64>(batchTimes + row * 8))
    const bucket = bucketOf(load<u64>(batchHashes + row * 8), step)
    const isFirst = (step & ((1 << RUN_BITS) - 1)) == 0
    store<u32>(batchBuckets + row * 4, isFirst ? bucket | FIRST_OF_RUN : bucket)
    sum ^= load<u32>(heads + (<usize>bucket << 3))
  }
  // The compiler removes reads whose result is unused.
  prefetched = sum
}

@inline
function stepOf(timeMs: f64): i64 {
  return <i64>Math.floor(timeMs / max(windowMs, 1))
}

@inline
function entryAt(slot: u32): usize {
  return entries + <usize>slot * ENTRY
}

@inline
function bitOf(hash: u64): u32 {
  return <u32>1 << <u32>(hash >> 59)
}

/** The buckets of a step and of the one before it differ in the last bit only, unless the step is the first of a run. */
@inline
function bucketOf(hash: u64, step: i64): u32 {
  const h = <u32>hash ^ (<u32>(hash >> 32) * 0x9e3779b1) ^ (<u32>(step >> RUN_BITS) * 0x85ebca6b)
  return ((h ^ (h >> 15)) & bucketMask) ^ (<u32>step & 1)
}

/** Returns the slot of a serial number, -1 when its entry is overwritten. */
@inline
function slotOf(serial: u32): i64 {
  if (serial == 0 || serial < next - count) return -1
  return serial >= lap ? <i64>(serial - lap) : <i64>serial - <i64>lap + <i64>capacity
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

/** @returns the slot of the entry */
function begin(row: u32, hash: u64, bit: u32, bucket: u32): u32 {
  if (next - lap == capacity) lap = next
  if (next > maxSerial) renumber()
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

/** Renumbers all entries, so that serial numbers fit 32 bits. */
function renumber(): void {
  const by = lap > capacity ? lap - capacity - 1 : 0
  if (by == 0) return
  for (let bucket: u32 = 0; bucket <= bucketMask; bucket++) shift(heads + (<usize>bucket << 3), by)
  for (let slot: u32 = 0; slot < count; slot++) shift(entryAt(slot) + 8, by)
  next -= by
  lap -= by
}

function shift(at: usize, by: u32): void {
  const serial = load<u32>(at)
  store<u32>(at, slotOf(serial) < 0 ? 0 : serial - by)
}
