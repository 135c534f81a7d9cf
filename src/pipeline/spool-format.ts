import { crc32Of } from '../lib/crc32.js'

/**
 * A segment is a run of frames: magic u32, length u32, CRC-32 u32 (of kind, sequence and payload),
 * kind u8, sequence u64, payload. Numbers are little-endian.
 */
export const FRAME_HEADER = 21
const MAGIC = 0x31_50_53_4c
/** more than any entry can have; a length above it is damage */
const MAX_PAYLOAD = 1024 * 1024 * 1024

/**
 * entry  rows or a statement, in the order in which they take effect
 * cut    a batch: from entry `sequence` to payload[0..8] (u64) under the token payload[8..]; written before
 *        it is first sent
 * done   every entry up to `sequence` is in ClickHouse
 */
export const FRAME_KINDS = ['entry', 'cut', 'done'] as const
export type FrameKind = (typeof FRAME_KINDS)[number]

export interface Frame {
  readonly kind: FrameKind
  readonly seq: number
  /** of the whole frame in its segment */
  readonly offset: number
  readonly payload: Uint8Array
}

export function encodeFrame(
  kind: FrameKind,
  seq: number,
  payload: readonly Uint8Array[],
): Uint8Array[] {
  const header = Buffer.allocUnsafe(FRAME_HEADER)
  const length = payload.reduce((sum, part) => sum + part.length, 0)
  header.writeUInt32LE(MAGIC, 0)
  header.writeUInt32LE(length, 4)
  header.writeUInt8(FRAME_KINDS.indexOf(kind), 12)
  header.writeUInt32LE(seq % 0x1_0000_0000, 13)
  header.writeUInt32LE(Math.floor(seq / 0x1_0000_0000), 17)
  header.writeUInt32LE(crc32Of([header.subarray(12), ...payload]), 8)
  return [header, ...payload]
}

export interface SegmentScan {
  readonly frames: readonly Frame[]
  /** bytes that are whole frames from the start on */
  readonly goodBytes: number
  /** byte ranges that hold no whole frame, as `offset+length` */
  readonly damaged: readonly string[]
}

/** Reads every whole frame; damage is stepped over to the next frame that checks out. */
export function scanSegment(bytes: Buffer): SegmentScan {
  const frames: Frame[] = []
  const damaged: string[] = []
  let offset = 0
  let goodBytes = 0
  while (offset < bytes.length) {
    const frame = frameAt(bytes, offset)
    if (frame !== null) {
      frames.push(frame)
      offset += FRAME_HEADER + frame.payload.length
      if (damaged.length === 0) goodBytes = offset
      continue
    }
    const next = nextFrame(bytes, offset + 1)
    damaged.push(`${offset}+${next - offset}`)
    offset = next
  }
  return { frames, goodBytes, damaged }
}

function frameAt(bytes: Buffer, offset: number): Frame | null {
  if (offset + FRAME_HEADER > bytes.length || bytes.readUInt32LE(offset) !== MAGIC) return null
  const length = bytes.readUInt32LE(offset + 4)
  const end = offset + FRAME_HEADER + length
  if (length > MAX_PAYLOAD || end > bytes.length) return null
  const kind = FRAME_KINDS[bytes.readUInt8(offset + 12)]
  const crc = crc32Of([bytes.subarray(offset + 12, end)])
  if (kind === undefined || crc !== bytes.readUInt32LE(offset + 8)) return null
  const seq = bytes.readUInt32LE(offset + 13) + bytes.readUInt32LE(offset + 17) * 0x1_0000_0000
  return { kind, seq, offset, payload: bytes.subarray(offset + FRAME_HEADER, end) }
}

function nextFrame(bytes: Buffer, from: number): number {
  const magic = Buffer.allocUnsafe(4)
  magic.writeUInt32LE(MAGIC)
  let at = bytes.indexOf(magic, from)
  while (at >= 0 && frameAt(bytes, at) === null) at = bytes.indexOf(magic, at + 1)
  return at < 0 ? bytes.length : at
}
