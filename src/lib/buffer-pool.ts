/** Smaller buffers are not pooled, because they are cheap to allocate and to collect. */
export const POOLED_FROM = 16 * 1024
const SMALLEST = 64 * 1024
const CLASSES = 10

/**
 * A pool of shared buffers in size classes (powers of 2 from 64 KiB to 32 MiB), for bodies and
 * tasks whose size is known. Megabytes of memory outside the heap that are allocated for each body,
 * or that move between threads, make V8 collect every heap all the time: with the pool the service
 * takes half of the CPU time (bench/flow/ingest.ts). V8 does not count shared memory, so a buffer
 * that is not released stays until a collection for other reasons. `BlockPool` is the pool of
 * memory whose size is known only when it is written.
 */
export class BufferPool {
  readonly #maxBytes: number
  readonly #free: SharedArrayBuffer[][] = Array.from({ length: CLASSES }, () => [])
  /** The number of the last `acquire` of each size class. */
  readonly #acquiredAt = new Float64Array(CLASSES)
  #acquires = 0
  #freeBytes = 0
  #usedBytes = 0

  /** @param maxBytes limit of the free buffers */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of the pooled buffers, free ones included. */
  get bytes(): number {
    return this.#usedBytes + this.#freeBytes
  }

  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Grows with each call of `acquire`. */
  get acquires(): number {
    return this.#acquires
  }

  /** Gives up the free buffers. */
  trim(): void {
    while (this.#freeBytes > 0) this.#drop()
  }

  /** @returns a buffer of at least `bytes` bytes, whose content is undefined */
  acquire(bytes: number): ArrayBufferLike {
    if (bytes < POOLED_FROM) return new ArrayBuffer(bytes)
    const size = pooledSize(bytes)
    const level = levelOf(size)
    this.#usedBytes += size
    const buffer = this.#free[level]?.pop()
    if (Number.isInteger(level)) this.#acquiredAt[level] = ++this.#acquires
    if (buffer === undefined) return new SharedArrayBuffer(size)
    this.#freeBytes -= size
    return buffer
  }

  /** A buffer that is not shared memory is left to the garbage collector. */
  release(buffer: ArrayBufferLike): void {
    if (!(buffer instanceof SharedArrayBuffer)) return
    const size = buffer.byteLength
    this.#usedBytes -= size
    const free = this.#free[levelOf(size)]
    if (free === undefined) return
    free.push(buffer)
    this.#freeBytes += size
    while (this.#freeBytes > this.#maxBytes) this.#drop()
  }

  /** Drops a buffer of the least recently acquired size class, so that unused sizes do not fill the pool. */
  #drop(): void {
    let oldest = -1
    for (let level = 0; level < CLASSES; level++) {
      if (this.#free[level]?.length === 0) continue
      if (oldest < 0 || (this.#acquiredAt[level] ?? 0) < (this.#acquiredAt[oldest] ?? 0))
        oldest = level
    }
    this.#freeBytes -= this.#free[oldest]?.shift()?.byteLength ?? 0
  }
}

const levelOf = (size: number): number => Math.log2(size / SMALLEST)

/** @returns the size class of `bytes`, or `bytes` when it is above the largest class */
function pooledSize(bytes: number): number {
  const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, SMALLEST)))
  return levelOf(size) < CLASSES ? size : bytes
}
