import { open, readFile, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

import type { WalDisk } from './disk.js'
import {
  frameAt,
  scanSegment,
  segmentName,
  syncDir,
  type DamagedRange,
  type Frame,
  type SegmentName,
} from './file.js'

/** Larger segments free the disk later, smaller ones cost a file per second (bench/micro/wal.ts). */
export const SEGMENT_BYTES = 64 * 1024 * 1024
/** The most segments that are kept for the deduplication keys in their records. */
const NAMED_SEGMENTS = 8

export interface Segment {
  readonly path: string
  readonly key: Buffer
  readonly file: FileHandle
  size: number
  /** The number of its records that ClickHouse does not have yet. */
  waiting: number
  /** The segment is kept for its deduplication keys until this time (ms since 1970), or until space is needed. */
  keepUntilMs: number
}

/** The files of the log, oldest first. The last one is written; those of an earlier run are only read. */
export class Segments {
  readonly #dir: string
  readonly #disk: WalDisk
  readonly #all: Segment[] = []
  #nextNumber = 1

  constructor(dir: string, disk: WalDisk) {
    this.#dir = dir
    this.#disk = disk
  }

  get last(): Segment | undefined {
    return this.#all.at(-1)
  }

  includes(segment: Segment): boolean {
    return this.#all.includes(segment)
  }

  /** Reads a segment of an earlier run. */
  async load(
    { text, number, key }: SegmentName,
    keepOnceKeysMs: number,
  ): Promise<{
    readonly segment: Segment
    readonly frames: readonly Frame[]
    readonly damaged: readonly DamagedRange[]
    readonly writtenAtMs: number
  }> {
    const path = join(this.#dir, text)
    const { frames, damaged } = scanSegment(key, await readFile(path))
    const file = await open(path, 'r')
    // A damaged segment is not kept, because its damage is reported at each start.
    const keepUntilMs = damaged.length > 0 ? 0 : Date.now() + keepOnceKeysMs
    const segment: Segment = { path, key, file, size: SEGMENT_BYTES, waiting: 0, keepUntilMs }
    this.#all.push(segment)
    this.#nextNumber = number + 1
    return { segment, frames, damaged, writtenAtMs: (await file.stat()).mtimeMs }
  }

  /** Begins a new segment. */
  async roll(): Promise<Segment> {
    const { text, key } = segmentName(this.#nextNumber++)
    const path = join(this.#dir, text)
    const file = await open(path, 'wx+', 0o600)
    const segment = { path, key, file, size: 0, waiting: 0, keepUntilMs: 0 }
    this.#all.push(segment)
    await syncDir(this.#dir)
    await this.dropDone()
    return segment
  }

  /** Deletes completed segments from the oldest on, because a segment holds the `done` frames of the segments before it. */
  async dropDone(): Promise<void> {
    for (;;) {
      const [segment] = this.#all
      if (this.#all.length < 2 || segment === undefined || segment.waiting > 0) return
      if (this.#isKept(segment)) return
      const isGone = await rm(segment.path, { force: true }).then(
        () => true,
        () => false,
      )
      // The next done record tries again.
      if (!isGone) return
      if (this.#all[0] === segment) this.#all.shift()
      await segment.file.close().catch(() => undefined)
    }
  }

  #isKept({ keepUntilMs }: Segment): boolean {
    const hasRoom = this.#disk.hasReserve && !this.#disk.isNearlyFull
    return hasRoom && this.#all.length <= NAMED_SEGMENTS && keepUntilMs > Date.now()
  }

  async close(): Promise<void> {
    for (const { file } of this.#all) await file.close()
    this.#all.length = 0
  }
}

/** Reads the payload of a record from the disk. @returns null when it is damaged */
export async function payloadAt(
  {
    segment,
    offset,
    seq,
  }: { readonly segment: Segment; readonly offset: number; readonly seq: number },
  buffer: Buffer,
): Promise<Uint8Array | null> {
  const { bytesRead } = await segment.file
    .read(buffer, 0, buffer.length, offset)
    .catch((error: unknown) => {
      // EIO is a bad sector; other errors are transient.
      if (error instanceof Error && 'code' in error && error.code === 'EIO') return { bytesRead: 0 }
      throw error
    })
  const frame = frameAt(segment.key, buffer.subarray(0, bytesRead), 0)
  return frame?.kind === 'record' && frame.seq === seq ? frame.payload : null
}

/** Truncates the segment after its last complete frame. */
export async function truncateTail(segment: Segment | undefined): Promise<void> {
  await segment?.file.truncate(segment.size)
  // Without the sync, a power failure could restore old bytes after the ones that are written next.
  await segment?.file.datasync()
}
