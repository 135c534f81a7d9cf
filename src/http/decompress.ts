import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { Decompress } from 'fzstd'
import { AppError } from '../model/errors.js'
import type { HeaderBag } from './request.js'
import { readZstdFrames } from './zstd-frames.js'

export type ContentCoding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd'

const CODINGS: Readonly<Record<string, ContentCoding>> = {
  '': 'identity',
  identity: 'identity',
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'br',
  zstd: 'zstd',
}

/** @throws AppError unsupported_media_type for another coding or several codings */
export function readContentCoding(headers: HeaderBag): ContentCoding {
  const text = headers.all('content-encoding').join(',').trim().toLowerCase()
  const coding = Object.hasOwn(CODINGS, text) ? CODINGS[text] : undefined
  if (coding !== undefined) return coding
  throw new AppError('unsupported_media_type', 'Content-Encoding must be gzip, deflate, br or zstd')
}

/** Refuses compressed bodies. @throws AppError unsupported_media_type */
export function refuseContentCoding(headers: HeaderBag): void {
  if (readContentCoding(headers) === 'identity') return
  throw new AppError('unsupported_media_type', 'the body must not be compressed')
}

/**
 * Decompresses a whole body without blocking the event loop.
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
  if (coding === 'identity') {
    if (body.byteLength > limitBytes) throw tooLarge(limitBytes)
    return body
  }
  try {
    return await DECODERS[coding](body, limitBytes)
  } catch (error) {
    if (error instanceof AppError) throw error
    if (isOverLimit(error)) throw tooLarge(limitBytes)
    throw new AppError('bad_request', `the body is not valid ${coding}`, { cause: error })
  }
}

type Decoder = (body: Uint8Array, limitBytes: number) => Promise<Uint8Array>

const gunzip = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.gunzip)
const inflate = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.inflate)
const inflateRaw = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.inflateRaw)
const brotli = promisify<Uint8Array, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress)

/** Size of the output chunks; each takes one iteration of the event loop. Larger ones are no faster for small bodies. */
const CHUNK = { chunkSize: 65_536 } as const

const DECODERS: Readonly<Record<Exclude<ContentCoding, 'identity'>, Decoder>> = {
  gzip: (body, maxOutputLength) => gunzip(body, { ...CHUNK, maxOutputLength }),
  // The HTTP standard means the zlib format, but some clients send a raw deflate stream.
  deflate: (body, maxOutputLength) =>
    (hasZlibHeader(body) ? inflate : inflateRaw)(body, { ...CHUNK, maxOutputLength }),
  br: (body, maxOutputLength) => brotli(body, { ...CHUNK, maxOutputLength }),
  zstd: nativeZstd() ?? portableZstd,
}

function hasZlibHeader([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 15) === 8 && ((first << 8) | second) % 31 === 0
}

type NativeZstd = (
  body: Uint8Array,
  options: { readonly maxOutputLength: number },
  done: (error: Error | null, result: Buffer) => void,
) => void

/** Node has zstd from version 22.15; it runs in the thread pool. */
function nativeZstd(): Decoder | null {
  const native: unknown = Object(zlib)['zstdDecompress']
  if (typeof native !== 'function') return null
  const run = promisify(native as NativeZstd) // its documented signature
  return async (body, limitBytes) => {
    const output = new BoundedOutput(limitBytes)
    // Node decompresses one frame at a time and applies its own limit to the window.
    for (const frame of wholeFrames(body, limitBytes)) {
      const maxOutputLength = Math.max(1, limitBytes - output.bytes)
      output.add(await run(frame, { maxOutputLength }))
    }
    return output.join()
  }
}

/** Input chunks; one this small holds few blocks of up to 128 KiB of output. */
const SLICE_BYTES = 1024
/** After this much output, about 5 ms of work, decompression yields to the event loop. */
const TURN_BYTES = 524_288
/** The usual compression levels need at most this window, whatever the content. */
const COMMON_WINDOW_BYTES = 8_388_608

async function portableZstd(body: Uint8Array, limitBytes: number): Promise<Uint8Array> {
  const output = new BoundedOutput(limitBytes)
  for (const frame of wholeFrames(body, limitBytes)) await decodeFrame(frame, output)
  return output.join()
}

/** @throws AppError body_too_large when a frame requires a window above the limit of the result */
function wholeFrames(body: Uint8Array, limitBytes: number): readonly Uint8Array[] {
  const frames = readZstdFrames(body)
  if (frames === null) throw new Error('not whole Zstandard frames')
  for (const { windowBytes } of frames)
    if (windowBytes > Math.max(limitBytes, COMMON_WINDOW_BYTES)) throw tooLarge(limitBytes)
  return frames.map(({ bytes }) => bytes)
}

async function decodeFrame(frame: Uint8Array, output: BoundedOutput): Promise<void> {
  const decoder = new Decompress((chunk) => output.add(chunk))
  let turnEnd = output.bytes + TURN_BYTES
  for (let at = 0; at < frame.byteLength; at += SLICE_BYTES) {
    const end = at + SLICE_BYTES
    decoder.push(frame.subarray(at, end), end >= frame.byteLength)
    if (output.bytes < turnEnd) continue
    await new Promise(setImmediate)
    turnEnd = output.bytes + TURN_BYTES
  }
}

class BoundedOutput {
  readonly #limitBytes: number
  readonly #chunks: Uint8Array[] = []
  #bytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @throws AppError body_too_large, which stops the calling decoder */
  add(chunk: Uint8Array): void {
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#limitBytes) throw tooLarge(this.#limitBytes)
    this.#chunks.push(chunk.slice())
  }

  join(): Uint8Array {
    const joined = new Uint8Array(this.#bytes)
    let offset = 0
    for (const chunk of this.#chunks) {
      joined.set(chunk, offset)
      offset += chunk.byteLength
    }
    return joined
  }
}

const isOverLimit = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'

function tooLarge(limitBytes: number): AppError {
  const details = { limit_bytes: limitBytes }
  const message = `the decompressed body exceeds ${limitBytes} bytes`
  return new AppError('body_too_large', message, { details })
}
