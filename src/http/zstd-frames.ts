/** A frame of Zstandard data (RFC 8878), found by its headers without decompression. */
export interface ZstdFrame {
  readonly bytes: Uint8Array
  /** Memory that a decoder allocates before the first byte of output. */
  readonly windowBytes: number
}

const MAGIC = 0xfd2fb528
const SKIPPABLE = 0x184d2a50
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]
const DICTIONARY_BYTES = [0, 1, 2, 4]

/**
 * Splits data into its frames, so that a frame can be refused for its window: twelve bytes may require
 * a window of 2 GB.
 *
 * @returns null when a frame is incomplete or needs a dictionary
 */
export function readZstdFrames(data: Uint8Array): readonly ZstdFrame[] | null {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const frames: ZstdFrame[] = []
  let at = 0
  try {
    while (at < data.byteLength) {
      const magic = view.getUint32(at, true)
      // 16 magic numbers mark skippable frames.
      if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE) {
        at += 8 + view.getUint32(at + 4, true)
        continue
      }
      const header = magic === MAGIC ? readHeader(view, at + 4) : null
      if (header === null) return null
      const end = skipBlocks(view, header.end) + header.checksumBytes
      if (end > data.byteLength) return null
      frames.push({ bytes: data.subarray(at, end), windowBytes: header.windowBytes })
      at = end
    }
  } catch {
    // A read beyond the end means truncated data.
    return null
  }
  return at === data.byteLength && frames.length > 0 ? frames : null
}

interface FrameHeader {
  readonly end: number
  readonly windowBytes: number
  readonly checksumBytes: number
}

function readHeader(view: DataView, at: number): FrameHeader | null {
  const descriptor = view.getUint8(at)
  const isReserved = (descriptor & 8) !== 0
  const isSingle = (descriptor & 32) !== 0
  const dictionaryBytes = DICTIONARY_BYTES[descriptor & 3] ?? 0
  if (isReserved || dictionaryBytes > 0) return null
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag === 0 && isSingle ? 1 : (CONTENT_SIZE_BYTES[sizeFlag] ?? 0)
  const sizeAt = at + (isSingle ? 1 : 2)
  return {
    end: sizeAt + sizeBytes,
    windowBytes: isSingle ? readSize(view, sizeAt, sizeBytes) : readWindow(view.getUint8(at + 1)),
    checksumBytes: (descriptor & 4) === 0 ? 0 : 4,
  }
}

function readSize(view: DataView, at: number, bytes: number): number {
  switch (bytes) {
    case 1:
      return view.getUint8(at)
    case 2:
      return view.getUint16(at, true) + 256
    case 4:
      return view.getUint32(at, true)
    default:
      return Number(view.getBigUint64(at, true))
  }
}

function readWindow(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3))
  return base + (base / 8) * (descriptor & 7)
}

const RLE = 1

/** @returns where the frame's last block ends */
function skipBlocks(view: DataView, start: number): number {
  let at = start
  for (;;) {
    const header = view.getUint8(at) | (view.getUint8(at + 1) << 8) | (view.getUint8(at + 2) << 16)
    const type = (header >> 1) & 3
    at += 3 + (type === RLE ? 1 : header >> 3)
    if ((header & 1) === 1) return at
  }
}
