const EMPTY = Buffer.alloc(0)
const LEAST_BYTES = 512

/**
 * The unread bytes of a stream, from `from` to `to` of `bytes`. A chunk that arrives when nothing
 * is left is not copied; `settle` copies the rest of it, so that a short rest does not keep a large
 * chunk in memory. Appending takes time in proportion to the appended bytes, however small the
 * chunks are.
 */
export class StreamBuffer {
  bytes: Buffer = EMPTY
  from = 0
  to = 0
  /** Whether `bytes` is owned by this object and may be written. */
  #isOwn = false

  get length(): number {
    return this.to - this.from
  }

  /** The bytes of memory that are kept between two chunks. */
  get heldBytes(): number {
    return this.bytes.length
  }

  append(chunk: Buffer): void {
    if (this.length === 0) {
      this.#use(chunk, 0, chunk.length, false)
      return
    }
    this.#reserve(chunk.length)
    this.to += chunk.copy(this.bytes, this.to)
  }

  /** Called when the chunks so far were read as far as possible. */
  settle(): void {
    if (this.length === 0) this.#use(EMPTY, 0, 0, false)
    else if (!this.#isOwn) this.#reserve(0)
  }

  /** Makes room after `to`, in memory of its own. */
  #reserve(bytes: number): void {
    if (this.#isOwn && this.to + bytes <= this.bytes.length) return
    const { length } = this
    const isEnough = this.#isOwn && (length + bytes) * 2 <= this.bytes.length
    const target = isEnough
      ? this.bytes
      : Buffer.allocUnsafeSlow(Math.max(LEAST_BYTES, (length + bytes) * 2))
    this.bytes.copy(target, 0, this.from, this.to)
    this.#use(target, 0, length, true)
  }

  #use(bytes: Buffer, from: number, to: number, isOwn: boolean): void {
    this.bytes = bytes
    this.from = from
    this.to = to
    this.#isOwn = isOwn
  }
}
