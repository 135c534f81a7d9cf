import { mkdir, readdir } from 'node:fs/promises'
import { basename } from 'node:path'

import type { LogAt } from '../telemetry/log.js'
import type { BlockPool } from './block-pool.js'
import { WalDisk } from './disk.js'
import { decodeBatch, encodeBatch, type RecordedBatch } from './recorded-batch.js'
import {
  encodeFrame,
  FRAME_HEADER,
  parseSegmentName,
  writeAll,
  writeBesideLog,
  type DamagedRange,
  type Frame,
  type FrameKind,
  type SegmentName,
} from './file.js'
import { payloadAt, SEGMENT_BYTES, Segments, truncateTail, type Segment } from './segments.js'

/** The interval at which the free space is measured and a failed disk is tried again. */
const TEND_MS = 1_000
/** The codes of a full disk and of a used-up quota. */
const FULL_DISK = ['ENOSPC', 'EDQUOT']
/** While the disk stays full, the log says so this often. */
const TELL_MS = 60_000

export interface WalOptions {
  readonly dir: string
  readonly maxBytes: number
  /** The bytes of waiting records that are kept in memory; later ones are on disk only, and read back when they are sent. */
  readonly cacheBytes: number
  /** The memory for records that are read back. */
  readonly blockPool: BlockPool
  /** How long a segment is kept for the `onceKeys` of its records, after the last of them. */
  readonly keepOnceKeysMs: number
  readonly log: LogAt<'error' | 'warn'>
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

interface Write {
  readonly kind: FrameKind
  readonly seq: number
  readonly payload: readonly Uint8Array[]
  readonly hasOnceKeys: boolean
  /** Called when the payload's memory is no longer read. */
  readonly release: (() => void) | null
  readonly resolve: () => void
  readonly reject: (cause: unknown) => void
}

/**
 * The durable queue between the sequencer and ClickHouse: an append-only log in segments of 64 MiB.
 *
 * Records that wait to be written at the same time share a commit: one writev and one fdatasync. A
 * record is acknowledged after its commit; a failed commit loses all its records and all queued
 * ones. Before a batch is first sent, two `batch` frames record its first and last record and its
 * token (`recordBatch`); when ClickHouse has stored it, a `done` frame records that everything up
 * to its last record is done. A segment whose records are all done is deleted, or kept for some
 * minutes if they have deduplication keys. Records beyond `cacheBytes` are on disk only, and read
 * back when they are sent.
 *
 * A restart reads every segment from the oldest on: the records that are not done wait again, and
 * the recorded batch is sent again unchanged. Damaged bytes up to the next complete frame are
 * skipped and reported.
 */
export class Wal {
  readonly #options: WalOptions
  readonly #disk: WalDisk
  readonly #timer: NodeJS.Timeout
  readonly #segments: Segments
  #pending: Pending[] = []
  #doneBefore: readonly Pending[] = []
  #writtenAtMs = 0
  #queue: Write[] = []
  #committing: Promise<void> | null = null
  #nextSeq = 1
  #bytes = 0
  #openBatch: RecordedBatch | null = null
  #doneSeq = 0
  #fault: Error | null = null
  #failures = 0
  #damagedBytes = 0
  #damagedUpTo = 0
  #tending: Promise<void> | null = null
  #isClosed = false
  readonly #damageListeners: (() => void)[] = []
  #toldAtMs = -Infinity

  private constructor(options: WalOptions, disk: WalDisk) {
    this.#options = options
    this.#disk = disk
    this.#segments = new Segments(options.dir, disk)
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
      wal.#doneBefore = wal.#pending.slice(0, wal.#indexAfter(wal.#doneSeq))
      wal.#settle(wal.#doneSeq)
      if (wal.#damagedBytes > 0) wal.#damagedUpTo = wal.#nextSeq - 1
      await wal.#segments.roll()
      return wal
    } catch (error) {
      await wal.close()
      throw error
    }
  }

  /** Calls the listener when records turn out to be lost that were whole when the log was opened. */
  onDamage(listener: () => void): void {
    this.#damageListeners.push(listener)
  }

  /** Writes a file that is no segment into the directory of the log; it is on disk when this resolves. */
  writeBeside(name: string, parts: readonly Uint8Array[]): Promise<void> {
    return writeBesideLog(this.#options.dir, name, parts)
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

  /** The time of the last write of an earlier run, 0 without one. */
  get writtenAtMs(): number {
    return this.#writtenAtMs
  }

  /** The time for which the oldest record has waited for ClickHouse since it was appended, or since the start; 0 without one. */
  get oldestMs(): number {
    const [oldest] = this.#pending
    return oldest === undefined ? 0 : performance.now() - oldest.sinceMs
  }

  /** The batch that was recorded and is not done; every attempt sends it unchanged. */
  get openBatch(): RecordedBatch | null {
    return this.#openBatch
  }

  /** The error that keeps the log from being written, null when it works. */
  get fault(): Error | null {
    return this.#fault
  }

  /**
   * The number of failed commits. It is incremented before the first append of the commit is
   * rejected, and every append made until then is lost too. A caller whose record refers to an
   * earlier one must first check that the number is unchanged.
   */
  get failures(): number {
    return this.#failures
  }

  /** The bytes of damaged frames, which are lost. */
  get damagedBytes(): number {
    return this.#damagedBytes
  }

  /** Records up to this one may refer to records that were lost by damage; 0 without damage. */
  get damagedUpTo(): number {
    return this.#damagedUpTo
  }

  isFull(): boolean {
    return this.#bytes >= this.#options.maxBytes || this.#disk.isNearlyFull
  }

  /** Whether the disk has too little free space, or a quota of it is used up. */
  get isDiskFull(): boolean {
    return this.#disk.isNearlyFull || isFullDisk(this.#fault)
  }

  /**
   * Appends a record; its sequence is assigned at the call.
   *
   * @param release called once, when the payload's memory is no longer read: the record is done, lost or on disk only
   * @param hasOnceKeys whether its segment is kept for `keepOnceKeysMs` after this write, so that a restart finds its keys
   * @returns its sequence, and a promise that resolves when it is on disk
   */
  append(
    payload: readonly Uint8Array[],
    release: (() => void) | null = null,
    hasOnceKeys = false,
  ): {
    readonly seq: number
    readonly durable: Promise<void>
  } {
    const seq = this.#nextSeq++
    return { seq, durable: this.#write('record', seq, { payload, release, hasOnceKeys }) }
  }

  /**
   * Records the composition of a batch before it is first sent. The frame is written twice, because
   * if it were lost by damage, the records would be sent again under another token and counted
   * twice.
   */
  async recordBatch(batch: RecordedBatch): Promise<void> {
    const payload = encodeBatch(batch)
    await Promise.all([1, 2].map(() => this.#write('batch', batch.from, { payload })))
    this.#openBatch = batch
  }

  /** Records that everything up to `seq` is in ClickHouse. */
  async done(seq: number): Promise<void> {
    this.#openBatch = null
    this.#settle(seq)
    await this.#write('done', seq)
    await this.#segments.dropDone()
  }

  /**
   * Reads the payload, in one part or several.
   *
   * @returns null when it is damaged on disk, which is reported; the record is lost
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

  /** Reads the records that were done in an earlier run and are still on disk, oldest first. It can be called once. */
  async *readDone(): AsyncGenerator<readonly Uint8Array[]> {
    const records = this.#doneBefore
    this.#doneBefore = []
    for (const record of records) {
      if (!this.#segments.includes(record.segment)) continue
      const payload = await payloadAt(record, Buffer.allocUnsafe(FRAME_HEADER + record.bytes))
      if (payload !== null) yield [payload]
    }
  }

  #pendingOf({ seq }: WaitingRecord): Pending {
    const pending = this.#pending[this.#indexAfter(seq) - 1]
    if (pending?.seq !== seq) throw new Error(`bug: wal record ${seq} is not waiting`)
    return pending
  }

  /** @param frame memory for the whole frame */
  async #readBack(pending: Pending, frame: Buffer): Promise<readonly Uint8Array[] | null> {
    // A second attempt may succeed.
    const payload = (await payloadAt(pending, frame)) ?? (await payloadAt(pending, frame))
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
    await this.#segments.close()
  }

  #write(
    kind: FrameKind,
    seq: number,
    {
      payload = [],
      release = null,
      hasOnceKeys = false,
    }: Partial<Pick<Write, 'payload' | 'release' | 'hasOnceKeys'>> = {},
  ): Promise<void> {
    const written = new Promise<void>((resolve, reject) => {
      this.#queue.push({ kind, seq, payload, hasOnceKeys, release, resolve, reject })
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
    // Nothing may be awaited after the last check of the queue, or a write in between would wait for ever.
    this.#committing = null
  }

  /** Takes the queued writes. When the disk has no reserve, records are refused so that `done` frames can be written. */
  async #takeGroup(): Promise<readonly Write[]> {
    if (this.#fault !== null && !this.#disk.hasReserve) {
      await this.#disk.tend()
      if (!this.#disk.hasReserve) this.#lose(this.#fault, ({ kind }) => kind === 'record')
    }
    return this.#queue.splice(0)
  }

  async #commit(group: readonly Write[]): Promise<void> {
    if (group.length === 0) return
    let segment = this.#segments.last
    if (segment === undefined || this.#isOver(segment)) segment = await this.#segments.roll()
    const start = segment.size
    const { key } = segment
    const buffers = group.flatMap((write) => encodeFrame(key, write))
    const total = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
    await writeAll(segment.file, buffers, start)
    await segment.file.datasync()
    segment.size = start + total
    if (group.some(({ hasOnceKeys }) => hasOnceKeys))
      segment.keepUntilMs = Date.now() + this.#options.keepOnceKeysMs
    let offset = start
    for (const write of group) {
      const bytes = write.payload.reduce((sum, part) => sum + part.length, 0)
      if (write.kind === 'record') this.#addPending(write, { segment, offset, bytes })
      offset += FRAME_HEADER + bytes
    }
  }

  /** Whether a new segment must begin. On a full disk this is as soon as it lets the current one be deleted. */
  #isOver({ size, waiting }: Segment): boolean {
    return size >= SEGMENT_BYTES || (!this.#disk.hasReserve && size > 0 && waiting === 0)
  }

  #addPending(
    { seq, payload, release }: Write,
    at: { readonly segment: Segment; readonly offset: number; readonly bytes: number },
  ): void {
    this.#bytes += at.bytes
    // The cache holds the oldest records, which are sent next.
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
    const segment = this.#segments.last
    await truncateTail(segment).catch(() => {
      // If truncating fails, the torn end has a wrong checksum, and the next write begins a new segment.
      if (segment !== undefined) segment.size = SEGMENT_BYTES
    })
    if (isFullDisk(this.#fault)) await this.#disk.spendReserve()
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

  /** Measures the disk, and tries a failed one with a frame, because without ingestion nothing else would. */
  async #tend(): Promise<void> {
    await this.#disk.tend()
    this.#tellFullDisk()
    if (this.#disk.isNearlyFull) await this.#segments.dropDone()
    if (this.#isClosed || (this.#fault === null && this.#disk.hasReserve)) return
    await this.#write('done', this.#doneSeq).catch(() => undefined)
  }

  #tellFullDisk(): void {
    const nowMs = performance.now()
    if (!this.isDiskFull || nowMs - this.#toldAtMs < TELL_MS) return
    this.#toldAtMs = nowMs
    const { dir, log } = this.#options
    log.warn({ dir }, 'the disk is full: no events are taken until there is space on it')
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
    const report = { segment, ranges: ranges.map(({ offset, length }) => `${offset}+${length}`) }
    this.#options.log.error(report, 'the WAL is damaged; what is readable is kept')
    for (const listener of this.#damageListeners) listener()
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

  async #load(name: SegmentName): Promise<void> {
    const { keepOnceKeysMs } = this.#options
    const { segment, frames, damaged, writtenAtMs } = await this.#segments.load(
      name,
      keepOnceKeysMs,
    )
    if (damaged.length > 0) this.#reportDamage(name.text, damaged)
    this.#writtenAtMs = writtenAtMs
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
        // The last record of the batch may be damaged, and a new record with its sequence would be sent with the batch.
        this.#nextSeq = Math.max(this.#nextSeq, this.#openBatch.to + 1)
        return
      case 'done':
        if (this.#openBatch !== null && this.#openBatch.to <= seq) this.#openBatch = null
        this.#doneSeq = Math.max(this.#doneSeq, seq)
    }
  }
}

const isFullDisk = (fault: Error | null): boolean =>
  fault !== null && 'code' in fault && FULL_DISK.includes(String(fault.code))

const NOT_CACHED = { cached: null, release: null }
