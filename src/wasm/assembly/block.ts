/*
 * The rows of the block that is being built, as columns. `addRow` hashes the message of the record (`timeMs` and the
 * variables beside it), counts it on an equal row of the same millisecond if there is one, finds its template by the
 * signature of the masked message, and stores it as constant text and variables. Rows whose signature is unknown are
 * listed for the miner.
 */
import {
  ATTRIBUTE_VALUE_TEXTS,
  DEDUP_KEY_TEXTS,
  ENVIRONMENT_WORDS,
  CONSTANT_TEXT_WORDS,
  HOST_WORDS,
  MISS_INTS,
  RECORD_TEXTS,
  SOURCE_WORDS,
  SPAN_TEXTS,
  SUMMARY_TEXTS,
  TAGS_TEXTS,
  TRACE_TEXTS,
  WIDE_INTS,
} from '../layout'
import { finish, hashRange, mix, startHash } from './hash'
import { flatTags, tagEnd, tagNameEnd, tagStart, tagValue } from './line'
import { Bytes, copyOver, newBytes, putText, putVarint, reserve, varintBytes, widened, zeroed } from './memory'
import { scan, signatureHi, signatureLo } from './scan'
import { beginConstantTexts, split } from './constant-texts'
import { intern, seedHi, seedLo, wordHash } from './words'

/** @returns the template's number, 0 when no thread knows the signature */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'templateOf')
declare function templateOf(lo: u32, hi: u32): u32

/** The most bytes of a message that the miner reads. */
const MINED_BYTES: usize = 16_384

let rowCapacity: u32 = 4096
export let rows: u32 = 0
export let hashes = zeroed(4096 * 8)
/** Milliseconds since 1970 as integers. */
export let times = zeroed(4096 * 8)
/** The same as floating-point numbers. */
export let timesF64 = zeroed(4096 * 8)
export let counts = zeroed(4096 * 4)
export let severities = zeroed(4096)
export let types = zeroed(4096)
export let templateNos = zeroed(4096 * 4)
let slotCount: u32 = 16_384
let slots = zeroed(16_384 * 4)

export const messages = newBytes(1 << 20)
/** A column of texts that most rows lack: empty texts are filled in when a later row has one. */
@unmanaged
class Texts {
  data: Bytes = changetype<Bytes>(0)
  rows: u32 = 0
}

function newTexts(): Texts {
  const texts = changetype<Texts>(heap.alloc(offsetof<Texts>()))
  texts.data = newBytes(1024)
  texts.rows = 0
  return texts
}

/** A column of few different values: a dictionary of words and an index per row. */
@unmanaged
class Places {
  indexes: usize = 0
  /** The words of the dictionary, in order. */
  words: usize = 0
  wordCapacity: u32 = 0
  count: u32 = 0
  /** 1 + the index in the dictionary, by word; 0 for a word that is not in it. */
  placeOf: usize = 0
  placeCapacity: u32 = 0
}

function newPlaces(): Places {
  const places = changetype<Places>(heap.alloc(offsetof<Places>()))
  places.indexes = zeroed(4096 * 4)
  places.words = zeroed(256 * 4)
  places.wordCapacity = 256
  places.count = 0
  places.placeOf = zeroed(1024 * 4)
  places.placeCapacity = 1024
  return places
}

const trace = newTexts()
const span = newTexts()
const summary = newTexts()
const dedupKey = newTexts()
const tags = newTexts()
const attributeValues = newTexts()
const source = newPlaces()
const host = newPlaces()
const environment = newPlaces()
const constantText = newPlaces()
const attributeNames = newPlaces()
/** The word of the empty text: of messages that are stored whole, and of events without attributes. */
let emptyWord: u32 = 0

/** Rows whose signature is unknown; see MISSES in `layout.ts`. */
export const misses = newBytes(4096)
/** Rows with characters beyond ASCII; see WIDE_ROWS in `layout.ts`. */
export const wides = newBytes(4096)
export const wideMessages = newBytes(4096)

/** The record that `addRow` appends; ranges are addresses. */
export let timeMs: i64 = 0
export let sourceWord: u32 = 0
export let hostWord: u32 = 0
export let environmentWord: u32 = 0
export let eventType: u32 = 0
export let severity: u32 = 0
let isAscii = true
/** The texts of the record that are not columns; see RECORD_TEXTS in `layout.ts`. */
const ATTRIBUTE_NAMES: u32 = 6
const TAGS_JSON: u32 = 7
const IDENTITY: u32 = 8
/** The texts of the record, each with start and end. */
const ranges: usize = memory.data(9 * 8)
let hasTexts = false
/** Whether the JSON of the tags is to be split. */
let hasFlatTags = false

export function setRecord(ms: i64, words: usize, type: u32, level: u32, ascii: bool): void {
  timeMs = ms
  sourceWord = load<u32>(words)
  hostWord = load<u32>(words, 4)
  environmentWord = load<u32>(words, 8)
  eventType = type
  severity = level
  isAscii = ascii
  if (hasTexts) memory.fill(ranges, 0, RECORD_TEXTS * 8)
  hasTexts = false
  hasFlatTags = false
}

/** Sets tags that `readMembers` took. */
export function setFlatTags(start: usize, end: usize): void {
  setText(TAGS_JSON, start, end)
  hasFlatTags = true
}

/** @param slot a text of the record, see `layout.ts` */
export function setText(slot: u32, start: usize, end: usize): void {
  if (start == end) return
  store<u32>(ranges + slot * 8, <u32>start)
  store<u32>(ranges + slot * 8, <u32>end, 4)
  hasTexts = true
}

@inline
function rangeStart(slot: u32): usize {
  return load<u32>(ranges + slot * 8)
}

@inline
function rangeEnd(slot: u32): usize {
  return load<u32>(ranges + slot * 8, 4)
}

export function clearBlock(): void {
  if (rows * 4 > slotCount / 4) memory.fill(slots, 0, slotCount * 4)
  else for (let row: u32 = 0; row < rows; row++) store<u32>(slots + load<u32>(slotOf + row * 4) * 4, 0)
  rows = 0
  messages.length = 0
  misses.length = 0
  wides.length = 0
  wideMessages.length = 0
  clearTexts(trace)
  clearTexts(span)
  clearTexts(summary)
  clearTexts(dedupKey)
  clearTexts(tags)
  clearTexts(attributeValues)
  clearPlaces(source)
  clearPlaces(host)
  clearPlaces(environment)
  clearPlaces(constantText)
  clearPlaces(attributeNames)
}

/** Called after `clearWords`, because the columns refer to words by number. */
export function beginBlock(): void {
  emptyWord = intern(messages.ptr, 0)
  beginConstantTexts()
}

/** Slot of each row in the hash table that finds equal rows. */
let slotOf = zeroed(4096 * 4)

function clearTexts(texts: Texts): void {
  texts.data.length = 0
  texts.rows = 0
}

function clearPlaces(places: Places): void {
  for (let i: u32 = 0; i < places.count; i++)
    store<u32>(places.placeOf + load<u32>(places.words + i * 4) * 4, 0)
  places.count = 0
}

function place(places: Places, word: u32, row: u32): void {
  let at: u32 = word < places.placeCapacity ? load<u32>(places.placeOf + word * 4) : 0
  if (at == 0) at = addPlace(places, word)
  store<u32>(places.indexes + row * 4, at - 1)
}

function addPlace(places: Places, word: u32): u32 {
  if (word >= places.placeCapacity) {
    const capacity = max(word + 1, places.placeCapacity * 2)
    places.placeOf = widened(places.placeOf, places.placeCapacity * 4, capacity * 4)
    places.placeCapacity = capacity
  }
  if (places.count == places.wordCapacity) {
    places.words = widened(places.words, places.wordCapacity * 4, places.wordCapacity * 8)
    places.wordCapacity *= 2
  }
  store<u32>(places.words + places.count * 4, word)
  places.count++
  store<u32>(places.placeOf + word * 4, places.count)
  return places.count
}

let keepsRepeats = false

/** Turns deduplication off, so that each message gets a row of its own. */
export function keepRepeats(): void {
  keepsRepeats = true
}

/**
 * Adds the record as a row, or counts it on the row that it repeats: equal messages of one millisecond are
 * one row.
 *
 * @param mines false when the caller knows the template
 * @param mayHoldDelimiter false when the message has no control characters
 * @returns the row, -1 when it repeats an earlier one
 */
export function addRow(from: usize, length: usize, mines: bool, mayHoldDelimiter: bool): i32 {
  const h = recordHash(from, length)
  let slot = <u32>(h ^ (<u64>timeMs * 0x9e3779b97f4a7c15)) & (slotCount - 1)
  if (keepsRepeats) slot = freeSlot(h, timeMs)
  for (;;) {
    const entry = load<u32>(slots + slot * 4)
    if (entry == 0) break
    const row = entry - 1
    if (load<u64>(hashes + row * 8) == h && load<i64>(times + row * 8) == timeMs) {
      store<u32>(counts + row * 4, load<u32>(counts + row * 4) + 1)
      return -1
    }
    slot = (slot + 1) & (slotCount - 1)
  }
  const row = rows
  if (row == rowCapacity) {
    widenRows()
    slot = freeSlot(h, timeMs)
  }
  rows++
  store<u32>(slots + slot * 4, row + 1)
  store<u32>(slotOf + row * 4, slot)
  store<u64>(hashes + row * 8, h)
  store<i64>(times + row * 8, timeMs)
  store<f64>(timesF64 + row * 8, <f64>timeMs)
  store<u32>(counts + row * 4, 1)
  store<u8>(severities + row, severity)
  store<u8>(types + row, eventType)
  place(source, sourceWord, row)
  place(host, hostWord, row)
  place(environment, environmentWord, row)
  if (hasTexts) addTexts(row)
  else place(attributeNames, emptyWord, row)
  if (!isAscii) addWide(row, from, length)
  const no = mines ? mine(row, from, length) : 0
  store<u32>(templateNos + row * 4, no)
  const word = no == 0 ? 0 : split(messages, from, length, no, mayHoldDelimiter)
  if (word == 0) putText(messages, from, length)
  place(constantText, word == 0 ? emptyWord : word - 1, row)
  return row
}

/** Hashes what identifies an event: messages with equal hashes are one event within the dedup window. */
function recordHash(at: usize, length: usize): u64 {
  let h = mix(startHash(), wordHash(sourceWord))
  if (rangeEnd(DEDUP_KEY_TEXTS) != 0) {
    h = hashRange(h, rangeStart(DEDUP_KEY_TEXTS), rangeEnd(DEDUP_KEY_TEXTS) - rangeStart(DEDUP_KEY_TEXTS))
    return finish(mix(h, 1))
  }
  h = hashRange(h, at, length)
  h = mix(h, wordHash(hostWord))
  h = mix(h, wordHash(environmentWord) + ((<u64>severity << 8) | <u64>eventType))
  if (hasTexts) {
    if (rangeEnd(TRACE_TEXTS) != 0) h = hashRange(h, rangeStart(TRACE_TEXTS), rangeEnd(TRACE_TEXTS) - rangeStart(TRACE_TEXTS))
    const slot: u32 = rangeEnd(IDENTITY) == 0 ? TAGS_JSON : IDENTITY
    const ofTags = tagsHash(rangeStart(slot), rangeEnd(slot))
    if (ofTags != 0) h = mix(h, ofTags)
  }
  return finish(h)
}

/** The most tags that deduplication ignores. */
const MAX_IGNORED: u32 = 64
/** Hashes of their names. */
const ignored: usize = memory.data(64 * 8)
let ignoredCount: u32 = 0

/** Makes deduplication ignore tags with this name. */
export function ignoreTag(at: usize, length: usize): void {
  if (ignoredCount == MAX_IGNORED) unreachable()
  store<u64>(ignored + ignoredCount * 8, hashRange(startHash(), at, length))
  ignoredCount++
}

function isIgnored(no: u32): bool {
  const hash = hashRange(startHash(), tagStart(no), tagNameEnd(no) - tagStart(no))
  for (let i: u32 = 0; i < ignoredCount; i++) if (load<u64>(ignored + i * 8) == hash) return true
  return false
}

/** Hashes flat tags independently of their order; the caller has sorted the names of other tags. 0 for none. */
function tagsHash(from: usize, end: usize): u64 {
  // `{}`
  if (end - from <= 2) return 0
  const count = flatTags(from, end)
  if (count == 0) return hashRange(startHash(), from, end - from)
  let sum: u64 = 0
  for (let i: u32 = 0; i < count; i++) {
    if (ignoredCount != 0 && isIgnored(i)) continue
    sum += finish(hashRange(startHash(), tagStart(i), tagEnd(i) - tagStart(i)))
  }
  return sum
}

function addTexts(row: u32): void {
  pushText(trace, row, rangeStart(TRACE_TEXTS), rangeEnd(TRACE_TEXTS))
  pushText(span, row, rangeStart(SPAN_TEXTS), rangeEnd(SPAN_TEXTS))
  pushText(summary, row, rangeStart(SUMMARY_TEXTS), rangeEnd(SUMMARY_TEXTS))
  pushText(dedupKey, row, rangeStart(DEDUP_KEY_TEXTS), rangeEnd(DEDUP_KEY_TEXTS))
  pushText(tags, row, rangeStart(TAGS_TEXTS), rangeEnd(TAGS_TEXTS))
  pushText(attributeValues, row, rangeStart(ATTRIBUTE_VALUE_TEXTS), rangeEnd(ATTRIBUTE_VALUE_TEXTS))
  place(attributeNames, namesWord(row), row)
}

/** The attributes of a decoded message are given; those of a line are its flat tags. @returns the word of their paths */
function namesWord(row: u32): u32 {
  const start = rangeStart(ATTRIBUTE_NAMES)
  if (start != 0) return intern(start, rangeEnd(ATTRIBUTE_NAMES) - start)
  if (!hasFlatTags) return emptyWord
  const count = flatTags(rangeStart(TAGS_JSON), rangeEnd(TAGS_JSON))
  let nameBytes: usize = count - 1
  let valueBytes: usize = count - 1
  for (let i: u32 = 0; i < count; i++) {
    nameBytes += tagNameEnd(i) - tagStart(i)
    valueBytes += tagEnd(i) - tagValue(i)
  }
  fillTo(attributeValues, row)
  const data = attributeValues.data
  reserve(data, valueBytes + 5)
  putVarint(data, <u32>valueBytes)
  joinedNames.length = 0
  reserve(joinedNames, nameBytes)
  let name = joinedNames.ptr
  let value = data.ptr + data.length
  for (let i: u32 = 0; i < count; i++) {
    if (i != 0) {
      store<u8>(name++, DELIMITER)
      store<u8>(value++, DELIMITER)
    }
    const nameLength = tagNameEnd(i) - tagStart(i)
    const valueLength = tagEnd(i) - tagValue(i)
    copyOver(name, tagStart(i), nameLength)
    copyOver(value, tagValue(i), valueLength)
    name += nameLength
    value += valueLength
  }
  data.length += valueBytes
  attributeValues.rows = row + 1
  // Called last, because it may move the words, and the tags may be one of them.
  return intern(joinedNames.ptr, nameBytes)
}

const DELIMITER: u32 = 1
const joinedNames = newBytes(8192)

function pushText(texts: Texts, row: u32, start: usize, end: usize): void {
  if (start == end) return
  fillTo(texts, row)
  putText(texts.data, start, end - start)
  texts.rows = row + 1
}

function fillTo(texts: Texts, count: u32): void {
  const missing = count - texts.rows
  reserve(texts.data, missing)
  memory.fill(texts.data.ptr + texts.data.length, 0, missing)
  texts.data.length += missing
  texts.rows = count
}

function addWide(row: u32, message: usize, length: usize): void {
  const offset = wideMessages.length
  reserve(wideMessages, length)
  memory.copy(wideMessages.ptr + offset, message, length)
  wideMessages.length += length
  reserve(wides, WIDE_INTS * 4)
  const at = wides.ptr + wides.length
  const traceBytes = rangeEnd(TRACE_TEXTS) - rangeStart(TRACE_TEXTS)
  store<u32>(at, row)
  store<u32>(at, <u32>offset, 4)
  store<u32>(at, <u32>length, 8)
  store<u32>(at, <u32>(trace.data.length - traceBytes), 12)
  store<u32>(at, <u32>traceBytes, 16)
  store<u32>(at, hostWord, 20)
  wides.length += WIDE_INTS * 4
}

/** The thread's cache of signatures: buckets of four entries of lo, hi, template number. */
const SIGNATURE_BUCKETS: u32 = 16_384
const signatures = zeroed(16_384 * 48)
let nextWay: u32 = 0

/** @returns the number of the message's template, 0 when no thread knows its signature */
function mine(row: u32, at: usize, textLength: usize): u32 {
  const length = min(textLength, MINED_BYTES)
  scan(at, at + length, seedLo(sourceWord), seedHi(sourceWord), 0)
  const lo = signatureLo
  const hi = signatureHi
  const bucket = signatures + (lo & (SIGNATURE_BUCKETS - 1)) * 48
  for (let entry = bucket; entry < bucket + 48; entry += 12) {
    if (load<u32>(entry) != lo || load<u32>(entry, 4) != hi) continue
    return load<u32>(entry, 8)
  }
  const no = templateOf(lo, hi)
  if (no == 0) {
    reserve(misses, MISS_INTS * 4)
    const miss = misses.ptr + misses.length
    store<u32>(miss, row)
    store<u32>(miss, lo, 4)
    store<u32>(miss, hi, 8)
    // The message is stored whole after its length.
    store<u32>(miss, <u32>(messages.length + varintBytes(<u32>textLength)), 12)
    store<u32>(miss, <u32>length, 16)
    misses.length += MISS_INTS * 4
    return 0
  }
  let entry = bucket
  while (entry < bucket + 48 && load<u32>(entry, 8) != 0) entry += 12
  if (entry == bucket + 48) entry = bucket + (nextWay++ & 3) * 12
  store<u32>(entry, lo)
  store<u32>(entry, hi, 4)
  store<u32>(entry, no, 8)
  return no
}

/** Empties the cache of signatures, because templates were renumbered. */
export function forgetSignatures(): void {
  memory.fill(signatures, 0, SIGNATURE_BUCKETS * 48)
}

export function setTemplate(row: u32, no: u32): void {
  store<u32>(templateNos + row * 4, no)
}

function widenRows(): void {
  const from = rowCapacity
  rowCapacity *= 2
  hashes = widened(hashes, from * 8, rowCapacity * 8)
  times = widened(times, from * 8, rowCapacity * 8)
  timesF64 = widened(timesF64, from * 8, rowCapacity * 8)
  counts = widened(counts, from * 4, rowCapacity * 4)
  severities = widened(severities, from, rowCapacity)
  types = widened(types, from, rowCapacity)
  templateNos = widened(templateNos, from * 4, rowCapacity * 4)
  slotOf = widened(slotOf, from * 4, rowCapacity * 4)
  source.indexes = widened(source.indexes, from * 4, rowCapacity * 4)
  host.indexes = widened(host.indexes, from * 4, rowCapacity * 4)
  environment.indexes = widened(environment.indexes, from * 4, rowCapacity * 4)
  constantText.indexes = widened(constantText.indexes, from * 4, rowCapacity * 4)
  attributeNames.indexes = widened(attributeNames.indexes, from * 4, rowCapacity * 4)
  slotCount = rowCapacity * 4
  slots = heap.realloc(slots, slotCount * 4)
  memory.fill(slots, 0, slotCount * 4)
  for (let row: u32 = 0; row < rows; row++) {
    const slot = freeSlot(load<u64>(hashes + row * 8), load<i64>(times + row * 8))
    store<u32>(slots + slot * 4, row + 1)
    store<u32>(slotOf + row * 4, slot)
  }
}

function freeSlot(h: u64, ms: i64): u32 {
  let slot = <u32>(h ^ (<u64>ms * 0x9e3779b97f4a7c15)) & (slotCount - 1)
  while (load<u32>(slots + slot * 4) != 0) slot = (slot + 1) & (slotCount - 1)
  return slot
}

/** Completes a column of texts with empty values. @param column see `layout.ts` */
export function finishTexts(column: u32): Bytes {
  const texts =
    column == TRACE_TEXTS
      ? trace
      : column == SPAN_TEXTS
        ? span
        : column == SUMMARY_TEXTS
          ? summary
          : column == DEDUP_KEY_TEXTS
            ? dedupKey
            : column == TAGS_TEXTS
              ? tags
              : attributeValues
  fillTo(texts, rows)
  return texts.data
}

/** @param column see `layout.ts` */
export function placesOf(column: u32): Places {
  if (column == SOURCE_WORDS) return source
  if (column == HOST_WORDS) return host
  if (column == ENVIRONMENT_WORDS) return environment
  return column == CONSTANT_TEXT_WORDS ? constantText : attributeNames
}
