import { firstBytes } from './bytes'
import { finish, hashRange, startHash } from './hash'
import { newBytes, reserve, widened, zeroed } from './memory'

/**
 * Numbers each distinct byte string (a word), so that a repeated value costs a hash and a
 * comparison, but no JavaScript string. The properties of words are arrays by their number.
 */
const arena = newBytes(65_536)
let capacity: u32 = 1024
let slotCount: u32 = 4096
let slots = zeroed(4096 * 4)
let hashes = zeroed(1024 * 8)
let starts = zeroed(1024 * 4)
let lengths = zeroed(1024 * 4)
export let wordCount: u32 = 0

/** Cached results of the imports of `index.ts`, by word; 0 = not called yet. */
let sourceStates = zeroed(1024)
let seedsLo = zeroed(1024 * 4)
let seedsHi = zeroed(1024 * 4)
let typeStates = zeroed(1024)
let nameStates = zeroed(1024)
let levelStates = zeroed(1024)
let levelTags = zeroed(1024 * 4)
/** The body for which `admitSource` was last called, and its result, by word. */
let bodyStamps = zeroed(1024 * 4)
let bodyStates = zeroed(1024)

/**
 * A direct-mapped cache of words of up to 32 bytes in front of the hash table. An entry is the length, the number,
 * the first 16 and the last 16 bytes.
 */
const RECENT: u32 = 1024
const RECENT_BYTES: u32 = 40
const RECENT_LENGTH: usize = 32
const recent = zeroed(1024 * 40)

export function clearWords(): void {
  memory.fill(recent, 0, RECENT * RECENT_BYTES)
  memory.fill(slots, 0, slotCount * 4)
  memory.fill(sourceStates, 0, capacity)
  memory.fill(typeStates, 0, capacity)
  memory.fill(nameStates, 0, capacity)
  memory.fill(levelStates, 0, capacity)
  memory.fill(levelTags, 0, capacity * 4)
  memory.fill(bodyStamps, 0, capacity * 4)
  wordCount = 0
  arena.length = 0
}

/** @returns the word's number */
export function intern(at: usize, length: usize): u32 {
  if (length > RECENT_LENGTH) return find(at, length)
  const head = firstBytes(at, min<usize>(length, 16))
  const tail = length > 16 ? v128.load(at + length - 16) : i64x2.splat(0)
  const sum =
    (v128.extract_lane<u64>(head, 0) ^
      rotl<u64>(v128.extract_lane<u64>(head, 1), 29) ^
      rotl<u64>(v128.extract_lane<u64>(tail, 0), 17)) *
      0x9e3779b97f4a7c15 +
    v128.extract_lane<u64>(tail, 1) * 0xd6e8feb86659fd93 +
    length
  const entry = recent + <usize>((sum ^ (sum >> 29)) >> 54) * RECENT_BYTES
  const key = <u32>length + 1
  const other = v128.or(v128.xor(head, v128.load(entry, 8)), v128.xor(tail, v128.load(entry, 24)))
  if (load<u32>(entry) == key && !v128.any_true(other)) return load<u32>(entry, 4)
  const no = find(at, length)
  store<u32>(entry, key)
  store<u32>(entry, no, 4)
  v128.store(entry, head, 8)
  v128.store(entry, tail, 24)
  return no
}

function find(at: usize, length: usize): u32 {
  const h = finish(hashRange(startHash(), at, length))
  const mask = slotCount - 1
  let slot = <u32>h & mask
  for (;;) {
    const entry = load<u32>(slots + slot * 4)
    if (entry == 0) break
    const no = entry - 1
    if (load<u64>(hashes + no * 8) == h && equals(no, at, length)) return no
    slot = (slot + 1) & mask
  }
  return add(at, length, h)
}

function equals(no: u32, at: usize, length: usize): bool {
  if (<usize>load<u32>(lengths + no * 4) != length) return false
  return memory.compare(arena.ptr + load<u32>(starts + no * 4), at, length) == 0
}

function add(at: usize, length: usize, h: u64): u32 {
  if (wordCount == capacity) widen()
  const no = wordCount++
  reserve(arena, length)
  memory.copy(arena.ptr + arena.length, at, length)
  store<u32>(starts + no * 4, <u32>arena.length)
  store<u32>(lengths + no * 4, <u32>length)
  store<u64>(hashes + no * 8, h)
  arena.length += length
  place(no, h)
  return no
}

function place(no: u32, h: u64): void {
  const mask = slotCount - 1
  let slot = <u32>h & mask
  while (load<u32>(slots + slot * 4) != 0) slot = (slot + 1) & mask
  store<u32>(slots + slot * 4, no + 1)
}

function widen(): void {
  const from = capacity
  capacity *= 2
  hashes = widened(hashes, from * 8, capacity * 8)
  starts = widened(starts, from * 4, capacity * 4)
  lengths = widened(lengths, from * 4, capacity * 4)
  sourceStates = widened(sourceStates, from, capacity)
  seedsLo = widened(seedsLo, from * 4, capacity * 4)
  seedsHi = widened(seedsHi, from * 4, capacity * 4)
  typeStates = widened(typeStates, from, capacity)
  nameStates = widened(nameStates, from, capacity)
  levelStates = widened(levelStates, from, capacity)
  levelTags = widened(levelTags, from * 4, capacity * 4)
  bodyStamps = widened(bodyStamps, from * 4, capacity * 4)
  bodyStates = widened(bodyStates, from, capacity)
  slots = heap.realloc(slots, capacity * 16)
  slotCount = capacity * 4
  memory.fill(slots, 0, slotCount * 4)
  for (let no: u32 = 0; no < wordCount; no++) place(no, load<u64>(hashes + no * 8))
}

export function wordBytes(): usize {
  return arena.length
}

export function wordStart(no: u32): usize {
  return arena.ptr + load<u32>(starts + no * 4)
}

export function wordLength(no: u32): u32 {
  return load<u32>(lengths + no * 4)
}

@inline
export function wordHash(no: u32): u64 {
  return load<u64>(hashes + no * 8)
}

@inline
export function sourceState(no: u32): u32 {
  return load<u8>(sourceStates + no)
}

/** @param state 1 = may be a source, 2 = may not. @param lo,hi the seed of the source's signatures */
export function setSource(no: u32, state: u32, lo: u32, hi: u32): void {
  store<u8>(sourceStates + no, state)
  store<u32>(seedsLo + no * 4, lo)
  store<u32>(seedsHi + no * 4, hi)
}

@inline
export function seedLo(no: u32): u32 {
  return load<u32>(seedsLo + no * 4)
}

@inline
export function seedHi(no: u32): u32 {
  return load<u32>(seedsHi + no * 4)
}

@inline
export function typeState(no: u32): u32 {
  return load<u8>(typeStates + no)
}

/** @param state 1 = no type of event, else 2 + index into EVENT_TYPES */
export function setType(no: u32, state: u32): void {
  store<u8>(typeStates + no, state)
}

@inline
export function nameState(no: u32): u32 {
  return load<u8>(nameStates + no)
}

/** @param state 1 = a member of this name must be parsed, 2 = it is a tag */
export function setName(no: u32, state: u32): void {
  store<u8>(nameStates + no, state)
}

@inline
export function levelState(no: u32): u32 {
  return load<u8>(levelStates + no)
}

@inline
export function levelTagsOf(no: u32): u32 {
  return load<u32>(levelTags + no * 4)
}

/**
 * @param state 1 = the line must be parsed, 2 = names no level, else 3 + index into SEVERITIES
 * @param tags 1 + number of the word that is the JSON of the tags with the producer's own level, 0 = none
 */
export function setLevel(no: u32, state: u32, tags: u32): void {
  store<u8>(levelStates + no, state)
  store<u32>(levelTags + no * 4, tags)
}

/** @returns the result of `admitSource` for this body, 0 = not called yet */
@inline
export function bodyState(no: u32, body: u32): u32 {
  return load<u32>(bodyStamps + no * 4) == body ? <u32>load<u8>(bodyStates + no) : 0
}

export function setBodyState(no: u32, body: u32, state: u32): void {
  store<u32>(bodyStamps + no * 4, body)
  store<u8>(bodyStates + no, state)
}
