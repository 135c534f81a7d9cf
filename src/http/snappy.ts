import { createRequire } from 'node:module'

/** The package's module for bundlers fetches its WebAssembly by URL; the one for Node.js loads it. */
const { decompress_raw: decodeBlock } = createRequire(import.meta.url)('snappy-wasm') as {
  readonly decompress_raw: (data: Uint8Array) => Uint8Array
}

/** First chunk of the framing format: type 0xff, six bytes, `sNaPpY`. */
const STREAM_HEAD = Buffer.from([0xff, 6, 0, 0, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59])
const CHUNK_HEAD = 4
const CHECKSUM = 4
const COMPRESSED = 0
const UNCOMPRESSED = 1
/** Chunk types from here on may be skipped. */
const SKIPPABLE = 0x80

/**
 * Decodes Snappy data: one block, as Loki and Prometheus send it, or the framing format. Checksums are not compared; TCP
 * has one.
 *
 * @returns null when the result exceeds the limit
 * @throws Error when the data is invalid or incomplete
 */
export function decodeSnappy(data: Uint8Array, limitBytes: number): Uint8Array | null {
  const isFramed = STREAM_HEAD.every((byte, i) => data[i] === byte)
  return isFramed ? decodeFrames(data, limitBytes) : decodeWhole(data, limitBytes)
}

/** Three bytes, an offset and a length, stand for 64 bytes at most. */
const MOST_PER_BYTE = 64 / 3

function decodeWhole(data: Uint8Array, limitBytes: number): Uint8Array | null {
  const bytes = blockBytes(data)
  if (bytes > data.length * MOST_PER_BYTE) throw new Error('the data is no block of Snappy')
  return bytes > limitBytes ? null : decodeBlock(data)
}

/** Reads the length that a block begins with, because the decoder allocates it. */
function blockBytes(data: Uint8Array): number {
  let bytes = 0
  for (let i = 0; i < 5; i++) {
    const byte = data[i] ?? 0
    bytes += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) break
  }
  return bytes
}

function decodeFrames(data: Uint8Array, limitBytes: number): Uint8Array | null {
  const chunks: Uint8Array[] = []
  let sum = 0
  for (let at = 0; at < data.length;) {
    const { type, content, end } = chunkAt(data, at)
    at = end
    if (type >= SKIPPABLE) continue
    const chunk = type === COMPRESSED ? decodeWhole(content, limitBytes - sum) : content
    sum += chunk?.length ?? Infinity
    if (chunk === null || sum > limitBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** @throws Error for a chunk that is not complete or of an unknown type */
function chunkAt(data: Uint8Array, at: number) {
  const head = Buffer.from(data.subarray(at, at + CHUNK_HEAD))
  const end = at + CHUNK_HEAD + (head.length < CHUNK_HEAD ? Infinity : head.readUIntLE(1, 3))
  if (end > data.length) throw new Error('a chunk of Snappy data is not complete')
  const type = head[0] ?? 0
  const isKnown = type === COMPRESSED || type === UNCOMPRESSED || type >= SKIPPABLE
  if (!isKnown) throw new Error('unknown Snappy chunk')
  return { type, content: data.subarray(at + CHUNK_HEAD + CHECKSUM, end), end }
}
