/*
 * Writes the lines of an exported file cell by cell as bytes, because texts are slices of the bytes
 * of a block.
 */

import type { NativeBlock } from '../clickhouse/native-reader.js'
import { ByteBuffer } from '../lib/byte-buffer.js'

export const EXPORT_FORMATS = ['ndjson', 'csv', 'txt'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** A text as a range of bytes. */
export interface TextSpan {
  bytes: Uint8Array
  from: number
  to: number
}

type WriteText = (out: ByteBuffer, text: TextSpan) => void

export interface Format {
  /** The line before the first event; '' for none. */
  readonly head: (names: readonly string[]) => string
  /** The bytes before each value of a column: the separator, and in JSON the name of the column. */
  readonly before: (name: string, column: number) => string
  readonly end: string
  /** The quote around a word that needs no escape. */
  readonly quote: string
  /** The bytes of an attribute that the event lacks. */
  readonly none: string
  readonly text: WriteText
  /** Writes a cell that is JSON. */
  readonly json: WriteText
}

export interface LinePart {
  /** Whole lines, valid until the next part is requested. */
  readonly bytes: Uint8Array
  readonly rows: number
}

type WriteCell = (out: ByteBuffer, row: number) => void

/** Opens a block for writing the cells of one column. */
export type OpenCell = (block: NativeBlock, format: Format) => WriteCell

interface NamedCell {
  readonly name: string
  readonly open: OpenCell
}

/** Writing a part takes about a millisecond, which is how long other requests wait for it. */
const PART_BYTES = 256 * 1024

/** The lines of the rows of a block. */
export function* writeLines(
  block: NativeBlock,
  columns: readonly NamedCell[],
  format: Format,
): Generator<LinePart> {
  const cells = columns.map(({ name, open }, column) => ({
    before: Buffer.from(format.before(name, column)),
    write: open(block, format),
  }))
  const end = Buffer.from(format.end)
  const out = new ByteBuffer(PART_BYTES + PART_BYTES / 8)
  let rows = 0
  for (let row = 0; row < block.rows; row++) {
    for (const { before, write } of cells) {
      put(out, before)
      write(out, row)
    }
    put(out, end)
    rows += 1
    if (out.length < PART_BYTES && row < block.rows - 1) continue
    yield { bytes: out.written, rows }
    out.clear()
    rows = 0
  }
}

/** Shorter texts are copied byte by byte: a call takes as long as 50 bytes. */
const SHORT_BYTES = 48

/** Appends some bytes. */
export function put(out: ByteBuffer, bytes: Uint8Array): void {
  const { length } = bytes
  if (length > SHORT_BYTES) {
    out.append(bytes)
    return
  }
  out.reserve(length)
  const into = out.bytes
  const start = out.length
  for (let i = 0; i < length; i++) into[start + i] = bytes[i] ?? 0
  out.length = start + length
}

/** Appends a text as it is. */
function putSpan(out: ByteBuffer, { bytes, from, to }: TextSpan): void {
  put(out, bytes.subarray(from, to))
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c]

/** The JSON escape of each byte; null for bytes that need none. */
const JSON_ESCAPES: readonly (Uint8Array | null)[] = Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? Buffer.from(jsonEscape(byte)) : null,
)

function jsonEscape(byte: number): string {
  const escape = JSON.stringify(String.fromCharCode(byte)).slice(1, -1)
  return escape.startsWith(String.raw`\u`) ? String.raw`\u${escape.slice(2).toUpperCase()}` : escape
}

/** 1 for bytes that are not copied as they are: escapes, and the first byte of U+2028 and U+2029. */
const IS_SPECIAL_IN_JSON = Uint8Array.from(JSON_ESCAPES, (escape, byte) =>
  escape !== null || byte === 0xe2 ? 1 : 0,
)

export function putJsonText(out: ByteBuffer, { bytes, from, to }: TextSpan): void {
  out.reserve((to - from) * 6 + 2)
  const into = out.bytes
  let at = out.length
  into[at++] = QUOTE
  for (let i = from; i < to; i++) {
    const byte = bytes[i] ?? 0
    if (IS_SPECIAL_IN_JSON[byte] === 0) {
      into[at++] = byte
      continue
    }
    const escape = byte === 0xe2 ? lineSeparator(bytes, i, to) : JSON_ESCAPES[byte]
    if (escape === null || escape === undefined) {
      into[at++] = byte
      continue
    }
    into.set(escape, at)
    at += escape.length
    if (byte === 0xe2) i += 2
  }
  into[at++] = QUOTE
  out.length = at
}

const LINE_SEPARATOR = Buffer.from(String.raw`\u2028`)
const PARAGRAPH_SEPARATOR = Buffer.from(String.raw`\u2029`)

/** U+2028 and U+2029 are escaped, because older JavaScript takes them for line ends within a text. */
function lineSeparator(bytes: Uint8Array, at: number, to: number): Uint8Array | null {
  if (at + 2 >= to || bytes[at + 1] !== 0x80) return null
  if (bytes[at + 2] === 0xa8) return LINE_SEPARATOR
  return bytes[at + 2] === 0xa9 ? PARAGRAPH_SEPARATOR : null
}

const APOSTROPHE = 0x27

function putCell(out: ByteBuffer, text: TextSpan): void {
  const { bytes, from, to } = text
  out.reserve((to - from) * 2 + 3)
  const into = out.bytes
  let at = out.length
  into[at++] = QUOTE
  if (isFormula(text) && !isPlainNumber(text)) into[at++] = APOSTROPHE
  for (let i = from; i < to; i++) {
    const byte = bytes[i] ?? 0
    if (byte === QUOTE) into[at++] = QUOTE
    into[at++] = byte
  }
  into[at++] = QUOTE
  out.length = at
}

const [LINE_FEED, RETURN, BLANK, DELETE] = [0x0a, 0x0d, 0x20, 0x7f]
const isControl = (byte: number): boolean => byte < BLANK || byte === DELETE
/** The characters `=`, `+`, `-` and `@`, with which formulas begin. */
const SIGNS: readonly number[] = [0x3d, 0x2b, 0x2d, 0x40]
/** The last bytes of the full-width forms of these signs, which begin with EF BC. */
const WIDE_SIGNS: readonly number[] = [0x9d, 0x8b, 0x8d, 0xa0]

/** Whether a spreadsheet would run the text as a formula. A quote in front prevents it. */
function isFormula({ bytes, from, to }: TextSpan): boolean {
  if (from < to && isControl(bytes[from] ?? 0)) return true
  let at = from
  while (at < to && (bytes[at] === BLANK || isControl(bytes[at] ?? 0))) at++
  return at < to && isSign(bytes, at, to)
}

function isSign(bytes: Uint8Array, at: number, to: number): boolean {
  const byte = bytes[at] ?? 0
  if (byte !== 0xef) return SIGNS.includes(byte)
  return at + 2 < to && bytes[at + 1] === 0xbc && WIDE_SIGNS.includes(bytes[at + 2] ?? 0)
}

const PLAIN_NUMBER = /^[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

const isPlainNumber = ({ bytes, from, to }: TextSpan): boolean =>
  PLAIN_NUMBER.test(
    Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1'),
  )

/** Whether a control character of two bytes begins here, U+0080 to U+009F: U+009B begins a command of terminals. */
const isWideControl = (bytes: Uint8Array, at: number): boolean =>
  bytes[at] === 0xc2 && (bytes[at + 1] ?? 0) < 0xa0

/** A line is an event: line ends within a value are written as escapes, and other control characters as blanks. */
function putPlain(out: ByteBuffer, { bytes, from, to }: TextSpan): void {
  out.reserve((to - from) * 2 + 1)
  const into = out.bytes
  let at = out.length
  if (from === to) into[at++] = 0x2d
  for (let i = from; i < to; i++) {
    const byte = bytes[i] ?? 0
    if (isWideControl(bytes, i)) {
      into[at++] = BLANK
      i++
    } else if (byte >= BLANK && byte !== DELETE) into[at++] = byte
    else if (byte === LINE_FEED || byte === RETURN) {
      into[at++] = BACKSLASH
      into[at++] = byte === LINE_FEED ? 0x6e : 0x72
    } else into[at++] = BLANK
  }
  out.length = at
}

/** A CSV column name, quoted when a spreadsheet would take it for a formula. A query can name any attribute. */
const csvName = (name: string): string => {
  const text = /^[\s=+\-@]/.test(name) ? `'${name}` : name
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const FORMATS: Readonly<Record<ExportFormat, Format>> = {
  ndjson: {
    head: () => '',
    before: (name, column) => `${column === 0 ? '{' : ','}${JSON.stringify(name)}:`,
    end: '}\n',
    quote: '"',
    none: 'null',
    text: putJsonText,
    json: putSpan,
  },
  csv: {
    head: (names) => `${names.map(csvName).join(',')}\r\n`,
    before: (_, column) => (column === 0 ? '' : ','),
    end: '\r\n',
    quote: '',
    none: '""',
    text: putCell,
    json: putCell,
  },
  txt: {
    head: () => '',
    before: (_, column) => (column === 0 ? '' : ' '),
    end: '\n',
    quote: '',
    none: '-',
    text: putPlain,
    json: putPlain,
  },
}
