/** what is smaller is cheap to make and to collect */
export const POOLED_FROM = 16 * 1024
const SMALLEST = 64 * 1024
const CLASSES = 9

/**
 * Shared buffers of a few sizes (64 KiB to 16 MiB) that are used again. Memory outside the heap that comes and
 * goes by the megabyte, or moves from thread to thread, makes the engine collect every heap again and again:
 * with it gone the service takes half of the CPU time (bench/flow/ingest.ts). The engine does not count shared
 * memory, so who takes a buffer gives it back: one that is forgotten stays until a collection for other reasons.
 */
export class BufferPool {
  readonly #maxBytes: number
  readonly #free: SharedArrayBuffer[][] = Array.from({ length: CLASSES }, () => [])
  /** by class: its last take; the order of takes is the only clock needed */
  readonly #takenAt = new Float64Array(CLASSES)
  #takes = 0
  #freeBytes = 0
  #usedBytes = 0

  /** @param maxBytes of buffers that wait for use */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Of the pooled buffers, free ones included. */
  get bytes(): number {
    return this.#usedBytes + this.#freeBytes
  }

  get freeBytes(): number {
    return this.#freeBytes
  }

  /** @returns a buffer of at least so many bytes, whose content is whatever was there before */
  take(bytes: number): ArrayBufferLike {
    if (bytes < POOLED_FROM) return new ArrayBuffer(bytes)
    const size = pooledSize(bytes)
    const level = levelOf(size)
    this.#usedBytes += size
    const buffer = this.#free[level]?.pop()
    if (Number.isInteger(level)) this.#takenAt[level] = ++this.#takes
    if (buffer === undefined) return new SharedArrayBuffer(size)
    this.#freeBytes -= size
    return buffer
  }

  /** Takes a buffer back that nobody uses any more; one of another kind is left to the collector. */
  give(buffer: ArrayBufferLike): void {
    if (!(buffer instanceof SharedArrayBuffer)) return
    const size = buffer.byteLength
    this.#usedBytes -= size
    const free = this.#free[levelOf(size)]
    if (free === undefined) return
    free.push(buffer)
    this.#freeBytes += size
    while (this.#freeBytes > this.#maxBytes) this.#drop()
  }

  /** One of the size that has not been asked for for longest: sizes nobody asks for must not keep others out. */
  #drop(): void {
    let oldest = -1
    for (let level = 0; level < CLASSES; level++) {
      if (this.#free[level]?.length === 0) continue
      if (oldest < 0 || (this.#takenAt[level] ?? 0) < (this.#takenAt[oldest] ?? 0)) oldest = level
    }
    this.#freeBytes -= this.#free[oldest]?.shift()?.byteLength ?? 0
  }
}

const levelOf = (size: number): number => Math.log2(size / SMALLEST)

/** The size of the pool's buffers that hold so many bytes; above the largest one, just those. */
function pooledSize(bytes: number): number {
  const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, SMALLEST)))
  return levelOf(size) < CLASSES ? size : bytes
}
