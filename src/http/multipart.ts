import { AppError } from '../model/errors.js'
import type { Uws, UwsPart } from './uws.js'

export interface MultipartFile {
  /** Name of the form field. */
  readonly name: string
  /** As sent by the client; not a trusted path. */
  readonly filename: string
  /** As sent by the client; '' without one. */
  readonly type: string
  readonly data: Uint8Array
}

export interface MultipartForm {
  /** The last of equal names wins. */
  readonly fields: Readonly<Record<string, string>>
  readonly files: readonly MultipartFile[]
}

export interface MultipartLimits {
  /** Limit of one file. */
  readonly fileBytes: number
  /** Limit of one text field. */
  readonly fieldBytes: number
  /** Limit of all files and fields together. */
  readonly parts: number
}

const TYPE = /^multipart\/form-data\s*;/i
const BOUNDARY = /;\s*boundary=(?:"([\w'()+,\-./:=? ]{1,70})"|([\w'()+,\-./:=?]{1,70}))/i

/**
 * Parses a multipart/form-data body.
 *
 * @throws AppError unsupported_media_type for another content type, file_too_large, and
 *   validation_error for a body that is malformed, truncated or over a limit
 */
export function parseMultipart(
  uws: Uws,
  body: Uint8Array,
  contentType: string,
  limits: MultipartLimits,
): MultipartForm {
  const match = BOUNDARY.exec(contentType)
  const boundary = match?.[1] ?? match?.[2]
  if (!TYPE.test(contentType) || boundary === undefined) {
    throw new AppError('unsupported_media_type', 'the body must be multipart/form-data')
  }
  const delimited = countParts(body, boundary, limits.parts)
  // The parser of uWebSockets.js accepts neither quotes nor other parameters around the boundary.
  const parts = uws.addon.getParts(body, `multipart/form-data; boundary=${boundary}`) ?? []
  // It skips malformed parts silently.
  if (parts.length !== delimited) throw broken()
  return toForm(parts, limits)
}

/**
 * Counts the parts by their delimiters, before any is read: a million empty ones would take the
 * parser two seconds and a gigabyte.
 */
function countParts(body: Uint8Array, boundary: string, most: number): number {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const delimiter = `--${boundary}`
  let count = bytes.subarray(0, delimiter.length).toString('latin1') === delimiter ? 1 : 0
  let at = bytes.indexOf(`\r\n${delimiter}`)
  let last = count === 1 ? 0 : -1
  while (at !== -1) {
    if (count > most) throw invalidForm(`the form has more than ${most} parts`)
    count++
    last = at + 2
    at = bytes.indexOf(`\r\n${delimiter}`, last)
  }
  const after = last + delimiter.length
  const isClosed = last !== -1 && bytes.toString('latin1', after, after + 2) === '--'
  // The last delimiter ends the last part.
  if (count < 2 || !isClosed) throw broken()
  return count - 1
}

const broken = (): AppError => invalidForm('the form is broken or incomplete')

const UTF8 = new TextDecoder('utf-8', { fatal: true })

function toForm(parts: readonly UwsPart[], limits: MultipartLimits): MultipartForm {
  const fields = new Map<string, string>()
  const files: MultipartFile[] = []
  for (const { name, filename, type = '', data } of parts) {
    if (typeof name !== 'string' || name === '') throw invalidForm('a part of the form has no name')
    if (filename === undefined) {
      fields.set(name, toText(name, data, limits.fieldBytes))
      continue
    }
    if (data.byteLength > limits.fileBytes) throw tooLarge(data.byteLength, limits.fileBytes)
    files.push({ name, filename, type, data: new Uint8Array(data) })
  }
  return { fields: Object.fromEntries(fields), files }
}

function toText(name: string, data: ArrayBuffer, limitBytes: number): string {
  if (data.byteLength > limitBytes) {
    throw invalidForm(`field ${name.slice(0, 64)} is longer than ${limitBytes} bytes`)
  }
  try {
    return UTF8.decode(data)
  } catch {
    throw invalidForm(`field ${name.slice(0, 64)} is not UTF-8 text`)
  }
}

function tooLarge(bytes: number, limitBytes: number): AppError {
  const details = { limit_bytes: limitBytes }
  return new AppError('file_too_large', `file of ${bytes} bytes exceeds ${limitBytes}`, { details })
}

function invalidForm(message: string): AppError {
  const details = { errors: [{ in: 'body', path: '', message }] }
  return new AppError('validation_error', message, { details })
}
