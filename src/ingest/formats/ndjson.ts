import { AppError } from '../../model/errors.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import { parseCounted, rawText } from './json-text.js'
import { hasTooManyValues, itemEnds, objectEnd, TOO_MANY_VALUES } from './json-size.js'
import { isRecord, toWellFormed } from './json-value.js'
import { RecordDecoder } from './record.js'

const NEWLINE = 10
const BRACKET = 0x5b
const BRACE = 0x7b
const QUOTE = 0x22
const COMMA = 0x2c

/** Encodes lines without parsing them: those with canonical members of the expected types only. */
export interface LineTaker {
  /** Begins a body. @returns false when all lines must be parsed */
  begin(bytes: Uint8Array, context: DecodeContext): boolean
  /**
   * Encodes lines from an offset on, up to the first that must be parsed.
   *
   * @returns the offset after these lines, and their number
   */
  take(from: number, most: number): { readonly next: number; readonly taken: number }
}

/**
 * Decodes the body of `/ingest`: NDJSON, a JSON array, or objects one after another, which may span several lines. Blank lines
 * are skipped, and an invalid line does not keep the other lines from being decoded. Invalid UTF-8 becomes U+FFFD. What is
 * parsed is counted before: records of the body, values of a record.
 *
 * @param lines encodes the lines that need no parsing; without it every line is parsed
 * @returns the number of messages received: events, lines and rejections together
 * @throws AppError `validation_error` for an array that is not JSON
 * @throws AppError `file_parse_error` for more records than `context.maxRows`
 */
export function decodeIngest(
  body: Uint8Array,
  context: DecodeContext,
  sink: EventSink,
  lines: LineTaker | null = null,
): number {
  const decoder = new RecordDecoder(context, sink)
  decodeJson(asBuffer(body), decoder, (bytes) => ready(bytes, context, lines))
  return decoder.received
}

/**
 * Decodes a body of JSON, whose records the decoder may change before it reads them.
 *
 * @throws AppError as `decodeIngest`
 */
export function decodeJson(
  bytes: Buffer,
  decoder: RecordDecoder,
  linesOf: (bytes: Buffer) => LineTaker | null = () => null,
): void {
  const from = firstByte(bytes)
  if (bytes[from] === BRACKET) {
    decodeArray(bytes, from, decoder)
    return
  }
  decoder.expect(countLines(bytes, from, decoder.left))
  decodeLines({ bytes, from, decoder, lines: linesOf(bytes), vain: 0 })
}

const ready = (bytes: Buffer, context: DecodeContext, lines: LineTaker | null): LineTaker | null =>
  lines !== null && lines.begin(bytes, context) ? lines : null

const asBuffer = (body: Uint8Array): Buffer =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength)

/** Skips a byte order mark, and blanks before an array only, so that the numbers of lines are right. */
function firstByte(bytes: Buffer): number {
  const bom = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  const at = skipBlanks(bytes, bom)
  return bytes[at] === BRACKET ? at : bom
}

/** Whether a body begins as JSON. Many clients call any text `text/plain`, such as `fetch` with a string. */
export function isJsonBody(body: Uint8Array): boolean {
  const bytes = asBuffer(body)
  const from = skipBlanks(bytes, firstByte(bytes))
  const next = bytes[skipBlanks(bytes, from + 1)]
  if (bytes[from] === BRACE) return next === QUOTE || next === BRACE + CLOSING
  return bytes[from] === BRACKET && (next === BRACE || next === BRACKET + CLOSING)
}

const isBlank = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === NEWLINE || byte === 13 || byte === 9

/** Only the escapes `\ud8..` to `\udf..` can make a lone surrogate, which decoded UTF-8 never contains. */
const mayHoldLoneSurrogate = (text: string): boolean => /\\u[dD]/.test(text)

const mended = (value: unknown, text: string): unknown =>
  mayHoldLoneSurrogate(text) ? toWellFormed(value) : value

function decodeArray(bytes: Buffer, from: number, decoder: RecordDecoder): void {
  const start = skipBlanks(bytes, from + 1)
  const isEmpty = bytes[start] === BRACKET + CLOSING
  const ends = isEmpty ? [] : itemEnds(bytes, start, decoder.left)
  if (ends === null) throw notAnArray()
  decoder.expect(ends.length)
  if (skipBlanks(bytes, (ends.at(-1) ?? start) + 1) < bytes.length) throw notAnArray()
  let at = start
  for (const [i, end] of ends.entries()) {
    decodeItem(bytes, [at, end], { decoder, line: i + 1 })
    at = end + 1
  }
}

function decodeItem(
  bytes: Buffer,
  [from, to]: readonly [from: number, to: number],
  { decoder, line }: { readonly decoder: RecordDecoder; readonly line: number },
): void {
  if (hasTooManyValues(bytes, from, to)) {
    decoder.put(line, TOO_MANY_VALUES, () => rawStart(bytes, from, to))
    return
  }
  const text = bytes.toString('utf8', from, to)
  const record = parseCounted(text)
  if (record === undefined) throw notAnArray()
  decoder.decode(line, mended(record, text), () => rawText(record))
}

const notAnArray = (): AppError =>
  new AppError('validation_error', 'the body begins as a JSON array and is none')

/** The start of a record that is not parsed; dead letters are truncated anyway. */
const rawStart = (bytes: Buffer, from: number, to: number): string =>
  bytes.toString('utf8', from, Math.min(to, from + RAW_BYTES))

const RAW_BYTES = 65_536
const CLOSING = 2

function skipBlanks(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && isBlank(bytes[at])) at++
  return at
}

interface Body {
  readonly bytes: Buffer
  readonly from: number
  readonly decoder: RecordDecoder
  readonly lines: LineTaker | null
  /** The number of invalid lines after which no object was found. */
  vain: number
}

/** Decodes the lines of a JSON file. */
export const decodeJsonLines = (bytes: Buffer, decoder: RecordDecoder): void =>
  decodeLines({ bytes, from: 0, decoder, lines: null, vain: 0 })

function decodeLines(body: Body): void {
  const { bytes, decoder, lines } = body
  let line = 0
  for (let at = body.from; at < bytes.length;) {
    if (bytes[at] === NEWLINE) {
      line++
      at++
      continue
    }
    if (lines !== null) {
      const { next, taken } = lines.take(at, decoder.left + 1)
      decoder.count(taken)
      line += taken
      at = next
      if (at >= bytes.length) return
    }
    line += 1
    const newline = bytes.indexOf(NEWLINE, at)
    const stop = newline === -1 ? bytes.length : newline
    if (hasTooManyValues(bytes, at, stop))
      decoder.put(line, TOO_MANY_VALUES, rawStart.bind(null, bytes, at, stop))
    else if (!decodeLine(bytes.toString('utf8', at, stop), line, decoder)) {
      const { next, more } = decodeBroken(body, at, line)
      at = next
      line += more
      continue
    }
    at = stop + 1
  }
}

/**
 * Decodes a line that is not JSON but may consist of objects one after another.
 *
 * @param line its number
 */
export const decodeObjects = (bytes: Buffer, line: number, decoder: RecordDecoder): void =>
  void decodeBroken({ bytes, from: 0, decoder, lines: null, vain: 0 }, 0, line)

/** Counts the lines that are not blank. @returns 0 when there are certainly fewer than `most` */
function countLines(bytes: Buffer, from: number, most: number): number {
  // A line and its end take two bytes.
  if ((bytes.length - from) / 2 < most) return 0
  let lines = 0
  for (let at = skipBlanks(bytes, from); at < bytes.length && lines <= most;) {
    lines++
    const newline = bytes.indexOf(NEWLINE, at)
    at = newline === -1 ? bytes.length : skipBlanks(bytes, newline)
  }
  return lines
}

/** @returns false when the line is not JSON */
function decodeLine(raw: string, line: number, decoder: RecordDecoder): boolean {
  const bare = raw.trim()
  if (bare === '') return true
  const record = isSurelyBroken(bare) ? undefined : parseCounted(raw)
  if (record === undefined) return false
  decoder.decode(line, mended(record, raw), () => raw)
  return true
}

/**
 * Recognises most invalid lines by their first and last characters. The parser's exception costs a hundred times as
 * much, and a body may contain millions of such lines.
 */
function isSurelyBroken(bare: string): boolean {
  const last = bare.charCodeAt(bare.length - 1)
  switch (bare.charCodeAt(0)) {
    case BRACE:
      return last !== BRACE + 2 || bare.length < 2
    case BRACKET:
      return last !== BRACKET + 2 || bare.length < 2
    case QUOTE:
      return last !== QUOTE || bare.length < 2
    default:
      return bare.length <= 32 && !/^(?:-?\d[\d.eE+-]*|true|false|null)$/.test(bare)
  }
}

/** After this many invalid lines without an object, no further one is searched for objects, which would take quadratic time. */
const MAX_VAIN = 8

/**
 * Decodes the objects that begin on an invalid line: one after another, with or without a comma, on
 * one line or several. A last object without an end is rejected alone. A line with anything else on
 * it is rejected as a whole.
 *
 * @returns the offset after the objects, and the number of further lines up to there
 */
function decodeBroken(
  body: Body,
  from: number,
  line: number,
): { readonly next: number; readonly more: number } {
  const { bytes, decoder } = body
  const end = body.vain < MAX_VAIN ? objectsEnd(bytes, from) : -1
  let more = 0
  for (let at = skipBlanks(bytes, from); at < end;) {
    const stop = objectEnd(bytes, at)
    more += decodeObject(decoder, bytes.subarray(at, stop), line + more)
    at = afterObject(bytes, stop)
  }
  if (end !== -1 && bytes[end] !== BRACE) return { next: end + 1, more }
  body.vain++
  const rest = end === -1 ? from : end
  const newline = bytes.indexOf(NEWLINE, rest)
  const stop = newline === -1 ? bytes.length : newline
  decoder.put(line + more, BROKEN_LINE, rawStart.bind(null, bytes, rest, stop))
  return { next: stop + 1, more }
}

/**
 * @returns the offset of the line end after the objects that begin at `from`, or of an object without an end after others; -1 when
 * there is anything else
 */
function objectsEnd(bytes: Buffer, from: number): number {
  const first = skipBlanks(bytes, from)
  let at = first
  while (bytes[at] === BRACE) {
    const end = objectEnd(bytes, at)
    if (end === -1) return at === first ? -1 : at
    at = afterObject(bytes, end)
    if (at >= bytes.length || bytes[at] === NEWLINE) return at
  }
  return -1
}

/** @returns the number of line ends in the object */
function decodeObject(decoder: RecordDecoder, bytes: Buffer, line: number): number {
  if (hasTooManyValues(bytes, 0, bytes.length)) {
    decoder.put(line, TOO_MANY_VALUES, rawStart.bind(null, bytes, 0, bytes.length))
    return newlinesIn(bytes.toString('latin1'))
  }
  const text = bytes.toString('utf8')
  const object = parseCounted(text)
  if (isRecord(object)) decoder.decode(line, mended(object, text), () => text)
  else decoder.put(line, BROKEN_LINE, () => text)
  return newlinesIn(text)
}

const newlinesIn = (text: string): number => text.split('\n').length - 1

/** Skips what may stand between two objects: blanks of the line and a comma. */
function afterObject(bytes: Buffer, from: number): number {
  let at = from
  while (isBlank(bytes[at]) && bytes[at] !== NEWLINE) at++
  if (bytes[at] === COMMA) at++
  while (isBlank(bytes[at]) && bytes[at] !== NEWLINE) at++
  return at
}

const BROKEN_LINE = {
  reason: 'invalid_json',
  message: 'the line is not JSON',
  source: '',
} as const
