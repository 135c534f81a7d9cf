import { AppError } from '../../model/errors.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import { isRecord, toWellFormed } from './json-value.js'
import { RecordDecoder } from './record.js'

const NEWLINE = 10
const BRACKET = 0x5b
const BRACE = 0x7b
const QUOTE = 0x22

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
 * Decodes the body of `/ingest`: NDJSON, a JSON array, or one object, which may span several lines. Of NDJSON, blank lines
 * are skipped, and an invalid line does not keep the other lines from being decoded. Invalid UTF-8 becomes U+FFFD.
 *
 * @param lines encodes the lines that need no parsing; without it every line is parsed
 * @returns the number of messages received: events, lines and rejections together
 * @throws AppError `validation_error` for an array that is not JSON
 * @throws AppError `file_parse_error` for the first record above `context.maxRows`
 */
export function decodeIngest(
  body: Uint8Array,
  context: DecodeContext,
  sink: EventSink,
  lines: LineTaker | null = null,
): number {
  const bytes = asBuffer(body)
  const from = firstByte(bytes)
  const decoder = new RecordDecoder(context, sink)
  const depth = Error.stackTraceLimit
  // The stack trace is most of the cost of an invalid line.
  Error.stackTraceLimit = 0
  try {
    if (bytes[from] === BRACKET) decodeArray(bytes.toString('utf8', from), decoder)
    else decodeLines({ bytes, from, decoder, lines: ready(bytes, context, lines) })
  } finally {
    Error.stackTraceLimit = depth
  }
  return decoder.received
}

const ready = (bytes: Buffer, context: DecodeContext, lines: LineTaker | null): LineTaker | null =>
  lines !== null && lines.begin(bytes, context) ? lines : null

const asBuffer = (body: Uint8Array): Buffer =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength)

/** Skips a byte order mark, and blanks before an array only, so that the numbers of lines are right. */
function firstByte(bytes: Buffer): number {
  const bom = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  let at = bom
  while (at < bytes.length && isBlank(bytes[at])) at += 1
  return bytes[at] === BRACKET ? at : bom
}

const isBlank = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === NEWLINE || byte === 13 || byte === 9

/** Only the escapes `\ud8..` to `\udf..` can make a lone surrogate, which decoded UTF-8 never contains. */
const mayHoldLoneSurrogate = (text: string): boolean => /\\u[dD]/.test(text)

const mended = (value: unknown, text: string): unknown =>
  mayHoldLoneSurrogate(text) ? toWellFormed(value) : value

function decodeArray(text: string, decoder: RecordDecoder): void {
  const records = mended(parseJson(text), text)
  if (!Array.isArray(records)) {
    throw new AppError('validation_error', 'the body begins as a JSON array and is none')
  }
  for (const [i, record] of records.entries()) {
    decoder.decode(i + 1, record, () => rawText(record))
  }
}

interface Body {
  readonly bytes: Buffer
  readonly from: number
  readonly decoder: RecordDecoder
  readonly lines: LineTaker | null
}

function decodeLines(body: Body): void {
  const { bytes, decoder, lines } = body
  let line = 0
  for (let at = body.from; at < bytes.length;) {
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
    if (!decodeLine(bytes.toString('utf8', at, stop), line, body)) return
    at = stop + 1
  }
}

/** @returns false when the line begins an object that is the whole body */
function decodeLine(raw: string, line: number, body: Body): boolean {
  const bare = raw.trim()
  if (bare === '') return true
  if (isSurelyBroken(bare)) return decodeBroken(raw, line, body)
  const record = parseJson(raw)
  if (record === undefined) return decodeBroken(raw, line, body)
  body.decoder.decode(line, mended(record, raw), () => raw)
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

/** Decodes an invalid line; on the first one, the whole body may be an object on several lines. */
function decodeBroken(raw: string, line: number, { bytes, from, decoder }: Body): boolean {
  const whole = decoder.received === 0 ? bytes.toString('utf8', from) : ''
  const object = whole === '' ? undefined : parseJson(whole)
  if (isRecord(object)) {
    decoder.decode(line, mended(object, whole), () => rawText(object))
    return false
  }
  decoder.put(line, BROKEN_LINE, () => raw)
  return true
}

export const BROKEN_LINE = {
  reason: 'invalid_json',
  message: 'the line is not JSON',
  source: '',
} as const

/** @returns undefined for a text that is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @returns '' for a value that is nested too deeply for JSON.stringify */
export function rawText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return ''
  }
}
