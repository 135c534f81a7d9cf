/*
 * Writes the cells of exported lines from columns of the Native format. A dictionary entry is
 * converted once a block, when the first row uses it.
 */

import { indexAt, type NativeBlock, type Texts } from '../clickhouse/native-reader.js'
import { ByteBuffer } from '../lib/byte-buffer.js'
import { DELIMITER } from '../model/stored-message.js'
import { put, putJsonText, type OpenCell, type TextSpan } from './export-lines.js'

export const numberCell =
  (column: string): OpenCell =>
  (block) => {
    const numbers = block.numbers(column)
    return (out, row) => putAscii(out, String(numbers[row]))
  }

/** @param column milliseconds since 1970 */
export const timeCell =
  (column: string): OpenCell =>
  (block, { quote }) => {
    const times = block.numbers(column)
    let second = Number.NaN
    const cell = Buffer.from(`${quote}YYYY-MM-DDThh:mm:ss.000Z${quote}`)
    const at = quote.length + SECOND_CHARS
    return (out, row) => {
      const ms = times[row] ?? 0
      const own = Math.floor(ms / 1000)
      if (own !== second) cell.write(new Date(ms).toISOString(), quote.length)
      second = own
      const rest = ms - own * 1000
      cell[at] = ZERO + Math.floor(rest / 100)
      cell[at + 1] = ZERO + (Math.floor(rest / 10) % 10)
      cell[at + 2] = ZERO + (rest % 10)
      put(out, cell)
    }
  }

/** The characters before the milliseconds. */
const SECOND_CHARS = 20
const ZERO = 0x30

/** @param names the values of the column of Enum8, from 0 on */
export const codedCell =
  (column: string, names: readonly string[]): OpenCell =>
  (block, { quote }) => {
    const codes = block.fixed(column)
    const words = names.map((name) => Buffer.from(`${quote}${name}${quote}`))
    return (out, row) => put(out, words[codes[row] ?? 0] ?? NOTHING)
  }

const NOTHING = new Uint8Array(0)
const HEX_DIGITS = Buffer.from('0123456789abcdef')

/** A number of 64 bits as 16 digits. */
export const hexCell =
  (column: string): OpenCell =>
  (block, { quote }) => {
    const bytes = block.fixed(column)
    const around = Buffer.from(quote)
    return (out, row) => {
      put(out, around)
      out.reserve(16)
      for (let at = row * 8 + 7; at >= row * 8; at--) {
        const byte = bytes[at] ?? 0
        out.bytes[out.length++] = HEX_DIGITS[byte >> 4] ?? 0
        out.bytes[out.length++] = HEX_DIGITS[byte & 15] ?? 0
      }
      put(out, around)
    }
  }

/** @param column of LowCardinality(String) */
export const namedCell =
  (column: string): OpenCell =>
  (block, format) => {
    const cellOf = perKey(block, column, (key) => {
      const cell = new ByteBuffer(64)
      format.text(cell, { bytes: key, from: 0, to: key.length })
      return cell.copy()
    })
    return (out, row) => put(out, cellOf(row))
  }

/** @param column of String */
export const textCell =
  (column: string): OpenCell =>
  (block, format) => {
    const texts = block.spans(column)
    const span: TextSpan = { bytes: NOTHING, from: 0, to: 0 }
    return (out, row) => format.text(out, spanOf(texts, row, span))
  }

/** Joins a message like `wholeMessage` does. */
export const messageCell: OpenCell = (block, format) => {
  const literalsOf = perKey(block, 'constant_text', (key) =>
    key.length === 0 ? null : key.toString().split(DELIMITER).map(toBytes),
  )
  const variables = block.spans('variables')
  const span: TextSpan = { bytes: NOTHING, from: 0, to: 0 }
  const whole = new ByteBuffer(4096)
  return (out, row) => {
    const literals = literalsOf(row)
    spanOf(variables, row, span)
    format.text(out, literals === null ? span : interleaved(literals, span, whole))
  }
}

/** Joins tags like `wholeTags` does, with the reason of a correction as one of them. */
export const tagsCell: OpenCell = (block, format) => {
  const literalsOf = perKey(block, 'attribute_names', (key) => {
    if (key.length === 0) return null
    const names = key.toString().split(DELIMITER)
    return [...names.map((name, i) => `${i === 0 ? '{' : ','}"${name}":`), '}'].map(toBytes)
  })
  const values = block.spans('attribute_values')
  const texts = block.spans('tags_text')
  const reasons = block.spans('correction_reason')
  const span: TextSpan = { bytes: NOTHING, from: 0, to: 0 }
  const reason: TextSpan = { bytes: NOTHING, from: 0, to: 0 }
  const whole = new ByteBuffer(4096)
  const tagsOf = (row: number): TextSpan => {
    const literals = literalsOf(row)
    spanOf(texts, row, span)
    if (span.from < span.to) return span
    return literals === null ? EMPTY_TAGS : interleaved(literals, spanOf(values, row, span), whole)
  }
  return (out, row) => {
    const tags = tagsOf(row)
    format.json(out, isEmpty(reasons, row) ? tags : withReason(tags, spanOf(reasons, row, reason)))
  }
}

const toBytes = (text: string): Uint8Array => Buffer.from(text)
const toSpan = (bytes: Uint8Array): TextSpan => ({ bytes, from: 0, to: bytes.length })
const EMPTY_TAGS = toSpan(toBytes('{}'))

/** Appends the reason of a correction after the other tags, even when a tag of the same name was sent. */
function withReason({ bytes, from, to }: TextSpan, reason: TextSpan): TextSpan {
  const tags = new ByteBuffer(to - from + 256)
  tags.append(bytes.subarray(from, to - 1))
  put(tags, to - from === EMPTY_TAGS.to ? REASON_ALONE : REASON_BEHIND)
  putJsonText(tags, reason)
  tags.u8(CLOSING_BRACE)
  return toSpan(tags.written)
}

const REASON_ALONE = toBytes('"correction_reason":')
const REASON_BEHIND = toBytes(',"correction_reason":')
const CLOSING_BRACE = 0x7d

/** The reason of a correction is listed as a tag, but stored in a column. */
const REASON = 'correction_reason'

/** The text of an attribute, the first of several. */
export const attributeCell =
  (path: string): OpenCell =>
  (block, format) => {
    const itemOf = perKey(block, 'attribute_names', (key) =>
      key.toString().split(DELIMITER).indexOf(path),
    )
    const values = block.spans('attribute_values')
    const reasons = block.spans(REASON)
    const none = toBytes(format.none)
    const span: TextSpan = { bytes: NOTHING, from: 0, to: 0 }
    return (out, row) => {
      const item = itemOf(row)
      if (path === REASON && !isEmpty(reasons, row)) format.text(out, spanOf(reasons, row, span))
      else if (item < 0) put(out, none)
      else format.text(out, unquoted(narrow(spanOf(values, row, span), item)))
    }
  }

const MARK = DELIMITER.charCodeAt(0)
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Narrows a span of joined values to one of them. */
function narrow(span: TextSpan, item: number): TextSpan {
  const { bytes, to } = span
  for (let skipped = 0; skipped < item && span.from < to; span.from++)
    if (bytes[span.from] === MARK) skipped += 1
  const end = bytes.indexOf(MARK, span.from)
  if (end >= 0 && end < to) span.to = end
  return span
}

/** Decodes a JSON string; other JSON values stay as they are. */
function unquoted(span: TextSpan): TextSpan {
  const { bytes, from, to } = span
  if (from === to || bytes[from] !== QUOTE) return span
  for (let at = from; at < to; at++)
    if (bytes[at] === BACKSLASH) {
      const json = Buffer.from(bytes.subarray(from, to)).toString()
      return toSpan(toBytes(String(JSON.parse(json))))
    }
  span.from += 1
  span.to -= 1
  return span
}

/** Writes constant texts and values alternately, both in order. */
function interleaved(
  literals: readonly Uint8Array[],
  values: TextSpan,
  whole: ByteBuffer,
): TextSpan {
  whole.clear()
  let from = values.from
  literals.forEach((literal, i) => {
    put(whole, literal)
    if (i === literals.length - 1 || from > values.to) return
    from = putItem(whole, values, from)
  })
  return { bytes: whole.bytes, from: 0, to: whole.length }
}

/** Appends the value that begins at `from`. @returns where the next one begins */
function putItem(out: ByteBuffer, { bytes, to }: TextSpan, from: number): number {
  out.reserve(to - from)
  const into = out.bytes
  let length = out.length
  let at = from
  for (; at < to; at++) {
    const byte = bytes[at] ?? 0
    if (byte === MARK) break
    into[length++] = byte
  }
  out.length = length
  return at + 1
}

/** Computes a value from the dictionary entry of a row, once for each entry in use. */
function perKey<T>(
  block: NativeBlock,
  column: string,
  make: (key: Buffer) => T,
): (row: number) => T {
  const dictionary = block.dictionary(column)
  const made = new Map<number, T>()
  return (row) => {
    const index = indexAt(dictionary, row)
    const known = made.get(index)
    if (known !== undefined) return known
    const value = make(dictionary.keys.at(index) ?? Buffer.alloc(0))
    made.set(index, value)
    return value
  }
}

function spanOf(texts: Texts, row: number, span: TextSpan): TextSpan {
  span.bytes = texts.bytes
  span.from = texts.textStart(row)
  span.to = texts.starts[row + 1] ?? span.from
  return span
}

const isEmpty = (texts: Texts, row: number): boolean =>
  texts.textStart(row) === texts.starts[row + 1]

function putAscii(out: ByteBuffer, text: string): void {
  out.reserve(text.length)
  const into = out.bytes
  const start = out.length
  for (let i = 0; i < text.length; i++) into[start + i] = text.charCodeAt(i)
  out.length = start + text.length
}
