import { randomBytes } from 'node:crypto'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'

/**
 * A segment of the log is a file with a sequence of frames: delimiter (4 bytes), length u32, CRC-32 u32 (of the salt,
 * kind, sequence and payload), kind u8, sequence u64, payload. Numbers are little-endian.
 *
 * Delimiter and salt are random and part of the segment's file name. After damaged bytes the reader searches for the
 * next delimiter, and payloads contain texts of clients: with a known delimiter and salt a client could forge a frame.
 */
export const FRAME_HEADER = 21
const DELIMITER_BYTES = 4
const KEY_BYTES = 12
/** A greater length means damage, because no record is as large. */
const MAX_PAYLOAD = 1024 * 1024 * 1024

/**
 * record: rows or a command, in the order in which they take effect.
 * batch:  the records from `sequence` to payload[0..8] (u64) are sent under the token payload[8..]; a zero byte and
 *         an amendment follow when the batch differs from its records. It is written before the batch is first sent.
 * done:   every record up to `sequence` is in ClickHouse.
 */
export const FRAME_KINDS = ['record', 'batch', 'done'] as const
export type FrameKind = (typeof FRAME_KINDS)[number]

export interface Frame {
  readonly kind: FrameKind
  readonly seq: number
  /** The offset of the header in the segment. */
  readonly offset: number
  readonly payload: Uint8Array
}

export interface SegmentName {
  readonly text: string
  /** Segments are read in ascending order of their numbers. */
  readonly number: number
  /** Delimiter and salt of its frames. */
  readonly key: Buffer
}

export function segmentName(number: number): SegmentName {
  const key = randomBytes(KEY_BYTES)
  return { text: `${String(number).padStart(10, '0')}-${key.toString('hex')}.log`, number, key }
}

/** @returns null for a file that is no segment */
export function parseSegmentName(text: string): SegmentName | null {
  const match = /^(\d{10})-([0-9a-f]{24})\.log$/.exec(text)
  if (match === null) return null
  return { text, number: Number(match[1]), key: Buffer.from(match[2] ?? '', 'hex') }
}

export function encodeFrame(
  key: Buffer,
  { kind, seq, payload }: Pick<Frame, 'kind' | 'seq'> & { readonly payload: readonly Uint8Array[] },
): Uint8Array[] {
  const header = Buffer.allocUnsafe(FRAME_HEADER)
  const length = payload.reduce((sum, part) => sum + part.length, 0)
  header.set(key.subarray(0, DELIMITER_BYTES), 0)
  header.writeUInt32LE(length, 4)
  header.writeUInt8(FRAME_KINDS.indexOf(kind), 12)
  header.writeUInt32LE(seq % 0x1_0000_0000, 13)
  header.writeUInt32LE(Math.floor(seq / 0x1_0000_0000), 17)
  header.writeUInt32LE(crc32Of([key.subarray(DELIMITER_BYTES), header.subarray(12), ...payload]), 8)
  return [header, ...payload]
}

interface SegmentScan {
  readonly frames: readonly Frame[]
  /** The byte ranges that contain no complete frame. */
  readonly damaged: readonly DamagedRange[]
}

export interface DamagedRange {
  readonly offset: number
  readonly length: number
}

/** Reads every complete frame. After damaged bytes it continues at the next frame with a valid checksum. */
export function scanSegment(key: Buffer, bytes: Buffer): SegmentScan {
  const frames: Frame[] = []
  const damaged: DamagedRange[] = []
  for (let offset = 0; offset < bytes.length;) {
    const frame = frameAt(key, bytes, offset)
    if (frame !== null) {
      frames.push(frame)
      offset += FRAME_HEADER + frame.payload.length
      continue
    }
    const next = nextFrame(key, bytes, offset + 1)
    damaged.push({ offset, length: next - offset })
    offset = next
  }
  return { frames, damaged }
}

/** @returns null when no complete frame begins there */
export function frameAt(key: Buffer, bytes: Buffer, offset: number): Frame | null {
  if (offset + FRAME_HEADER > bytes.length) return null
  if (bytes.compare(key, 0, DELIMITER_BYTES, offset, offset + DELIMITER_BYTES) !== 0) return null
  const length = bytes.readUInt32LE(offset + 4)
  const end = offset + FRAME_HEADER + length
  if (length > MAX_PAYLOAD || end > bytes.length) return null
  const kind = FRAME_KINDS[bytes.readUInt8(offset + 12)]
  const crc = crc32Of([key.subarray(DELIMITER_BYTES), bytes.subarray(offset + 12, end)])
  if (kind === undefined || crc !== bytes.readUInt32LE(offset + 8)) return null
  const seq = bytes.readUInt32LE(offset + 13) + bytes.readUInt32LE(offset + 17) * 0x1_0000_0000
  return { kind, seq, offset, payload: bytes.subarray(offset + FRAME_HEADER, end) }
}

function nextFrame(key: Buffer, bytes: Buffer, from: number): number {
  const delimiter = key.subarray(0, DELIMITER_BYTES)
  let at = bytes.indexOf(delimiter, from)
  while (at >= 0 && frameAt(key, bytes, at) === null) at = bytes.indexOf(delimiter, at + 1)
  return at < 0 ? bytes.length : at
}

/** CRC-32 over several byte ranges as if they were one. */
function crc32Of(parts: readonly Uint8Array[]): number {
  let crc = 0
  for (const part of parts) crc = crc32(part, crc)
  return crc
}

/** Writes a file other than a segment into the directory of the log; it is on disk when this resolves. */
export async function writeBesideLog(
  dir: string,
  name: string,
  parts: readonly Uint8Array[],
): Promise<void> {
  const file = await open(join(dir, name), 'w', 0o600)
  try {
    await writeAll(file, parts, 0)
    await file.sync()
  } finally {
    await file.close()
  }
  await syncDir(dir)
}

/** A new file survives a power failure only when its directory is on disk too. */
export async function syncDir(path: string): Promise<void> {
  const dir = await open(path, 'r')
  try {
    await dir.sync()
  } finally {
    await dir.close()
  }
}

export async function writeAll(
  file: FileHandle,
  buffers: readonly Uint8Array[],
  at: number,
): Promise<void> {
  let position = at
  // Linux takes at most 1024 buffers in one call (IOV_MAX).
  for (let first = 0; first < buffers.length; first += 1000) {
    let group = buffers.slice(first, first + 1000)
    while (group.length > 0) {
      const { bytesWritten } = await file.writev(group, position)
      position += bytesWritten
      group = afterBytes(group, bytesWritten)
    }
  }
}

/** @returns the bytes that a short write left out */
function afterBytes(buffers: readonly Uint8Array[], written: number): Uint8Array[] {
  let skip = written
  const rest: Uint8Array[] = []
  for (const buffer of buffers) {
    if (skip < buffer.length) rest.push(buffer.subarray(skip))
    skip = Math.max(0, skip - buffer.length)
  }
  return rest
}
