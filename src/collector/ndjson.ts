import { isAscii } from 'node:buffer'
import { AppError } from '../model/errors.js'
import type { DecodeContext, EventSink } from '../model/event.js'
import { isCanonical } from './canonical.js'
import { isRecord, toWellFormed } from './json-value.js'
import { hasControls, LineShape } from './line-shape.js'
import { RecordDecoder } from './record.js'

const NEWLINE = 10
const CARRIAGE_RETURN = 13
const BRACKET = 0x5b
const BRACE = 0x7b
const QUOTE = 0x22

/**
 * Decodes the body of `/ingest`: NDJSON, one JSON array, or one object (on several lines too).
 * Blank lines are skipped; a broken line is rejected and the others go on. UTF-8 that is not
 * valid is read with U+FFFD.
 *
 * @returns messages received: events and rejections together
 * @throws AppError `validation_error` for an array that is not JSON
 */
export function decodeIngest(body: Uint8Array, context: DecodeContext, sink: EventSink): number {
  const bytes = asBuffer(body)
  const from = firstByte(bytes)
  const decoder = new RecordDecoder(context, sink)
  const mend = mayHoldLoneSurrogate(bytes) ? toWellFormed : asIs
  const depth = Error.stackTraceLimit
  // Nobody looks at where JSON.parse failed, and the trace is most of what a broken line costs.
  Error.stackTraceLimit = 0
  try {
    if (bytes[from] === BRACKET) decodeArray(bytes.toString('utf8', from), decoder, mend)
    else decodeLines(bytes, from, decoder, mend)
  } finally {
    Error.stackTraceLimit = depth
  }
  return decoder.received
}

type Mend = (value: unknown) => unknown
const asIs: Mend = (value) => value

const asBuffer = (body: Uint8Array): Buffer =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength)

/** Skips a byte order mark; blanks and line ends stay, so that lines keep their numbers. */
function firstByte(bytes: Buffer): number {
  const mark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  let at = mark
  while (at < bytes.length && isBlank(bytes[at])) at += 1
  return bytes[at] === BRACKET ? at : mark
}

const isBlank = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === NEWLINE || byte === 13 || byte === 9

/** Only the escapes `\ud8..` to `\udf..` can make one: decoded UTF-8 holds none. */
const mayHoldLoneSurrogate = (bytes: Buffer): boolean =>
  bytes.includes(String.raw`\ud`) || bytes.includes(String.raw`\uD`)

function decodeArray(text: string, decoder: RecordDecoder, mend: Mend): void {
  const records = parseJson(text)
  if (!Array.isArray(records)) {
    throw new AppError('validation_error', 'the body begins as a JSON array and is none')
  }
  for (const [i, record] of records.entries()) {
    decoder.decode(i + 1, mend(record), () => rawText(record))
  }
}

/**
 * Bodies are turned into text by pieces of whole lines: a piece without other than ASCII costs a
 * copy only, and a letter beyond Latin-1 makes the text of its own piece wide, not of the body.
 */
const PIECE_BYTES = 65_536

function decodeLines(bytes: Buffer, start: number, decoder: RecordDecoder, mend: Mend): void {
  const shape = new LineShape()
  const tools: LineTools = { decoder, mend, shape: null, whole: bytes.subarray(start), line: 0 }
  for (let from = start; from < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, Math.min(from + PIECE_BYTES, bytes.length))
    const end = newline === -1 ? bytes.length : newline + 1
    const piece = bytes.subarray(from, end)
    const text = piece.toString(isAscii(piece) ? 'latin1' : 'utf8')
    tools.shape = hasControls(piece) || text.includes('\\') ? null : shape
    for (let at = 0; at < text.length;) {
      const stop = lineEnd(text, at)
      tools.line += 1
      if (!decodeLine(text, at, stop, tools)) return
      at = stop + 1
    }
    from = end
  }
}

function lineEnd(text: string, from: number): number {
  const newline = text.indexOf('\n', from)
  return newline === -1 ? text.length : newline
}

interface LineTools {
  readonly decoder: RecordDecoder
  readonly mend: Mend
  /** null where lines may hold what only a parser understands */
  shape: LineShape | null
  readonly whole: Buffer
  line: number
}

/** @returns false when the line began an object that took the whole body */
function decodeLine(text: string, at: number, stop: number, tools: LineTools): boolean {
  const { decoder, shape, line } = tools
  const end = text.charCodeAt(stop - 1) === CARRIAGE_RETURN ? stop - 1 : stop
  const known = shape === null ? null : shape.read(text, at, end)
  if (known !== null) {
    decoder.decodeCanonical(line, known, () => text.slice(at, stop))
    return true
  }
  const raw = text.slice(at, stop)
  const bare = raw.trim()
  if (bare === '') return true
  if (isSurelyBroken(bare)) return decodeBroken(raw, tools)
  const record = parseJson(raw)
  if (record === undefined) return decodeBroken(raw, tools)
  if (isRecord(record) && isCanonical(record)) shape?.learn(text.slice(at, end), record)
  decoder.decode(line, tools.mend(record), () => raw)
  return true
}

/**
 * Knows most broken lines by their ends: the parser's exception costs a hundred times as much,
 * and a body may hold millions of such lines.
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

/** An object on several lines can only be the whole body. */
function decodeBroken(raw: string, { decoder, mend, whole, line }: LineTools): boolean {
  const object = decoder.received === 0 ? parseJson(whole.toString('utf8')) : undefined
  if (isRecord(object)) {
    decoder.decode(line, mend(object), () => rawText(object))
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

/** @returns undefined, which JSON cannot express, for a text that is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @returns '' for a value nested too deeply to be written again */
export function rawText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return ''
  }
}
