import { isUtf8 } from 'node:buffer'

import { AppError } from '../../model/errors.js'

/** First bytes of compressed and binary files: gzip, zip (xlsx), zstd, bzip2, xz, PDF. */
const FOREIGN_STARTS = ['1f8b', '504b0304', '28b52ffd', '425a68', 'fd377a58', '25504446'] as const

const SAMPLE_CHARS = 65_536
/** A file with a greater share of control and replacement characters is binary. */
const MAX_GARBAGE = 0.1

/** A text of any encoding. */
export interface FileText {
  readonly text: string
  /** The text in UTF-8, without a byte order mark. */
  readonly bytes: Buffer
}

/**
 * @throws AppError `file_parse_error` for compressed and binary files
 * @throws AppError `empty_file` for a file of blanks
 */
export function readFileText(body: Uint8Array): FileText {
  const start = Buffer.from(body.subarray(0, 4)).toString('hex')
  if (FOREIGN_STARTS.some((magic) => start.startsWith(magic))) throw notText()
  const file = readAnyText(body)
  if (garbageShare(file.text) > MAX_GARBAGE) throw notText()
  if (!/[^\s\0]/.test(file.text)) throw new AppError('empty_file', 'the file holds no rows')
  return file
}

/** Reads bytes as text, whatever they are. */
export function readAnyText(body: Uint8Array): FileText {
  const raw = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const wide = wideEncoding(raw)
  const encoding = wide ?? (isLatin(raw) ? 'windows-1252' : null)
  const bytes = encoding === null ? withoutMark(raw) : transcode(raw, encoding)
  return { text: bytes.toString('utf8'), bytes }
}

/**
 * Recognises bytes that are not text. Text in an unknown encoding has no control characters and is
 * accepted with replacement characters, because its sender may not send it again.
 */
export const isBinary = ({ text }: FileText): boolean =>
  garbageShare(text) > MAX_GARBAGE && Buffer.from(text.slice(0, SAMPLE_CHARS)).some(isControl)

const notText = (): AppError =>
  new AppError(
    'file_parse_error',
    'the file is not text: send CSV, JSON or plain text, uncompressed',
  )

/** Reads the value of a field whose encoding is not known. */
export const readFieldText = (raw: Buffer): string => raw.toString(isUtf8(raw) ? 'utf8' : 'latin1')

/** Removes the byte order mark of UTF-8, with which .NET begins a file or a stream. */
export const withoutMark = (raw: Buffer): Buffer =>
  raw[0] === 0xef && raw[1] === 0xbb && raw[2] === 0xbf ? raw.subarray(3) : raw

/** Converts to UTF-8; TextDecoder removes the byte order mark and replaces lone surrogates. */
const transcode = (raw: Buffer, encoding: string): Buffer =>
  Buffer.from(new TextDecoder(encoding).decode(raw), 'utf8')

/** Limits of the bytes of a file in Latin-1 that are not ASCII, and of its control characters. */
const MAX_LATIN = 0.3
const MAX_LATIN_CONTROLS = 0.001

/**
 * Recognises Latin-1 and Windows-1252 by more invalid UTF-8 sequences than valid characters beyond
 * ASCII. A few broken characters in a UTF-8 file are replaced.
 */
function isLatin(raw: Buffer): boolean {
  if (isUtf8(raw)) return false
  const bytes = raw.subarray(0, SAMPLE_CHARS * 4)
  const text = bytes.toString('utf8')
  const wide = text.match(/[^\p{ASCII}]/gu) ?? []
  const broken = wide.filter((char) => char === '\ufffd').length
  if (broken * 2 <= wide.length) return false
  let high = 0
  let controls = 0
  for (const byte of bytes) {
    if (byte >= 128) high += 1
    else if (byte < 32 && !isTextControl(byte)) controls += 1
  }
  return high <= bytes.length * MAX_LATIN && controls <= bytes.length * MAX_LATIN_CONTROLS
}

/** Recognises UTF-16 by its byte order mark, or by the zero bytes of ASCII characters in it. */
function wideEncoding(raw: Buffer): 'utf-16le' | 'utf-16be' | null {
  if (raw[0] === 0xff && raw[1] === 0xfe) return 'utf-16le'
  if (raw[0] === 0xfe && raw[1] === 0xff) return 'utf-16be'
  const pairs = Math.min(raw.length, SAMPLE_CHARS) >> 1
  if (pairs < 4) return null
  const even = zeroShare(raw, 0, pairs)
  const odd = zeroShare(raw, 1, pairs)
  if (odd > 0.4 && even < 0.05) return 'utf-16le'
  return even > 0.4 && odd < 0.05 ? 'utf-16be' : null
}

function zeroShare(raw: Buffer, from: 0 | 1, pairs: number): number {
  let zeros = 0
  for (let i = 0; i < pairs; i += 1) zeros += raw[2 * i + from] === 0 ? 1 : 0
  return zeros / pairs
}

/** Zero bytes do not count, because a truncated log may begin with many of them. */
function garbageShare(text: string): number {
  let garbage = 0
  let counted = 0
  for (let i = 0; i < text.length && counted < SAMPLE_CHARS; i += 1) {
    const code = text.charCodeAt(i)
    if (code === 0) continue
    counted += 1
    if (code === 0xfffd || isControl(code)) garbage += 1
  }
  return counted === 0 ? 0 : garbage / counted
}

const isControl = (code: number): boolean => code > 0 && code < 32 && !isTextControl(code)

/** Accepts backspace to carriage return, and escape, which begins terminal colours. */
const isTextControl = (code: number): boolean => (code >= 8 && code <= 13) || code === 27
