import { mkdir, open, readdir, readFile, rm, type FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'

import type { BlockPool } from './block-pool.js'
import { WalDisk } from './disk.js'
import { decodeBatch, encodeBatch, type RecordedBatch } from './recorded-batch.js'
import {
  encodeFrame,
  frameAt,
  FRAME_HEADER,
  parseSegmentName,
  scanSegment,
  segmentName,
  syncDir,
  writeAll,
  type DamagedRange,
  type Frame,
  type FrameKind,
  type SegmentName,
} from './file.js'

/** Larger segments free the disk later, smaller ones cost a file per second (bench/micro/wal.ts). */
const SEGMENT_BYTES = 64 * 1024 * 1024
/** The interval at which the disk's free space is measured and a failed disk is tried. */
const TEND_MS = 1_000
/** The codes of a full disk and of a used-up quota. */
const FULL_DISK = ['ENOSPC', 'EDQUOT']

export interface WalOptions {
  readonly dir: string
  readonly maxBytes: number
  /** Later records than these bytes are on disk only, and read back when they are sent. */
  readonly cacheBytes: number
  /** The memory for records that are read back. */
  readonly blockPool: BlockPool
  readonly onDamage: (report: {
    readonly segment: string
    readonly ranges: readonly string[]
  }) => void
}

export interface WaitingRecord {
  readonly seq: number
  readonly bytes: number
}

interface Pending extends WaitingRecord {
  /** When it was appended, or read at the start, by `performance.now`. */
  readonly sinceMs: number
  readonly segment: Segment
  readonly offset: number
  cached: readonly Uint8Array[] | null
  release: (() => void) | null
}

interface Segment {
  readonly path: string
  readonly key: Buffer
  readonly file: FileHandle
  size: number
  /** The number of its records that are not done. */
  waiting: number
}

interface Write {
  readonly kind: FrameKind
  readonly seq: number
  readonly payload: readonly Uint8Array[]
  /** Called when the payload's memory is not read any more. */
  readonly release: (() => void) | null
  readonly resolve: () => void
  readonly reject: (cause: unknown) => void
}

/**
 * The durable queue between the sequencer and ClickHouse: an append-only log in segments of 64 MiB.
 *
 * Records that wait to be written at the same time share a commit: one writev and one fdatasync. A record is
 * acknowledged after its commit, and a failed commit loses all its records and everything behind them. Before a batch
 * is first sent, two `batch` frames record its first and last record and its token (`recordBatch`); when ClickHouse has
 * stored it, a `done` frame records that everything up to its last record is done. A segment whose records are all done
 * is deleted. Records beyond `cacheBytes` are on disk only, and read back when they are sent.
 *
 * A restart reads every segment from the oldest on: the records that are not done wait again, and the recorded batch
 * goes out again unchanged. Damaged bytes are stepped over to the next whole frame, and reported.
 */
export class Wal {
  readonly #options: WalOptions
  readonly #disk: WalDisk
  readonly #timer: NodeJS.Timeout
  readonly #segments: Segment[] = []
  #pending: Pending[] = []
  #queue: Write[] = []
  #committing: Promise<void> | null = null
  #nextSeq = 1
  #bytes = 0
  #segmentNumber = 1
  #openBatch: RecordedBatch | null = null
  #doneSeq = 0
  #fault: Error | null = null
  #failures = 0
  #damagedBytes = 0
  #damagedUpTo = 0
  #tending: Promise<void> | null = null
  #isClosed = false

  private constructor(options: WalOptions, disk: WalDisk) {
    this.#options = options
    this.#disk = disk
    this.#timer = setInterval(() => {
      this.#tending ??= this.#tend().finally(() => {
        this.#tending = null
      })
    }, TEND_MS).unref()
  }

  /** Opens the log and finds the records that are not done. Damage is reported; the readable frames are kept. */
  static async open(options: WalOptions): Promise<Wal> {
    await mkdir(options.dir, { recursive: true, mode: 0o700 })
    const wal = new Wal(options, await WalDisk.open(options.dir))
    try {
      const names = (await readdir(options.dir)).map(parseSegmentName)
      const segments = names.filter((name) => name !== null)
      for (const name of segments.sort((a, b) => a.number - b.number)) await wal.#load(name)
      wal.#settle(wal.#doneSeq)
      if (wal.#damagedBytes > 0) wal.#damagedUpTo = wal.#nextSeq - 1
      await wal.#roll()
      return wal
    } catch (error) {
      await wal.close()
      throw error
    }
  }

  /** Bytes on disk that wait for ClickHouse. */
  get bytes(): number {
    return this.#bytes
  }

  get maxBytes(): number {
    return this.#options.maxBytes
  }

  get waiting(): readonly WaitingRecord[] {
    return this.#pending
  }

  /** How long the oldest record has waited for ClickHouse since it was appended, or since the start; 0 without one. */
  get oldestMs(): number {
    const [oldest] = this.#pending
    return oldest === undefined ? 0 : performance.now() - oldest.sinceMs
  }

  /** The batch that is recorded and not done; it is sent again unchanged. */
  get openBatch(): RecordedBatch | null {
    return this.#openBatch
  }

  /** The error that keeps the log from being written, null when it works. */
  get fault(): Error | null {
    return this.#fault
  }

  /**
   * The number of failed commits. It grows before the first append of the commit is rejected, and every append made
   * until then is lost too. A caller whose record refers to an earlier one compares this number first.
   */
  get failures(): number {
    return this.#failures
  }

  /** Bytes of frames that were found damaged, and are lost. */
  get damagedBytes(): number {
    return this.#damagedBytes
  }

  /** Records up to this one may refer to records that are lost by damage; 0 without damage. */
  get damagedUpTo(): number {
    return this.#damagedUpTo
  }

  isFull(): boolean {
    return this.#bytes >= this.#options.maxBytes || this.#disk.isNearlyFull
  }

  /**
   * Appends a record; its sequence is assigned at the call.
   *
   * @param release called once, when the payload's memory is not read any more: the record is done, lost or on disk
   * only
   * @returns its sequence, and a promise that resolves when it is on disk
   */
  append(
    payload: readonly Uint8Array[],
    release: (() => void) | null = null,
  ): {
    readonly seq: number
    readonly durable: Promise<void>
  } {
    const seq = this.#nextSeq++
    return { seq, durable: this.#write('record', seq, { payload, release }) }
  }

  /**
   * Records the composition of a batch before it is first sent. The frame is written twice: if damage took it, the
   * records would be sent again under another token and counted twice.
   */
  async recordBatch(batch: RecordedBatch): Promise<void> {
    const payload = encodeBatch(batch)
    await Promise.all([1, 2].map(() => this.#write('batch', batch.from, { payload })))
    this.#openBatch = batch
  }

  /** Everything up to `seq` is in ClickHouse. */
  async done(seq: number): Promise<void> {
    this.#openBatch = null
    this.#settle(seq)
    await this.#write('done', seq)
    await this.#dropDoneSegments()
  }

  /**
   * Reads the payload as it was appended, in one part or several.
   *
   * @returns null when it is damaged on disk: that is reported, and the record is lost
   */
  async read(record: WaitingRecord): Promise<readonly Uint8Array[] | null> {
    const pending = this.#pendingOf(record)
    if (pending.cached !== null) return pending.cached
    return await this.#readBack(pending, Buffer.allocUnsafe(FRAME_HEADER + pending.bytes))
  }

  /** Reads like `read`, and keeps the payload in memory until the record is done. */
  async load(record: WaitingRecord): Promise<readonly Uint8Array[] | null> {
    const pending = this.#pendingOf(record)
    if (pending.cached !== null) return pending.cached
    const { blockPool } = this.#options
    const bytes = FRAME_HEADER + pending.bytes
    const slice = blockPool.acquire(bytes)
    let payload: readonly Uint8Array[] | null = null
    try {
      payload = await this.#readBack(pending, Buffer.from(slice.buffer, slice.at, bytes))
    } finally {
      if (payload === null) blockPool.release(slice)
      else blockPool.retain(slice, bytes)
    }
    if (payload === null) return null
    pending.cached = payload
    pending.release = () => blockPool.release(slice)
    return payload
  }

  #pendingOf({ seq }: WaitingRecord): Pending {
    const pending = this.#pending[this.#indexAfter(seq) - 1]
    if (pending?.seq !== seq) throw new Error(`bug: wal record ${seq} is not waiting`)
    return pending
  }

  /** @param frame memory for the whole frame */
  async #readBack(pending: Pending, frame: Buffer): Promise<readonly Uint8Array[] | null> {
    // A second attempt may succeed.
    const payload = (await readBack(pending, frame)) ?? (await readBack(pending, frame))
    if (payload !== null) return [payload]
    const { segment, offset, seq } = pending
    const length = FRAME_HEADER + pending.bytes
    this.#damagedUpTo = this.#nextSeq - 1
    this.#reportDamage(basename(segment.path), [{ offset, length }])
    this.#settleOne(this.#pending.splice(this.#indexAfter(seq) - 1, 1)[0])
    return null
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#tending
    await this.#committing
    for (const segment of this.#segments) await segment.file.close()
    this.#segments.length = 0
  }

  #write(
    kind: FrameKind,
    seq: number,
    {
      payload = [],
      release = null,
    }: { payload?: readonly Uint8Array[]; release?: (() => void) | null } = {},
  ): Promise<void> {
    const written = new Promise<void>((resolve, reject) => {
      this.#queue.push({ kind, seq, payload, release, resolve, reject })
    })
    this.#committing ??= this.#commitAll()
    return written
  }

  async #commitAll(): Promise<void> {
    // Waits one microtask, so that writes of the same tick share a commit.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const group = await this.#takeGroup()
      try {
        await this.#commit(group)
        if (this.#disk.hasReserve) this.#fault = null
        for (const write of group) write.resolve()
      } catch (cause) {
        await this.#fail(group, cause)
      }
    }
    // No await after the last check of the queue: a write in between would wait for ever.
    this.#committing = null
  }

  /** Takes the queued writes. On a disk without a reserve records are refused, so that `done` frames can be written. */
  async #takeGroup(): Promise<readonly Write[]> {
    if (this.#fault !== null && !this.#disk.hasReserve) {
      await this.#disk.tend()
      if (!this.#disk.hasReserve) this.#lose(this.#fault, ({ kind }) => kind === 'record')
    }
    return this.#queue.splice(0)
  }

  async #commit(group: readonly Write[]): Promise<void> {
    if (group.length === 0) return
    let segment = this.#segments.at(-1)
    if (segment === undefined || this.#isOver(segment)) segment = await this.#roll()
    const start = segment.size
    const { key } = segment
    const buffers = group.flatMap((write) => encodeFrame(key, write))
    const total = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
    await writeAll(segment.file, buffers, start)
    await segment.file.datasync()
    segment.size = start + total
    let offset = start
    for (const write of group) {
      const bytes = write.payload.reduce((sum, part) => sum + part.length, 0)
      if (write.kind === 'record') this.#addPending(write, { segment, offset, bytes })
      offset += FRAME_HEADER + bytes
    }
  }

  /** On a full disk a new segment begins as soon as that frees the current one. */
  #isOver({ size, waiting }: Segment): boolean {
    return size >= SEGMENT_BYTES || (!this.#disk.hasReserve && size > 0 && waiting === 0)
  }

  #addPending(
    { seq, payload, release }: Write,
    at: { readonly segment: Segment; readonly offset: number; readonly bytes: number },
  ): void {
    this.#bytes += at.bytes
    // The cache is for the oldest records, which are sent next.
    const isNear = this.#bytes <= this.#options.cacheBytes
    const sinceMs = performance.now()
    this.#pending.push({
      seq,
      sinceMs,
      ...at,
      ...(isNear ? { cached: payload, release } : NOT_CACHED),
    })
    if (!isNear) release?.()
    at.segment.waiting++
  }

  /** Removes the bytes of a failed commit, because a later frame must not follow a torn one. */
  async #fail(group: readonly Write[], cause: unknown): Promise<void> {
    this.#fault = cause instanceof Error ? cause : new Error(String(cause))
    const segment = this.#segments.at(-1)
    await truncateTail(segment).catch(() => {
      // The torn tail fails its checksum when it is read; the next write begins a new segment.
      if (segment !== undefined) segment.size = SEGMENT_BYTES
    })
    if ('code' in this.#fault && FULL_DISK.includes(String(this.#fault.code)))
      await this.#disk.spendReserve()
    // The writes that were queued meanwhile may refer to lost records, so they are lost too.
    this.#queue.unshift(...group)
    this.#lose(cause, () => true)
  }

  /** Rejects queued writes. */
  #lose(cause: unknown, isLost: (write: Write) => boolean): void {
    const lost = this.#queue.filter(isLost)
    this.#queue = this.#queue.filter((write) => !isLost(write))
    if (lost.length > 0) this.#failures++
    for (const write of lost) {
      write.release?.()
      write.reject(cause)
    }
  }

  /** Measures the disk, and writes a frame to a failed one: without ingestion nothing else would try it. */
  async #tend(): Promise<void> {
    await this.#disk.tend()
    if (this.#isClosed || (this.#fault === null && this.#disk.hasReserve)) return
    await this.#write('done', this.#doneSeq).catch(() => undefined)
  }

  #settle(doneSeq: number): void {
    this.#doneSeq = Math.max(this.#doneSeq, doneSeq)
    for (const record of this.#pending.splice(0, this.#indexAfter(doneSeq))) this.#settleOne(record)
  }

  #settleOne(record: Pending | undefined): void {
    if (record === undefined) return
    this.#bytes -= record.bytes
    record.segment.waiting--
    record.release?.()
  }

  #reportDamage(segment: string, ranges: readonly DamagedRange[]): void {
    this.#damagedBytes += ranges.reduce((sum, { length }) => sum + length, 0)
    this.#options.onDamage({
      segment,
      ranges: ranges.map(({ offset, length }) => `${offset}+${length}`),
    })
  }

  /** The index of the first record after `seq`, by binary search: a million records may wait for ClickHouse. */
  #indexAfter(seq: number): number {
    let [low, high] = [0, this.#pending.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#pending[middle]?.seq ?? 0) <= seq) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Deletes from the oldest on, because a segment holds the `done` frames of the segments before it. */
  async #dropDoneSegments(): Promise<void> {
    for (;;) {
      const [segment] = this.#segments
      if (this.#segments.length < 2 || segment === undefined || segment.waiting > 0) return
      const isGone = await rm(segment.path, { force: true }).then(
        () => true,
        () => false,
      )
      // The next done record tries again.
      if (!isGone) return
      if (this.#segments[0] === segment) this.#segments.shift()
      await segment.file.close().catch(() => undefined)
    }
  }

  async #roll(): Promise<Segment> {
    const { text, key } = segmentName(this.#segmentNumber++)
    const path = join(this.#options.dir, text)
    const file = await open(path, 'wx+', 0o600)
    const segment = { path, key, file, size: 0, waiting: 0 }
    this.#segments.push(segment)
    await syncDir(this.#options.dir)
    await this.#dropDoneSegments()
    return segment
  }

  async #load({ text, number, key }: SegmentName): Promise<void> {
    const path = join(this.#options.dir, text)
    const { frames, damaged } = scanSegment(key, await readFile(path))
    if (damaged.length > 0) this.#reportDamage(text, damaged)
    const file = await open(path, 'r')
    const segment: Segment = { path, key, file, size: SEGMENT_BYTES, waiting: 0 }
    this.#segments.push(segment)
    this.#segmentNumber = number + 1
    for (const frame of frames) this.#replay(frame, segment)
  }

  #replay(frame: Frame, segment: Segment): void {
    const { kind, seq, payload, offset } = frame
    this.#nextSeq = Math.max(this.#nextSeq, seq + 1)
    switch (kind) {
      case 'record':
        this.#pending.push({
          seq,
          sinceMs: performance.now(),
          segment,
          offset,
          bytes: payload.length,
          ...NOT_CACHED,
        })
        this.#bytes += payload.length
        segment.waiting++
        return
      case 'batch':
        this.#openBatch = decodeBatch(seq, Buffer.from(payload))
        // Its last record may be damaged, and a new record with that sequence would be sent with this batch.
        this.#nextSeq = Math.max(this.#nextSeq, this.#openBatch.to + 1)
        return
      case 'done':
        if (this.#openBatch !== null && this.#openBatch.to <= seq) this.#openBatch = null
        this.#doneSeq = Math.max(this.#doneSeq, seq)
    }
  }
}

const NOT_CACHED = { cached: null, release: null }

/** Reads the payload of a record from the disk. @returns null when it is damaged */
async function readBack(
  { segment, offset, seq }: Pending,
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

/** Truncates the segment behind its last whole frame. */
async function truncateTail(segment: Segment | undefined): Promise<void> {
  await segment?.file.truncate(segment.size)
  // Otherwise a power failure could restore the old bytes beside the ones that are written there next.
  await segment?.file.datasync()
}
