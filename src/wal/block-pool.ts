/** The size of a buffer; a batch fills a few. */
const BUFFER_BYTES = 8 * 1024 * 1024
/** The alignment of slices, so that no two share a cache line. */
const ALIGNMENT = 64
/** A buffer with fewer bytes left takes no further slice. */
const MIN_SLICE_BYTES = 64 * 1024

/** A range of shared memory: `bytes` from offset `at` on. */
export interface BlockSlice {
  readonly buffer: SharedArrayBuffer
  /** A multiple of 64. */
  readonly at: number
  readonly bytes: number
}

interface Chunk {
  readonly buffer: SharedArrayBuffer
  /** The next slice begins here. */
  used: number
  /** Slices that are retained. */
  retained: number
  /** The slice that is being written. */
  acquired: BlockSlice | null
}

/**
 * Memory for encoded blocks. Unlike a body (`BufferPool`), a block has a size that is known only
 * when it is written, and it stays in memory until it is stored. A writer therefore acquires the
 * rest of a large buffer and retains the bytes that it wrote; the next slice begins after them.
 * Sizes are not rounded up to a size class, so the memory in use is that of the blocks. A buffer is
 * free when all its slices are released.
 *
 * acquired ─retain─▶ retained ─release─▶ free;  acquired ─release─▶ free
 */
export class BlockPool {
  readonly #maxFreeBytes: number
  readonly #chunks = new Map<BlockSlice, Chunk>()
  /** Chunks with a retained slice and space after it. */
  #open: Chunk[] = []
  #free: Chunk[] = []
  #bytes = 0
  #freeBytes = 0
  #acquires = 0

  /** @param maxFreeBytes the most bytes of buffers without slices */
  constructor(maxFreeBytes: number) {
    this.#maxFreeBytes = maxFreeBytes
  }

  /** Bytes of all buffers, free ones included. */
  get bytes(): number {
    return this.#bytes
  }

  get freeBytes(): number {
    return this.#freeBytes
  }

  /** The number of calls of `acquire`. */
  get acquires(): number {
    return this.#acquires
  }

  /** Drops the free buffers. */
  trim(): void {
    this.#bytes -= this.#freeBytes
    this.#freeBytes = 0
    this.#free = []
  }

  /** @returns a slice of at least `bytes` bytes, whose content is undefined */
  acquire(bytes: number): BlockSlice {
    this.#acquires++
    const chunk = takeFrom(this.#open, bytes) ?? this.#takeFree(bytes) ?? this.#make(bytes)
    const { buffer, used } = chunk
    const slice = { buffer, at: used, bytes: buffer.byteLength - used }
    chunk.acquired = slice
    this.#chunks.set(slice, chunk)
    return slice
  }

  /** Keeps the first `bytes` bytes of an acquired slice until `release`; the rest can be acquired again. */
  retain(slice: BlockSlice, bytes: number): void {
    const chunk = this.#chunkOf(slice)
    if (chunk.acquired !== slice) throw new Error('bug: a slice is retained twice')
    chunk.acquired = null
    chunk.used = Math.ceil((slice.at + bytes) / ALIGNMENT) * ALIGNMENT
    chunk.retained++
    this.#settle(chunk)
  }

  /** Frees a slice, retained or not. */
  release(slice: BlockSlice): void {
    const chunk = this.#chunkOf(slice)
    this.#chunks.delete(slice)
    if (chunk.acquired === slice) chunk.acquired = null
    else chunk.retained--
    this.#settle(chunk)
  }

  #chunkOf(slice: BlockSlice): Chunk {
    const chunk = this.#chunks.get(slice)
    if (chunk === undefined) throw new Error('bug: a slice is released already')
    return chunk
  }

  #takeFree(bytes: number): Chunk | null {
    const chunk = takeFrom(this.#free, bytes)
    if (chunk !== null) this.#freeBytes -= chunk.buffer.byteLength
    return chunk
  }

  #make(bytes: number): Chunk {
    const size = Math.max(BUFFER_BYTES, 2 ** Math.ceil(Math.log2(bytes)))
    this.#bytes += size
    return { buffer: new SharedArrayBuffer(size), used: 0, retained: 0, acquired: null }
  }

  /** Moves a chunk to the list of its state: open or free; a full one is in neither, and a superfluous one is dropped. */
  #settle(chunk: Chunk): void {
    if (chunk.acquired !== null) return
    const isOpen = this.#open.includes(chunk)
    if (chunk.retained > 0) {
      if (!isOpen && left(chunk) >= MIN_SLICE_BYTES) this.#open.push(chunk)
      return
    }
    if (isOpen) this.#open = this.#open.filter((other) => other !== chunk)
    chunk.used = 0
    const size = chunk.buffer.byteLength
    if (this.#freeBytes + size > this.#maxFreeBytes) {
      this.#bytes -= size
      return
    }
    this.#free.push(chunk)
    this.#freeBytes += size
  }
}

const left = ({ buffer, used }: Chunk): number => buffer.byteLength - used

/** Removes and returns the last chunk with enough space. */
function takeFrom(chunks: Chunk[], bytes: number): Chunk | null {
  const at = chunks.findLastIndex((chunk) => left(chunk) >= bytes)
  return at < 0 ? null : (chunks.splice(at, 1)[0] ?? null)
}
