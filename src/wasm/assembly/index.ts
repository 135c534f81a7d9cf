/**
 * Ingest in WebAssembly: the bytes of a body's lines become rows of column blocks, with no object
 * and no string in between. `line.ts` reads the members of a line, `time.ts` its time, `scan.ts`
 * masks and hashes the message, `words.ts` numbers the values of the columns with few distinct
 * ones, `block.ts` appends the row. A line that may be read differently by `ingest/formats` is left
 * to those decoders. `kernel.ts` is the only caller.
 */
import * as layout from '../layout'
import * as block from './block'
import { initBytes } from './bytes'
import * as heads from './heads'
import { setSecrets } from './hash'
import * as line from './line'
import * as loki from './loki'
import { newBytes, reserve, zeroed } from './memory'
import * as otlp from './otlp'
import * as protobuf from './protobuf'
import { initScan, scan } from './scan'
import * as syslog from './syslog'
import * as tags from './tags'
import { epochTime, isoTime } from './time'
import * as words from './words'

/** Whether a word may be a source (1) or not (2); also sets the seed of its signatures. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'checkSource')
declare function checkSource(word: u32): u32
/** The verdict on a source's messages in this body: 1 store, 2 drop, 3 leave to the decoder. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'admitSource')
declare function admitSource(word: u32): u32
/** See `setType`. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'checkType')
declare function checkType(word: u32): u32
/** See `setLevel`. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'checkLevel')
declare function checkLevel(word: u32): u32
/** Returns the index into SEVERITIES of the level that a message states at its head. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'levelAtHead')
declare function levelAtHead(at: usize, length: u32): u32

/** Whether bytes are UTF-8. */
// @ts-ignore: a decorator of a function, which AssemblyScript has and TypeScript has not
@external('env', 'isUtf8')
declare function isUtf8(at: usize, length: u32): u32

initBytes()
initScan()
line.initLine()
loki.initLoki()
otlp.initOtlp()
syslog.initSyslog()

/** The caller writes bodies and texts here before it passes their offsets. */
const input = newBytes(2 * 1024 * 1024)
const scratch = newBytes(65_536)
const TOKENS = zeroed((layout.MAX_TOKENS + layout.TOKEN_SLACK) * layout.TOKEN_INTS * 4)
const recordWords = zeroed(12)

let nowMs: i64 = 0
let maxMessageBytes: u32 = 0
let noWord: u32 = 0
let defaultEnvironment: u32 = 0
let defaultSource: u32 = 0
let mayBeHigh = false
let mayLackZone = false
let body: u32 = 0

const DAY_MS: i64 = 86_400_000
const MAX_SOURCE: usize = 120
const MAX_HOST: usize = 255
const MAX_ENVIRONMENT: usize = 64
const MAX_LEVEL: usize = 64
const MAX_ID: usize = 256
const MAX_SUMMARY: usize = 16_384

export function setHashSecrets(a: u64, b: u64): void {
  setSecrets(a, b)
  // The hash table of words depends on the secrets.
  words.clearWords()
}

/** @returns the address to which the caller writes a body of `length` bytes */
export function bodyAt(length: usize): usize {
  input.length = 0
  reserve(input, length)
  return input.ptr
}

/** @returns the address to which the caller writes `length` bytes for `intern`, `addEvent` or `scanTokens` */
export function scratchAt(length: usize): usize {
  scratch.length = 0
  reserve(scratch, length)
  return scratch.ptr
}

/**
 * Begins an empty block.
 *
 * @param forget whether the words are dropped, so that numbering restarts
 */
export function beginBlock(forget: bool): void {
  block.clearBlock()
  if (forget) words.clearWords()
  block.beginBlock()
}

export function beginBody(
  now: f64,
  maxMessage: u32,
  environment: u32,
  source: u32,
  empty: u32,
  high: bool,
  utc: bool,
): void {
  nowMs = <i64>now
  maxMessageBytes = maxMessage
  defaultEnvironment = environment
  defaultSource = source
  noWord = empty
  mayBeHigh = high
  mayLackZone = utc
  body++
  heads.clearHeads()
  syslog.forgetClock()
}

/** Sets the source of the next lines that name none. */
export function setDefaultSource(source: u32): void {
  defaultSource = source
}

let accepted: u32 = 0
let dropped: u32 = 0
let lines: u32 = 0

/** Counts the records that the last call of a function that reads them stored or dropped. */
export function acceptedLines(): u32 {
  return accepted
}
export function droppedLines(): u32 {
  return dropped
}
/**
 * Reads the lines of the body from offset `from`, at most `most` of them.
 *
 * @returns the offset of the first line that must be parsed, `length` when all were read
 */
export function readLines(from: usize, length: usize, most: u32): usize {
  const base = input.ptr
  const end = base + length
  let at = base + from
  accepted = 0
  dropped = 0
  while (at < end && accepted + dropped < most) {
    const verdict = readLine(at, end)
    if (verdict == 0) break
    if (verdict == 1) accepted++
    else dropped++
    at = line.lineEnd
  }
  return at - base
}

/** Registers a line of the body as a head of further records: its offset, the caller's number for it, and their source. */
export function setHead(from: usize, length: usize, no: u32, source: u32): void {
  heads.setHead(input.ptr + from, length, no, source)
}

/**
 * Reads records of the body from offset `from`, at most `most` of them, each a line after a known
 * head.
 *
 * @returns the offset of the first unknown head, or head whose record must be parsed, `length` when
 * all were read
 */
export function readHeaded(from: usize, length: usize, most: u32): usize {
  const base = input.ptr
  const end = base + length
  let at = base + from
  accepted = 0
  dropped = 0
  heads.passed.length = 0
  while (at < end && accepted + dropped < most) {
    const head = heads.headAt(at, end)
    if (head == 0) break
    defaultSource = heads.sourceOf(head)
    const verdict = readLine(heads.recordAt, end)
    if (verdict == 0) break
    if (verdict == 1) accepted++
    else dropped++
    heads.pass(head)
    at = line.lineEnd
  }
  return at - base
}

/** @returns 1 stored, 2 dropped, 0 for a line that must be parsed */
function readLine(at: usize, end: usize): u32 {
  const seen = line.readMembers(at, end)
  if ((seen & (1 << line.MESSAGE)) == 0) return 0
  const time = timeOf(seen)
  if (time < 0 || !readFields(seen, time)) return 0
  const kinds = line.messageKinds
  const isHigh = (kinds & line.HIGH) != 0
  if (isHigh && !mayBeHigh) return 0
  let start = line.startOf(line.MESSAGE)
  let length = line.endOf(line.MESSAGE) - start
  if ((kinds & line.ESCAPE) != 0) {
    const left = line.unescape(start, start + length)
    if (left < 0) return 0
    start = line.textStart
    length = left
  }
  // The delimiter is a control character, so only an escape can express it.
  return addText(seen, start, length, kinds)
}

/** Epoch numbers below it are read as seconds. */
const LEAST_MS: f64 = 100_000_000_000

/**
 * Sets the text of a member of the next records, at an address.
 *
 * @returns false for a text that the kernel cannot use
 */
export function setMember(member: u32, start: usize, length: usize): bool {
  return line.setMember(member, start, start + length)
}

/**
 * Adds a record whose members are known, and counts it.
 *
 * @param seen a bit for each member that was set
 * @param ms since 1970, 0 for a record without a time
 * @param start address of the message
 * @param level `NO_LEVEL` when the member or the message says it
 * @returns false for a record that must be parsed
 */
function addRecord(seen: u32, ms: f64, start: usize, length: usize, level: u32): bool {
  line.forgetNames()
  const kinds = line.kindsOf(start, start + length)
  if ((kinds & line.HIGH) != 0 && isUtf8(start, <u32>length) == 0) return false
  if (ms != 0 && !(ms >= LEAST_MS && ms < 1e14)) return false
  if (!readFields(seen, ms == 0 ? nowMs : <i64>ms)) return false
  if (level != NO_LEVEL) recordLevel = level
  const verdict = addText(seen, start, length, kinds)
  if (verdict == 1) accepted++
  else if (verdict == 2) dropped++
  return verdict != 0
}

/** @returns the address of the table of syslog priorities; see `layout.ts` */
export function prioritiesAt(): usize {
  return syslog.priorities
}

/**
 * Reads messages of a batch of syslog, whose form `record-batch.ts` has: those with the numbers from `first` to before `end`.
 *
 * @param table offset of the table of extents
 * @returns the number of the first message that must be parsed, `end` when all were read
 */
export function readMessages(table: usize, first: u32, end: u32): u32 {
  const base = input.ptr
  const limit = base + table
  const sender = base + 1
  const senderEnd = sender + <usize>load<u8>(base)
  accepted = 0
  dropped = 0
  if (senderEnd > limit || !syslog.isPrintable(sender, senderEnd)) return first
  let no = first
  for (; no < end; no++) {
    const extent = limit + no * 8
    const from = base + <usize>load<u32>(extent)
    // The length of a truncated message has a bit set that makes it exceed all bytes.
    const to = from + <usize>load<u32>(extent, 4)
    if (from > limit || to < from || to > limit || !syslog.readHead(from, to, sender, senderEnd)) break
    if (!addRecord(syslog.seen, syslog.ms, syslog.textAt, to - syslog.textAt, NO_LEVEL)) break
  }
  return no
}

/**
 * Reads the fields of a scope of OTLP from offset `from` to `end`, of which at most `most` are log records.
 *
 * @param common a bit for each member that was set for all of them
 * @returns the offset of the first field that must be parsed, `end` when all were read
 */
export function readLogs(common: u32, from: usize, end: usize, most: u32): usize {
  const others = beginRecords(common)
  const to = input.ptr + end
  let at = input.ptr + from
  while (at < to && accepted + dropped < most && protobuf.readField(at, to)) {
    const next = protobuf.to
    if (protobuf.tag >> 3 == RECORD_FIELD) {
      if (protobuf.tag != RECORD_TAG || !otlp.readLog(protobuf.from, next)) break
      const length = otlp.textEnd - otlp.textAt
      if (!addRecord(others | otlp.seen, otlp.ms, otlp.textAt, length, otlp.level)) break
    }
    at = next
  }
  tags.endScope()
  return at - input.ptr
}

/** Reads the fields of a stream of Loki, as `readLogs` does those of a scope. Labels must be parsed. */
export function readEntries(common: u32, from: usize, end: usize, most: u32): usize {
  const others = beginRecords(common)
  loki.beginStream((common & (1 << line.SEVERITY)) != 0)
  const to = input.ptr + end
  let at = input.ptr + from
  while (at < to && accepted + dropped < most && protobuf.readField(at, to)) {
    const next = protobuf.to
    const field = protobuf.tag >> 3
    if (field == LABELS_FIELD) break
    if (field == RECORD_FIELD) {
      if (protobuf.tag != RECORD_TAG || !loki.readEntry(protobuf.from, next)) break
      const length = loki.textEnd - loki.textAt
      if (!addRecord(others | loki.seen, loki.ms, loki.textAt, length, NO_LEVEL)) break
    }
    at = next
  }
  tags.endScope()
  return at - input.ptr
}

const LABELS_FIELD: u32 = 1
/** The records of a scope, and the entries of a stream. */
const RECORD_FIELD: u32 = 2
const RECORD_TAG: u32 = 0x12

/** @returns the bits of the members beside tags */
function beginRecords(common: u32): u32 {
  accepted = 0
  dropped = 0
  tags.beginScope((common & (1 << line.TAGS)) != 0)
  return common & ~(1 << line.TAGS)
}

let recordMs: i64 = 0
let recordType: u32 = 0
let recordLevel: u32 = 0

/** Reads the members of a record beside its message. @returns false when it must be parsed */
function readFields(seen: u32, time: i64): bool {
  if (time > nowMs + DAY_MS) return false
  const source = (seen & (1 << line.SOURCE)) == 0 ? defaultSource : wordOf(line.SOURCE, MAX_SOURCE)
  if (source == NO_WORD) return false
  const state = words.sourceState(source)
  if ((state == 0 ? checkSource(source) : state) != 1) return false
  const host = (seen & (1 << line.HOST)) == 0 ? noWord : wordOf(line.HOST, MAX_HOST)
  let environment = defaultEnvironment
  if ((seen & (1 << line.ENVIRONMENT)) != 0) {
    const named = wordOf(line.ENVIRONMENT, MAX_ENVIRONMENT)
    if (named != noWord) environment = named
  }
  const type = (seen & (1 << line.TYPE)) == 0 ? 0 : typeOf()
  const level = (seen & (1 << line.SEVERITY)) == 0 ? NO_LEVEL : levelOf()
  if (host == NO_WORD || environment == NO_WORD || type == NO_WORD || level == UNFIT) return false
  store<u32>(recordWords, source)
  store<u32>(recordWords, host, 4)
  store<u32>(recordWords, environment, 8)
  recordMs = time
  recordType = type
  recordLevel = level
  return true
}

const NO_WORD: u32 = 0xffffffff
const NO_LEVEL: u32 = 254
const UNFIT: u32 = 255

/** @returns 1 stored, 2 dropped, 0 for a record that must be parsed */
function addText(seen: u32, start: usize, length: usize, kinds: u32): u32 {
  const isHigh = (kinds & line.HIGH) != 0
  if (length == 0 || length > <usize>maxMessageBytes) return 0
  let severity = recordLevel
  if (severity == NO_LEVEL) {
    // `levelAtHead` accepts only ASCII.
    if (isHigh) return 0
    severity = levelAtHead(start, <u32>length)
  }
  block.setRecord(recordMs, recordWords, recordType, severity, !isHigh)
  if ((seen & OTHERS) != 0 && !setTexts(seen)) return 0
  // Called last, because it lists the source among those of the body.
  const source = load<u32>(recordWords)
  const known = words.bodyState(source, body)
  const may = known == 0 ? admitSource(source) : known
  if (may == layout.PARSE_MESSAGES) return 0
  if (may == layout.DROP_MESSAGES) return 2
  block.addRow(start, length, true, (kinds & ~line.HIGH) != 0)
  return 1
}

/** Members that most lines lack, and the level, from which tags may come. */
const OTHERS: u32 =
  (1 << line.TRACE) |
  (1 << line.SPAN) |
  (1 << line.SUMMARY) |
  (1 << line.DEDUP) |
  (1 << line.TAGS) |
  (1 << line.SEVERITY)

function setTexts(seen: u32): bool {
  const tagsOfLevel = (seen & (1 << line.SEVERITY)) == 0 ? 0 : words.levelTagsOf(levelWord)
  if (tagsOfLevel != 0) {
    if ((seen & (1 << line.TAGS)) != 0) return false
    const start = words.wordStart(tagsOfLevel - 1)
    block.setFlatTags(start, start + words.wordLength(tagsOfLevel - 1))
  }
  if ((seen & (1 << line.TAGS)) != 0) block.setFlatTags(line.startOf(line.TAGS), line.endOf(line.TAGS))
  return (
    setText(seen, line.TRACE, layout.TRACE_TEXTS, MAX_ID) &&
    setText(seen, line.SPAN, layout.SPAN_TEXTS, MAX_ID) &&
    setText(seen, line.SUMMARY, layout.SUMMARY_TEXTS, MAX_SUMMARY) &&
    setText(seen, line.DEDUP, layout.DEDUP_KEY_TEXTS, MAX_ID)
  )
}

function setText(seen: u32, member: u32, slot: u32, limit: usize): bool {
  if ((seen & (1 << member)) == 0) return true
  const start = line.startOf(member)
  const end = line.endOf(member)
  if (end - start > limit) return false
  block.setText(slot, start, end)
  return true
}

/** @returns ms since 1970, -1 when the line must be parsed */
function timeOf(seen: u32): i64 {
  const start = line.startOf(line.TIMESTAMP)
  const end = line.endOf(line.TIMESTAMP)
  if ((seen & line.NUMERIC_TIME) != 0) return epochTime(start, end)
  if ((seen & (1 << line.TIMESTAMP)) == 0 || start == end) return nowMs
  return isoTime(start, end, mayLackZone)
}

function wordOf(member: u32, limit: usize): u32 {
  const start = line.startOf(member)
  const length = line.endOf(member) - start
  return length > limit ? NO_WORD : words.intern(start, length)
}

function typeOf(): u32 {
  const word = wordOf(line.TYPE, MAX_LEVEL)
  if (word == NO_WORD) return NO_WORD
  const known = words.typeState(word)
  const state = known == 0 ? checkType(word) : known
  return state == 1 ? NO_WORD : state - 2
}

/** The level of the last line, if it names one. */
let levelWord: u32 = 0

function levelOf(): u32 {
  const word = wordOf(line.SEVERITY, MAX_LEVEL)
  if (word == NO_WORD) return UNFIT
  levelWord = word
  const known = words.levelState(word)
  const state = known == 0 ? checkLevel(word) : known
  // In such lines, an unknown level is a tag.
  if (line.isMapped && (state == 2 || words.levelTagsOf(word) != 0)) return UNFIT
  return state == 1 ? UNFIT : state == 2 ? NO_LEVEL : state - 3
}

/** Makes deduplication ignore tags with the name in the scratch memory. */
export function ignoreTag(at: usize, length: usize): void {
  block.ignoreTag(at, length)
}

/** Turns deduplication off, so that each message gets a row of its own. */
export function keepRepeats(): void {
  block.keepRepeats()
}

/** Numbers the word of `length` bytes in the scratch memory. */
export function internAt(at: usize, length: usize): u32 {
  return words.intern(at, length)
}

/** Whether the hash of these tags does not depend on their order; other tags must have sorted names. */
export function areFlatTags(at: usize, length: usize): bool {
  line.forgetFlatTags()
  return line.flatTags(at, at + length) != 0
}

/**
 * Adds a message that was decoded elsewhere.
 *
 * @param at address of the message and the texts of the record, one after the other; see `layout.ts`
 * @param sizes address of their lengths
 * @param mines false when the template is ready-made
 * @returns the row, -1 when it repeats an earlier one
 */
export function addEvent(
  ms: f64,
  source: u32,
  host: u32,
  environment: u32,
  type: u32,
  severity: u32,
  at: usize,
  sizes: usize,
  mines: bool,
): i32 {
  line.forgetFlatTags()
  store<u32>(recordWords, source)
  store<u32>(recordWords, host, 4)
  store<u32>(recordWords, environment, 8)
  // The caller computes the search words.
  block.setRecord(<i64>ms, recordWords, type, severity, true)
  const length = <usize>load<u32>(sizes)
  let start = at + length
  for (let slot: u32 = 0; slot < <u32>layout.RECORD_TEXTS; slot++) {
    const end = start + load<u32>(sizes + (slot + 1) * 4)
    block.setText(slot, start, end)
    start = end
  }
  return block.addRow(at, length, mines, true)
}

/** Lists the tokens of the message at `at` to `tokensAt()`. @returns their number */
export function scanTokens(at: usize, length: usize): u32 {
  return scan(at, at + length, 0, 0, TOKENS)
}

export function tokensAt(): usize {
  return TOKENS
}

/** Writes a message's signature to `signatureLo` and `signatureHi`. */
export function signatureOf(at: usize, length: usize, seedLo: u32, seedHi: u32): void {
  scan(at, at + length, seedLo, seedHi, 0)
}

export { signatureHi, signatureLo } from './scan'
export {
  setSource,
  setType,
  setName,
  setLevel,
  wordStart,
  wordLength,
  wordCount,
  wordBytes,
} from './words'
export { forgetSignatures, setTemplate } from './block'
export { constantTextAt } from './constant-texts'
export * from './window'

export function setAdmission(word: u32, state: u32): void {
  words.setBodyState(word, body, state)
}

export function rowCount(): u32 {
  return block.rows
}

/** Returns the address of an array of the block. @param what see `layout.ts` */
export function addressOf(what: u32): usize {
  switch (what) {
    case layout.ROW_HASHES:
      return block.hashes
    case layout.ROW_TIMES:
      return block.times
    case layout.ROW_COUNTS:
      return block.counts
    case layout.ROW_SEVERITIES:
      return block.severities
    case layout.ROW_TYPES:
      return block.types
    case layout.ROW_TEMPLATES:
      return block.templateNos
    case layout.MESSAGES:
      return block.messages.ptr
    case layout.MISSES:
      return block.misses.ptr
    case layout.WIDE_ROWS:
      return block.wides.ptr
    case layout.WIDE_MESSAGES:
      return block.wideMessages.ptr
    case layout.ROW_TIMES_F64:
      return block.timesF64
    case layout.PASSED_HEADS:
      return heads.passed.ptr
    default:
      return 0
  }
}

/** Returns the bytes of the messages, misses or wide rows. @param what see `layout.ts` */
export function lengthOf(what: u32): usize {
  if (what == layout.MESSAGES) return block.messages.length
  return what == layout.MISSES ? block.misses.length : block.wides.length
}

/** Completes a column of texts. @param column see `layout.ts` */
export function textsAt(column: u32): usize {
  return block.finishTexts(column).ptr
}
export function textsLength(column: u32): usize {
  return block.finishTexts(column).length
}

/** @param column see `layout.ts` */
export function indexesAt(column: u32): usize {
  return block.placesOf(column).indexes
}
export function dictionaryAt(column: u32): usize {
  return block.placesOf(column).words
}
export function dictionarySize(column: u32): u32 {
  return block.placesOf(column).count
}
