import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import { AppError } from '../model/errors.js'
import type { HeaderBag } from './request.js'
import { decodeSnappy } from './snappy.js'
import { decodeZstd, loadZstd } from './zstd.js'

export type ContentCoding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd' | 'snappy'

const CODINGS: Readonly<Record<string, ContentCoding>> = {
  '': 'identity',
  identity: 'identity',
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  // The OpenTelemetry Collector's name for deflate.
  zlib: 'deflate',
  br: 'br',
  zstd: 'zstd',
  snappy: 'snappy',
  'x-snappy-framed': 'snappy',
  // A Python client sends this. The first bytes show that its bodies have the zlib format.
  'gzip,deflate': 'gzip',
}

/** For messages and the reference. */
export const CONTENT_CODINGS = 'gzip, deflate, br, zstd or snappy'

/**
 * @throws AppError unsupported_media_type for another coding, or for several, except
 * `gzip,deflate`, which stands for one of them
 */
export function readContentCoding(headers: HeaderBag): ContentCoding {
  const text = headers.all('content-encoding').join(',').replace(/\s/g, '').toLowerCase()
  const coding = Object.hasOwn(CODINGS, text) ? CODINGS[text] : undefined
  if (coding !== undefined) return coding
  throw new AppError('unsupported_media_type', `Content-Encoding must be ${CONTENT_CODINGS}`)
}

/** Refuses compressed bodies. @throws AppError unsupported_media_type */
export function refuseContentCoding(headers: HeaderBag): void {
  if (readContentCoding(headers) === 'identity') return
  throw new AppError('unsupported_media_type', 'the body must not be compressed')
}

/** First bytes of compressed bodies. No text begins with them. */
const MAGICS = [
  ['gzip', Uint8Array.of(0x1f, 0x8b, 0x08)],
  ['zstd', Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd)],
] as const
/** First bytes of what is sent uncompressed: JSON, and protobuf messages of the protocols here. */
const PLAIN_STARTS: ReadonlySet<number | undefined> = new Set([0x7b, 0x5b, 0x0a])

/**
 * Detects the coding by the first bytes, as far as possible: some clients send compressed bodies
 * without declaring it, and some declare gzip but send the zlib format or uncompressed data. A
 * plain text may begin like the zlib format (`x `, `x^`), and so may a block of Snappy.
 */
export function sniffCoding(body: Uint8Array, named: ContentCoding): ContentCoding {
  const found = MAGICS.find(([, magic]) => magic.every((byte, i) => body[i] === byte))
  if (found !== undefined) return found[0]
  const isZlib = hasZlibHeader(body)
  if (named === 'identity' && isZlib && body[0] === 0x78) return 'deflate'
  if (named !== 'gzip' && named !== 'zstd') return named
  if (isZlib) return 'deflate'
  return PLAIN_STARTS.has(body[0]) ? 'identity' : named
}

/**
 * Decompresses a whole body at once. It is for worker threads: hostile data may take a second
 * (16 MiB of empty brotli blocks), and libuv's threads must stay free to sync the WAL.
 *
 * @param limitBytes limit of the result; decompression stops there
 * @returns the body itself for `identity`
 * @throws AppError body_too_large above the limit, bad_request for invalid data
 */
export async function decompress(
  body: Uint8Array,
  coding: ContentCoding,
  limitBytes: number,
): Promise<Uint8Array> {
  const decoded = await decode(body, coding, limitBytes).catch((error: unknown) => {
    if (isOverLimit(error)) return null
    throw new AppError('bad_request', `the body is not valid ${coding}`, { cause: error })
  })
  if (decoded !== null && decoded.byteLength <= limitBytes) return decoded
  const details = { limit_bytes: limitBytes }
  const message = `the decompressed body exceeds ${limitBytes} bytes`
  throw new AppError('body_too_large', message, { details })
}

/** @returns null above the limit */
async function decode(
  body: Uint8Array,
  coding: ContentCoding,
  maxOutputLength: number,
): Promise<Uint8Array | null> {
  const options = { chunkSize: CHUNK_BYTES, maxOutputLength }
  switch (coding) {
    case 'identity':
      return body
    case 'gzip':
      return gunzipSync(body, options)
    case 'deflate':
      // The HTTP standard means the zlib format, but some clients send a raw deflate stream.
      return (hasZlibHeader(body) ? inflateSync : inflateRawSync)(body, options)
    case 'br':
      return brotliDecompressSync(body, options)
    case 'zstd':
      await loadZstd()
      return decodeZstd(body, maxOutputLength)
    case 'snappy':
      return decodeSnappy(body, maxOutputLength)
  }
}

/** Output is collected in chunks of this size; larger ones are no faster for small bodies. */
const CHUNK_BYTES = 65_536

function hasZlibHeader([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 15) === 8 && ((first << 8) | second) % 31 === 0
}

const isOverLimit = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
