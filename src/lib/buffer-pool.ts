/** what is smaller is cheap to make and to collect */
const POOLED_FROM = 16 * 1024
const SMALLEST = 64 * 1024
const GROWTH = 4
const CLASSES = 5

/**
 * Buffers of a few sizes (64 KiB to 16 MiB) that are used again. Memory outside the heap that comes and goes
 * by the megabyte makes the engine collect all of the heap every 64 MB: reuse took a third of the service's
 * CPU time away (bench/flow/ingest.ts).
 */
export class BufferPool {
  readonly #maxBytes: number
  readonly #free: ArrayBuffer[][] = Array.from({ length: CLASSES }, () => [])
  #bytes = 0

  /** @param maxBytes of buffers that wait for use */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** @returns a buffer of at least so many bytes, whose content is whatever was there before */
  take(bytes: number): ArrayBuffer {
    if (bytes < POOLED_FROM) return new ArrayBuffer(bytes)
    let size = SMALLEST
    for (const free of this.#free) {
      if (size >= bytes) {
        const buffer = free.pop()
        if (buffer === undefined) return new ArrayBuffer(size)
        this.#bytes -= size
        return buffer
      }
      size *= GROWTH
    }
    return new ArrayBuffer(bytes)
  }

  /** Takes a buffer back that nobody uses any more; one of another size is left to the collector. */
  give(buffer: ArrayBuffer): void {
    const size = buffer.byteLength
    const level = Math.log2(size / SMALLEST) / Math.log2(GROWTH)
    const free = this.#free[level]
    if (free === undefined || this.#bytes + size > this.#maxBytes) return
    free.push(buffer)
    this.#bytes += size
  }
}
