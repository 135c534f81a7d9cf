import { ZSTDDecoder } from 'zstddec'

const MAGIC = 0xfd2fb528
const SKIPPABLE = 0x184d2a50
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]
const DICTIONARY_BYTES = [0, 1, 2, 4]
const RLE = 1
const COMPRESSED = 2
/** No block holds more (RFC 8878, section 3.1.1.2.4). */
const BLOCK_BYTES = 131_072

const decoder = new ZSTDDecoder()

/** Loads the decoder; must be awaited before `decodeZstd`. It takes 20 ms and 14 MB, so it is loaded on first use. */
export const loadZstd = (): Promise<void> => decoder.init()

/**
 * Decodes Zstandard data of any number of frames with the reference decoder as WebAssembly. It writes into one buffer of
 * `limitBytes`, so frames, blocks and windows cost no memory of their own. Frames without content are not decoded: reading
 * their headers takes half of the time, and 16 MiB of them have 1.9 million.
 *
 * @returns null when the result exceeds the limit
 * @throws Error when the data is invalid, incomplete, or needs a dictionary
 */
export function decodeZstd(data: Uint8Array, limitBytes: number): Uint8Array | null {
  const most = largestContent(data)
  if (most === 0) return new Uint8Array(0)
  const decoded = most === null ? null : decoder.decode(data, limitBytes)
  // The decoder returns an empty array for invalid data, and for a result larger than the limit.
  if (decoded !== null && decoded.byteLength > 0) return decoded
  if (most !== null && most > limitBytes) return null
  throw new Error('invalid Zstandard data')
}

/**
 * Reads the headers of frames and blocks.
 *
 * @returns the most bytes that the frames can contain; null for data that is not a sequence of
 * whole frames, or needs a dictionary
 */
export function largestContent(data: Uint8Array): number | null {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let frames = 0
  let sum = 0
  let at = 0
  try {
    while (at < data.byteLength) {
      const magic = view.getUint32(at, true)
      // 16 magic numbers mark skippable frames.
      if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE) {
        at += 8 + view.getUint32(at + 4, true)
        continue
      }
      const frame = magic === MAGIC ? readFrame(view, at + 4) : null
      if (frame === null) return null
      at = frame.end
      sum += frame.contentBytes
      frames++
    }
  } catch {
    // A read beyond the end means truncated data.
    return null
  }
  return at === data.byteLength && frames > 0 ? sum : null
}

interface Frame {
  readonly end: number
  readonly contentBytes: number
}

function readFrame(view: DataView, start: number): Frame | null {
  const descriptor = view.getUint8(start)
  const isReserved = (descriptor & 8) !== 0
  const isSingle = (descriptor & 32) !== 0
  if (isReserved || (DICTIONARY_BYTES[descriptor & 3] ?? 0) > 0) return null
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag === 0 && isSingle ? 1 : (CONTENT_SIZE_BYTES[sizeFlag] ?? 0)
  const blocks = readBlocks(view, start + (isSingle ? 1 : 2) + sizeBytes)
  return { ...blocks, end: blocks.end + ((descriptor & 4) === 0 ? 0 : 4) }
}

function readBlocks(view: DataView, start: number): Frame {
  let contentBytes = 0
  let at = start
  for (;;) {
    const header = view.getUint8(at) | (view.getUint8(at + 1) << 8) | (view.getUint8(at + 2) << 16)
    const type = (header >> 1) & 3
    const bytes = header >> 3
    contentBytes += type === COMPRESSED ? BLOCK_BYTES : bytes
    at += 3 + (type === RLE ? 1 : bytes)
    if ((header & 1) === 1) return { end: at, contentBytes }
  }
}
