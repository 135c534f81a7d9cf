import { mkdir, open, readdir, readFile, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

import {
  encodeFrame,
  FRAME_HEADER,
  parseSegmentName,
  scanSegment,
  segmentName,
  type Frame,
  type FrameKind,
  type SegmentName,
} from './spool-format.js'

/** bench/micro/spool.ts: larger segments free disk later, smaller ones cost a file per second */
const SEGMENT_BYTES = 64 * 1024 * 1024
/** between the token of a batch and what it goes without */
const TOKEN_END = 0

export interface SpoolOptions {
  readonly dir: string
  readonly maxBytes: number
  /** payload bytes of waiting entries kept in memory; others are read back */
  readonly cacheBytes: number
  readonly onDamage: (report: {
    readonly segment: string
    readonly ranges: readonly string[]
  }) => void
}

/** The composition of a batch and the deduplication token it is sent under. */
export interface BatchCut {
  readonly from: number
  readonly to: number
  readonly token: string
  /** what the batch goes without, see `amendment.ts`; null for most */
  readonly amendment: Uint8Array | null
}

export interface SpoolEntry {
  readonly seq: number
  readonly bytes: number
}

interface Pending extends SpoolEntry {
  readonly segment: Segment
  readonly offset: number
  cached: readonly Uint8Array[] | null
}

interface Segment {
  readonly path: string
  readonly key: Buffer
  readonly file: FileHandle
  size: number
  /** entries not done yet */
  waiting: number
}

interface Write {
  readonly kind: FrameKind
  readonly seq: number
  readonly payload: readonly Uint8Array[]
  readonly resolve: () => void
  readonly reject: (cause: unknown) => void
}

/**
 * The durable queue between sequencer and ClickHouse: an append-only log in segments, written in group
 * commits (one writev and one fdatasync for all that waits). An entry leaves when it is marked done; a
 * segment whose entries are all done is deleted.
 */
export class Spool {
  readonly #options: SpoolOptions
  readonly #segments: Segment[] = []
  #pending: Pending[] = []
  #queue: Write[] = []
  #committing: Promise<void> | null = null
  #nextSeq = 1
  #bytes = 0
  #cachedBytes = 0
  #segmentNumber = 1
  #cut: BatchCut | null = null
  #fault: Error | null = null
  #failures = 0

  private constructor(options: SpoolOptions) {
    this.#options = options
  }

  /** Opens the log and finds what was not done; reports damage and keeps what is readable. */
  static async open(options: SpoolOptions): Promise<Spool> {
    await mkdir(options.dir, { recursive: true, mode: 0o700 })
    const spool = new Spool(options)
    const names = (await readdir(options.dir)).map(parseSegmentName).filter((name) => name !== null)
    let doneSeq = 0
    for (const name of names.sort((a, b) => a.number - b.number))
      doneSeq = Math.max(doneSeq, await spool.#load(name))
    spool.#settle(doneSeq)
    await spool.#roll()
    return spool
  }

  /** Bytes on disk that wait for ClickHouse. */
  get bytes(): number {
    return this.#bytes
  }

  get maxBytes(): number {
    return this.#options.maxBytes
  }

  get waiting(): readonly SpoolEntry[] {
    return this.#pending
  }

  /** The batch that was being sent when the log was last closed or lost; it is sent again unchanged. */
  get openCut(): BatchCut | null {
    return this.#cut
  }

  /** The error that keeps the log from being written, null when it works. */
  get fault(): Error | null {
    return this.#fault
  }

  /**
   * Failed commits so far. It grows before the first append of one is rejected, and every append made until
   * then is lost with it: who refers to earlier appends looks here before the next one.
   */
  get failures(): number {
    return this.#failures
  }

  isFull(): boolean {
    return this.#bytes >= this.#options.maxBytes
  }

  /**
   * Appends an entry; its place in the order is taken at the call.
   *
   * @returns its sequence, and a promise that resolves when it is on disk
   */
  append(payload: readonly Uint8Array[]): {
    readonly seq: number
    readonly durable: Promise<void>
  } {
    const seq = this.#nextSeq++
    return { seq, durable: this.#write('entry', seq, payload) }
  }

  /** Records what one batch is made of, before it is first sent. */
  async cut(batch: BatchCut): Promise<void> {
    const to = Buffer.alloc(8)
    to.writeBigUInt64LE(BigInt(batch.to))
    const amended = batch.amendment === null ? [] : [Buffer.of(TOKEN_END), batch.amendment]
    await this.#write('cut', batch.from, [to, Buffer.from(batch.token), ...amended])
    this.#cut = batch
  }

  /** Everything up to `seq` is in ClickHouse. */
  async done(seq: number): Promise<void> {
    this.#cut = null
    this.#settle(seq)
    await this.#write('done', seq, [])
    await this.#dropDoneSegments()
  }

  /** The payload as it was appended, in one part or several. */
  async read(entry: SpoolEntry): Promise<readonly Uint8Array[]> {
    const pending = this.#pending[this.#indexAfter(entry.seq) - 1]
    if (pending?.seq !== entry.seq) throw new Error(`bug: spool entry ${entry.seq} is not waiting`)
    if (pending.cached !== null) return pending.cached
    const bytes = Buffer.allocUnsafe(pending.bytes)
    await pending.segment.file.read(bytes, 0, bytes.length, pending.offset + FRAME_HEADER)
    return [bytes]
  }

  async close(): Promise<void> {
    await this.#committing
    for (const segment of this.#segments) await segment.file.close()
    this.#segments.length = 0
  }

  #write(kind: FrameKind, seq: number, payload: readonly Uint8Array[]): Promise<void> {
    const written = new Promise<void>((resolve, reject) => {
      this.#queue.push({ kind, seq, payload, resolve, reject })
    })
    this.#committing ??= this.#commitAll()
    return written
  }

  async #commitAll(): Promise<void> {
    // one turn of the loop: writes of the same moment share a commit
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const group = this.#queue
      this.#queue = []
      try {
        await this.#commit(group)
        this.#fault = null
        for (const write of group) write.resolve()
      } catch (cause) {
        await this.#fail(group, cause)
      }
    }
    // in the same turn as the last look at the queue: a write between the two would wait for ever
    this.#committing = null
  }

  async #commit(group: readonly Write[]): Promise<void> {
    let segment = this.#segments.at(-1)
    if (segment === undefined || segment.size >= SEGMENT_BYTES) segment = await this.#roll()
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
      if (write.kind === 'entry') this.#addPending(write, { segment, offset, bytes })
      offset += FRAME_HEADER + bytes
    }
  }

  #addPending(
    write: { readonly seq: number; readonly payload: readonly Uint8Array[] },
    at: { readonly segment: Segment; readonly offset: number; readonly bytes: number },
  ): void {
    const fits = this.#cachedBytes + at.bytes <= this.#options.cacheBytes
    this.#pending.push({ seq: write.seq, ...at, cached: fits ? write.payload : null })
    if (fits) this.#cachedBytes += at.bytes
    this.#bytes += at.bytes
    at.segment.waiting++
  }

  /** Nothing of a failed commit may stay behind: a later frame must not follow a torn one. */
  async #fail(group: readonly Write[], cause: unknown): Promise<void> {
    this.#fault = cause instanceof Error ? cause : new Error(String(cause))
    const segment = this.#segments.at(-1)
    await segment?.file.truncate(segment.size).catch(() => {
      // the torn tail is found by its checksum; appending goes on behind it in a new segment
      segment.size = SEGMENT_BYTES
    })
    // what came while the tail was cut off may refer to what is lost: it goes with it
    const lost = [...group, ...this.#queue]
    this.#queue = []
    this.#failures++
    for (const write of lost) write.reject(cause)
  }

  #settle(doneSeq: number): void {
    for (const entry of this.#pending.splice(0, this.#indexAfter(doneSeq))) {
      this.#bytes -= entry.bytes
      if (entry.cached !== null) this.#cachedBytes -= entry.bytes
      entry.segment.waiting--
    }
  }

  /** Where the entries later than `seq` begin; a million may wait while ClickHouse is away. */
  #indexAfter(seq: number): number {
    let [low, high] = [0, this.#pending.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#pending[middle]?.seq ?? 0) <= seq) low = middle + 1
      else high = middle
    }
    return low
  }

  /** From the oldest on: a segment holds the marks that say that those before it are done. */
  async #dropDoneSegments(): Promise<void> {
    for (;;) {
      const [segment] = this.#segments
      if (this.#segments.length < 2 || segment === undefined || segment.waiting > 0) return
      const isGone = await rm(segment.path, { force: true }).then(
        () => true,
        () => false,
      )
      // it is tried again with the next one that is done
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

  /** @returns the highest sequence this segment says is done */
  async #load({ text, number, key }: SegmentName): Promise<number> {
    const path = join(this.#options.dir, text)
    const { frames, damaged } = scanSegment(key, await readFile(path))
    if (damaged.length > 0) this.#options.onDamage({ segment: text, ranges: damaged })
    const file = await open(path, 'r')
    const segment: Segment = { path, key, file, size: SEGMENT_BYTES, waiting: 0 }
    this.#segments.push(segment)
    this.#segmentNumber = number + 1
    return frames.reduce((done, frame) => Math.max(done, this.#replay(frame, segment)), 0)
  }

  #replay(frame: Frame, segment: Segment): number {
    const { kind, seq, payload, offset } = frame
    this.#nextSeq = Math.max(this.#nextSeq, seq + 1)
    switch (kind) {
      case 'entry':
        this.#pending.push({ seq, segment, offset, bytes: payload.length, cached: null })
        this.#bytes += payload.length
        segment.waiting++
        return 0
      case 'cut':
        this.#cut = toCut(seq, Buffer.from(payload))
        return 0
      case 'done':
        if (this.#cut !== null && this.#cut.to <= seq) this.#cut = null
        return seq
    }
  }
}

/** Writes a file beside the log, which leaves it alone; it is on disk when this resolves. */
export async function keepBeside(
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

/** A new file is only there after a power cut when its directory is on disk too. */
async function syncDir(path: string): Promise<void> {
  const dir = await open(path, 'r')
  try {
    await dir.sync()
  } finally {
    await dir.close()
  }
}

function toCut(from: number, payload: Buffer): BatchCut {
  const end = payload.indexOf(TOKEN_END, 8)
  return {
    from,
    to: Number(payload.readBigUInt64LE()),
    token: payload.toString('latin1', 8, end < 0 ? payload.length : end),
    amendment: end < 0 ? null : payload.subarray(end + 1),
  }
}

async function writeAll(
  file: FileHandle,
  buffers: readonly Uint8Array[],
  at: number,
): Promise<void> {
  let position = at
  // IOV_MAX is 1024 on Linux
  for (let first = 0; first < buffers.length; first += 1000) {
    let group = buffers.slice(first, first + 1000)
    while (group.length > 0) {
      const { bytesWritten } = await file.writev(group, position)
      position += bytesWritten
      group = afterBytes(group, bytesWritten)
    }
  }
}

/** What a short write left over. */
function afterBytes(buffers: readonly Uint8Array[], written: number): Uint8Array[] {
  let skip = written
  const rest: Uint8Array[] = []
  for (const buffer of buffers) {
    if (skip < buffer.length) rest.push(buffer.subarray(skip))
    skip = Math.max(0, skip - buffer.length)
  }
  return rest
}
