import { isUtf8 } from 'node:buffer'

import type { Interner } from '../lib/interner.js'
import { EVENT_TYPES, SEVERITIES, type CanonicalEvent, type DecodeContext } from '../model/event.js'
import { LineFields } from '../model/line-fields.js'
import { levelOf, tagsOf, withSeverityText } from './canonical.js'
import { MAX_CHARS, sourceProblem } from './draft.js'
import type { JsonRecord } from './json-value.js'
import { isAcceptedTime, parseTimestamp } from './timestamp.js'
import { toUtcMs } from './utc.js'

/** Members of a record, in the order of their bits. */
const NAMES = [
  'timestamp',
  'source',
  'severity',
  'message',
  'host',
  'environment',
  'type',
  'trace_id',
  'span_id',
  'summary',
  'dedup_key',
  'tags',
] as const
const [TIMESTAMP, SOURCE, SEVERITY, MESSAGE, HOST, ENVIRONMENT] = [0, 1, 2, 3, 4, 5]
const [TYPE, TRACE, SPAN, SUMMARY, DEDUP, TAGS] = [6, 7, 8, 9, 10, 11]
const NAME_BYTES = NAMES.map((name) => Uint8Array.from(Buffer.from(`${name}"`)))

/** The first four letters tell all names apart. */
const headOf = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) |
  ((bytes[at + 1] ?? 0) << 8) |
  ((bytes[at + 2] ?? 0) << 16) |
  ((bytes[at + 3] ?? 0) << 24)
const HEADS = Int32Array.from(NAME_BYTES, (name) => headOf(name, 0))

/** What a byte means within a string. */
const [PLAIN, HIGH, ESCAPE, CLOSE, BAD] = [0, 1, 2, 4, 8]
const KIND = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0x22) return CLOSE
  if (byte === 0x5c) return ESCAPE
  if (byte < 0x20) return BAD
  return byte < 0x80 ? PLAIN : HIGH
})

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN = 0x7b
const SHUT = 0x7d
const BACKSLASH = 0x5c
const NEWLINE = 10
const RETURN = 13
const SPACE = 32

/** What is known of a word as the value of a member; 0 = not looked at yet. */
const [GOOD, UNFIT] = [1, 2]
/** severity: `GOOD` + 1 + index into SEVERITIES, so `GOOD` alone says that no level is named */
const LEVEL_BASE = 3

/**
 * Reads lines of canonical members straight from their bytes: no string, no object, one pass. Whatever it
 * is not sure about (other names, numbers, null, escapes outside the message, a value that is refused) it
 * leaves to the parser, so that there is one place that says what such a line means.
 * bench/micro/encode.bench.ts
 */
export class LineReader {
  readonly fields = new LineFields()
  readonly words: Interner
  readonly #starts = new Int32Array(NAMES.length)
  readonly #ends = new Int32Array(NAMES.length)
  #isSource = new Uint8Array(1024)
  #typeOf = new Uint8Array(1024)
  #levelOf = new Uint8Array(1024)
  /** JSON of the tags that keep a producer's own level word, by word */
  readonly #levelTags = new Map<number, string>()
  #unescaped = new Uint8Array(4096)
  #context: DecodeContext | null = null
  #environment = 0
  #noHost = 0
  #mayBeHigh = false
  #day = 0
  #dayMs = 0
  /** kinds of bytes of the string read last */
  #kinds = 0

  constructor(words: Interner) {
    this.words = words
  }

  /** Makes room when many different words came; numbers of words are good until the next call. */
  beginTask(): void {
    if (!this.words.isFull) return
    this.words.clear()
    this.#isSource.fill(0)
    this.#typeOf.fill(0)
    this.#levelOf.fill(0)
    this.#levelTags.clear()
  }

  /** @returns false when the body's lines must all be parsed */
  beginBody(bytes: Uint8Array, context: DecodeContext): boolean {
    this.#context = context
    this.#mayBeHigh = isUtf8(bytes)
    const environment = Buffer.from(context.environment)
    this.#environment = this.words.intern(environment, 0, environment.length)
    this.#noHost = this.words.intern(environment, 0, 0)
    return context.source === null && this.#environment >= 0 && this.#noHost >= 0
  }

  /**
   * Reads the line that begins at `from` into `fields`.
   *
   * @returns where the next line begins, -1 when the line must be parsed
   */
  read(bytes: Uint8Array, from: number): number {
    const seen = this.#members(bytes, from)
    if (seen === 0) return -1
    const fields = this.fields
    fields.line = bytes
    if ((seen & REQUIRED) !== REQUIRED) return -1
    if (!this.#readTime(bytes, seen) || !this.#readWords(bytes, seen)) return -1
    if (!this.#readTexts(seen) || !this.#readTags(bytes, seen)) return -1
    return this.#readMessage(bytes) ? this.#end : -1
  }

  /** where the line read last ends */
  #end = 0

  /** @returns a bit for each member, 0 when the line must be parsed */
  /* oxlint-disable complexity, max-depth -- hot path: one loop over local numbers (bench/micro/encode.bench.ts) */
  #members(bytes: Uint8Array, from: number): number {
    const end = bytes.length
    const kindOf = KIND
    let at = from
    if (bytes[at++] !== OPEN) return 0
    let seen = 0
    for (;;) {
      while (bytes[at] === SPACE) at++
      if (bytes[at++] !== QUOTE) return 0
      const member = memberAt(bytes, at)
      if (member < 0 || (seen & (1 << member)) !== 0) return 0
      seen |= 1 << member
      at += NAME_BYTES[member]?.length ?? 0
      while (bytes[at] === SPACE) at++
      if (bytes[at++] !== COLON) return 0
      while (bytes[at] === SPACE) at++
      if (bytes[at] === QUOTE && member !== TAGS) {
        this.#starts[member] = ++at
        let kinds = 0
        for (;;) {
          if (at >= end) return 0
          const kind = kindOf[bytes[at] ?? 0] ?? 0
          at++
          if (kind === PLAIN) continue
          if (kind === CLOSE) break
          kinds |= kind
          if (kind === ESCAPE) at++
        }
        if (member === MESSAGE) this.#kinds = kinds
        else if (kinds !== 0) return 0
        this.#ends[member] = at - 1
      } else {
        const stop =
          member === TAGS ? objectEnd(bytes, at) : member === TIMESTAMP ? digitsEnd(bytes, at) : -1
        if (stop < 0) return 0
        this.#starts[member] = at
        this.#ends[member] = stop
        at = stop
        if (member === TIMESTAMP) seen |= NUMERIC_TIME
      }
      while (bytes[at] === SPACE) at++
      const mark = bytes[at++]
      if (mark === SHUT) break
      if (mark !== COMMA) return 0
    }
    while (bytes[at] === SPACE || bytes[at] === RETURN) at++
    if (at < end && bytes[at] !== NEWLINE) return 0
    this.#end = Math.min(at + 1, end)
    return seen
  }
  /* oxlint-enable complexity, max-depth */

  #readTime(bytes: Uint8Array, seen: number): boolean {
    const context = this.#context
    if (context === null) return false
    let ms: number | null = context.nowMs
    const start = this.#starts[TIMESTAMP] ?? 0
    const end = this.#ends[TIMESTAMP] ?? 0
    if ((seen & NUMERIC_TIME) !== 0) {
      ms = parseTimestamp(Number(latin1(bytes, start, end)), context.nowMs)
    } else if ((seen & (1 << TIMESTAMP)) !== 0 && end > start) {
      ms = this.#isoTime(bytes, start, end)
      if (ms < 0) ms = parseTimestamp(latin1(bytes, start, end), context.nowMs)
    }
    if (ms === null || !isAcceptedTime(ms, context.nowMs)) return false
    this.fields.timestampMs = ms
    return true
  }

  /** `2026-11-21T09:28:19.123Z` with one to nine decimals or none. @returns -1 for any other form */
  #isoTime(bytes: Uint8Array, start: number, end: number): number {
    if (end - start < 20 || bytes[end - 1] !== 0x5a || (bytes[start + 10] ?? 0) !== 0x54) return -1
    if (bytes[start + 4] !== 0x2d || bytes[start + 7] !== 0x2d) return -1
    if (bytes[start + 13] !== COLON || bytes[start + 16] !== COLON) return -1
    const year = two(bytes, start) * 100 + two(bytes, start + 2)
    const day = (year * 100 + two(bytes, start + 5)) * 100 + two(bytes, start + 8)
    const hour = two(bytes, start + 11)
    const minute = two(bytes, start + 14)
    const second = two(bytes, start + 17)
    // NaN fails each of these
    if (!(hour < 24 && minute < 60 && second < 60)) return -1
    if (day !== this.#day) {
      const dayMs = toUtcMs(year, two(bytes, start + 5), two(bytes, start + 8), 0)
      if (dayMs === null) return -1
      this.#day = day
      this.#dayMs = dayMs
    }
    const ms = end - start === 20 ? 0 : millis(bytes, start + 19, end - 1)
    if (ms < 0) return -1
    return this.#dayMs + ((hour * 60 + minute) * 60 + second) * 1000 + ms
  }

  /** Members of few different values. */
  #readWords(bytes: Uint8Array, seen: number): boolean {
    const fields = this.fields
    fields.source = this.#word(bytes, SOURCE, MAX_CHARS.source)
    if (fields.source < 0 || !this.#mayBeSource(fields.source)) return false
    fields.host = this.#noHost
    if ((seen & (1 << HOST)) !== 0) fields.host = this.#word(bytes, HOST, MAX_CHARS.host)
    fields.environment = this.#environment
    if ((seen & (1 << ENVIRONMENT)) !== 0) {
      const word = this.#word(bytes, ENVIRONMENT, MAX_CHARS.environment)
      if (word !== this.#noHost) fields.environment = word
    }
    fields.type = 0
    if ((seen & (1 << TYPE)) !== 0) fields.type = this.#eventType(this.#word(bytes, TYPE, 16))
    const level =
      (seen & (1 << SEVERITY)) === 0 ? GOOD : this.#level(this.#word(bytes, SEVERITY, 64))
    if (fields.host < 0 || fields.environment < 0 || fields.type < 0 || level === UNFIT)
      return false
    fields.severity = level === GOOD ? -1 : level - LEVEL_BASE
    return true
  }

  #word(bytes: Uint8Array, member: number, maxBytes: number): number {
    const start = this.#starts[member] ?? 0
    const end = this.#ends[member] ?? 0
    return end - start > maxBytes ? -1 : this.words.intern(bytes, start, end)
  }

  #mayBeSource(word: number): boolean {
    if (word >= this.#isSource.length) this.#isSource = widened(this.#isSource, word)
    if (this.#isSource[word] === 0)
      this.#isSource[word] = sourceProblem(this.words.text(word)) === null ? GOOD : UNFIT
    return this.#isSource[word] === GOOD
  }

  /** @returns index into EVENT_TYPES, -1 for none of them */
  #eventType(word: number): number {
    if (word < 0) return -1
    if (word >= this.#typeOf.length) this.#typeOf = widened(this.#typeOf, word)
    if (this.#typeOf[word] === 0) {
      const text = this.words.text(word)
      this.#typeOf[word] = EVENT_TYPES.findIndex((type) => type === text) + 2
    }
    return (this.#typeOf[word] ?? 0) - 2
  }

  #level(word: number): number {
    if (word < 0) return UNFIT
    if (word >= this.#levelOf.length) this.#levelOf = widened(this.#levelOf, word)
    if (this.#levelOf[word] === 0) {
      const text = this.words.text(word)
      const severity = levelOf(text)
      const tags = withSeverityText(null, text)
      if (tags !== null) this.#levelTags.set(word, JSON.stringify(tags))
      this.#levelOf[word] =
        severity === undefined
          ? UNFIT
          : severity === null
            ? GOOD
            : LEVEL_BASE + SEVERITIES.indexOf(severity)
    }
    return this.#levelOf[word] ?? UNFIT
  }

  /** Members of many different values, which stay where they are. */
  #readTexts(seen: number): boolean {
    const fields = this.fields
    fields.traceStart = fields.traceEnd = 0
    fields.spanStart = fields.spanEnd = 0
    fields.summaryStart = fields.summaryEnd = 0
    fields.dedupStart = fields.dedupEnd = 0
    fields.hasTexts = (seen & TEXTS) !== 0
    if (!fields.hasTexts) return true
    const [starts, ends] = [this.#starts, this.#ends]
    if ((seen & (1 << TRACE)) !== 0) {
      fields.traceStart = starts[TRACE] ?? 0
      fields.traceEnd = ends[TRACE] ?? 0
    }
    if ((seen & (1 << SPAN)) !== 0) {
      fields.spanStart = starts[SPAN] ?? 0
      fields.spanEnd = ends[SPAN] ?? 0
    }
    if ((seen & (1 << SUMMARY)) !== 0) {
      fields.summaryStart = starts[SUMMARY] ?? 0
      fields.summaryEnd = ends[SUMMARY] ?? 0
    }
    if ((seen & (1 << DEDUP)) !== 0) {
      fields.dedupStart = starts[DEDUP] ?? 0
      fields.dedupEnd = ends[DEDUP] ?? 0
    }
    return (
      fields.traceEnd - fields.traceStart <= MAX_CHARS.trace_id &&
      fields.spanEnd - fields.spanStart <= MAX_CHARS.span_id &&
      fields.summaryEnd - fields.summaryStart <= MAX_CHARS.summary &&
      fields.dedupEnd - fields.dedupStart <= MAX_CHARS.dedup_key
    )
  }

  #readTags(bytes: Uint8Array, seen: number): boolean {
    const fields = this.fields
    const level = (seen & (1 << SEVERITY)) === 0 ? '' : this.#levelText(bytes)
    fields.tags = ''
    if ((seen & (1 << TAGS)) === 0) {
      if (level !== '') fields.tags = this.#levelTags.get(this.#word(bytes, SEVERITY, 64)) ?? ''
      return true
    }
    const text = utf8(bytes, this.#starts[TAGS] ?? 0, this.#ends[TAGS] ?? 0)
    // an escape may be half of a letter
    if (text.includes('\\u') || (!this.#mayBeHigh && text.includes('\ufffd'))) return false
    try {
      const tags = withSeverityText(tagsOf(JSON.parse(text)), level)
      fields.tags = tags === null ? '' : JSON.stringify(tags)
      return true
    } catch {
      return false
    }
  }

  /** The producer's own level word where it says more than the severity, else ''. */
  #levelText(bytes: Uint8Array): string {
    if (this.#levelTags.size === 0) return ''
    const word = this.#word(bytes, SEVERITY, 64)
    return this.#levelTags.has(word) ? this.words.text(word) : ''
  }

  #readMessage(bytes: Uint8Array): boolean {
    const fields = this.fields
    const kinds = this.#kinds
    const start = this.#starts[MESSAGE] ?? 0
    const end = this.#ends[MESSAGE] ?? 0
    if ((kinds & BAD) !== 0 || ((kinds & HIGH) !== 0 && !this.#mayBeHigh)) return false
    fields.isAscii = (kinds & HIGH) === 0
    fields.text = bytes
    fields.textStart = start
    fields.textEnd = end
    if ((kinds & ESCAPE) !== 0 && !this.#unescape(bytes, start, end)) return false
    const length = fields.textEnd - fields.textStart
    // the head of a text with other letters is read as letters, which bytes are not
    if (fields.severity < 0 && !fields.isAscii) return false
    return length > 0 && length <= (this.#context?.maxMessageBytes ?? 0)
  }

  /** @returns false for an escape that is no JSON or that stands for a letter beyond ASCII */
  #unescape(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start > this.#unescaped.length) this.#unescaped = new Uint8Array((end - start) * 2)
    const out = this.#unescaped
    let length = 0
    for (let at = start; at < end; at++) {
      let byte = bytes[at] ?? 0
      if (byte === BACKSLASH) {
        at++
        const mark = bytes[at] ?? 0
        byte = ESCAPED[mark] ?? 0
        if (mark === 0x75) {
          byte = asciiEscape(bytes, at + 1, end)
          at += 4
        }
        if (byte === UNKNOWN) return false
      }
      out[length++] = byte
    }
    this.fields.text = out
    this.fields.textStart = 0
    this.fields.textEnd = length
    return true
  }
}

const NUMERIC_TIME = 1 << 30
const REQUIRED = (1 << SOURCE) | (1 << MESSAGE)
const TEXTS = (1 << TRACE) | (1 << SPAN) | (1 << SUMMARY) | (1 << DEDUP)

function memberAt(bytes: Uint8Array, at: number): number {
  const member = HEADS.indexOf(headOf(bytes, at))
  const name = NAME_BYTES[member]
  if (name === undefined) return -1
  for (let i = 4; i < name.length; i++) if (bytes[at + i] !== name[i]) return -1
  return member
}

/** No escape stands for this byte. */
const UNKNOWN = 0xff
const ESCAPED = Uint8Array.from({ length: 256 }, (_, mark) => {
  const letter = { b: 8, t: 9, n: 10, f: 12, r: 13, '"': 0x22, '\\': 0x5c, '/': 0x2f }
  return Object.entries(letter).find(([key]) => key.charCodeAt(0) === mark)?.[1] ?? UNKNOWN
})

/** `\u001b`: the byte of a letter of ASCII that is written by its number. */
function asciiEscape(bytes: Uint8Array, at: number, end: number): number {
  if (at + 4 > end || bytes[at] !== 0x30 || bytes[at + 1] !== 0x30) return UNKNOWN
  const high = (bytes[at + 2] ?? 0) - 0x30
  const low = hexDigit(bytes[at + 3] ?? 0)
  return high >= 0 && high < 8 && low >= 0 ? high * 16 + low : UNKNOWN
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** NaN unless two digits stand at `at`. */
function two(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] ?? 0) - 0x30
  const units = (bytes[at + 1] ?? 0) - 0x30
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : Number.NaN
}

/** `.123` up to nine decimals, cut to three. @returns -1 for anything else */
function millis(bytes: Uint8Array, at: number, end: number): number {
  if (bytes[at] !== 0x2e || end - at < 2 || end - at > 10) return -1
  let ms = 0
  for (let i = at + 1; i < end; i++) {
    const digit = (bytes[i] ?? 0) - 0x30
    if (digit < 0 || digit > 9) return -1
    if (i < at + 4) ms = ms * 10 + digit
  }
  return end - at === 2 ? ms * 100 : end - at === 3 ? ms * 10 : ms
}

/** 1 to 15 digits that are a JSON number. @returns -1 for anything else */
function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from
  while (at - from < 16 && (bytes[at] ?? 0) >= 0x30 && (bytes[at] ?? 0) <= 0x39) at++
  const digits = at - from
  const next = bytes[at] ?? 0
  const goesOn = next === 0x2e || (next | 0x20) === 0x65
  const leads = digits > 1 && bytes[from] === 0x30
  return digits === 0 || digits > 15 || goesOn || leads ? -1 : at
}

/** Behind the object that begins at `from`, -1 when there is none that ends in this line. */
function objectEnd(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== OPEN) return -1
  let depth = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte < SPACE) return -1
    if (byte === QUOTE) {
      at = stringEnd(bytes, at + 1)
      if (at < 0) return -1
    } else if (byte === OPEN) depth++
    else if (byte === SHUT && --depth === 0) return at + 1
  }
  return -1
}

function stringEnd(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const kind = KIND[bytes[at] ?? 0] ?? 0
    if (kind === CLOSE) return at
    if (kind === BAD) return -1
    if (kind === ESCAPE) at++
  }
  return -1
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
const latin1 = (bytes: Uint8Array, start: number, end: number): string =>
  asBuffer(bytes).toString('latin1', start, end)
const utf8 = (bytes: Uint8Array, start: number, end: number): string =>
  asBuffer(bytes).toString('utf8', start, end)

function widened(from: Uint8Array, no: number): Uint8Array<ArrayBuffer> {
  const wide = new Uint8Array(Math.max(no + 1, from.length * 2))
  wide.set(from)
  return wide
}

/** The message as an object, for the few that need one. */
export function eventOf(fields: LineFields, words: Interner): CanonicalEvent {
  const { line } = fields
  return {
    timestampMs: fields.timestampMs,
    source: words.text(fields.source),
    type: EVENT_TYPES[fields.type] ?? 'log',
    severity: SEVERITIES[fields.severity] ?? null,
    message: utf8(fields.text, fields.textStart, fields.textEnd),
    host: words.text(fields.host),
    environment: words.text(fields.environment),
    traceId: latin1(line, fields.traceStart, fields.traceEnd),
    spanId: latin1(line, fields.spanStart, fields.spanEnd),
    summary: latin1(line, fields.summaryStart, fields.summaryEnd),
    tags: fields.tags === '' ? null : (JSON.parse(fields.tags) as JsonRecord), // written by JSON.stringify
    dedupKey: latin1(line, fields.dedupStart, fields.dedupEnd),
    template: '',
  }
}
