/** what one batch fills is a few of them */
const CHUNK_BYTES = 8 * 1024 * 1024
/** no two parts share a line of a processor's cache */
const ALIGNMENT = 64
/** a chunk with less left is full */
const LEAST_BYTES = 64 * 1024

/** Shared memory that is lent to somebody who does not know yet how much of it is needed. */
export interface Room {
  readonly buffer: SharedArrayBuffer
  /** a multiple of 64 */
  readonly at: number
  /** from `at` on */
  readonly bytes: number
}

interface Chunk {
  readonly buffer: SharedArrayBuffer
  /** parts begin behind it */
  used: number
  /** parts that somebody has */
  parts: number
}

/**
 * Parts of a few large buffers, one behind the other, for what is given back in about the order in which it was
 * made. Whoever asks is lent all that is left of a buffer and keeps what it took, so that nothing is rounded up
 * or guessed too large, and buffers fit whatever comes next: memory in use is memory that holds something.
 *
 * lent ─keep some─▶ kept ─release─▶ free;  lent ─keep nothing─▶ free
 */
export class RoomPool {
  readonly #maxFreeBytes: number
  readonly #chunks = new Map<Room, Chunk>()
  readonly #lent = new Set<Chunk>()
  #open: Chunk[] = []
  #free: Chunk[] = []
  #bytes = 0
  #freeBytes = 0

  /** @param maxFreeBytes of buffers that nobody has a part of */
  constructor(maxFreeBytes: number) {
    this.#maxFreeBytes = maxFreeBytes
  }

  /** Of all buffers, free ones included. */
  get bytes(): number {
    return this.#bytes
  }

  get freeBytes(): number {
    return this.#freeBytes
  }

  /** @returns room for at least so many bytes, whose content is whatever was there before */
  lend(bytes: number): Room {
    const chunk = takeFrom(this.#open, bytes) ?? this.#takeFree(bytes) ?? this.#make(bytes)
    this.#lent.add(chunk)
    const { buffer, used } = chunk
    const room = { buffer, at: used, bytes: buffer.byteLength - used }
    this.#chunks.set(room, chunk)
    return room
  }

  /** Ends the loan of a room: its first bytes stay until `release`, and none if they are 0. */
  keep(room: Room, bytes: number): void {
    const chunk = this.#chunkOf(room)
    if (!this.#lent.delete(chunk)) throw new Error('bug: a room that is not lent')
    chunk.used = Math.ceil((room.at + bytes) / ALIGNMENT) * ALIGNMENT
    if (bytes > 0) chunk.parts++
    else this.#chunks.delete(room)
    this.#settle(chunk)
  }

  /** Nobody uses what was kept of a room any more. */
  release(room: Room): void {
    const chunk = this.#chunkOf(room)
    this.#chunks.delete(room)
    chunk.parts--
    this.#settle(chunk)
  }

  #chunkOf(room: Room): Chunk {
    const chunk = this.#chunks.get(room)
    if (chunk === undefined) throw new Error('bug: a room that was given back')
    return chunk
  }

  #takeFree(bytes: number): Chunk | null {
    const chunk = takeFrom(this.#free, bytes)
    if (chunk !== null) this.#freeBytes -= chunk.buffer.byteLength
    return chunk
  }

  #make(bytes: number): Chunk {
    const size = Math.max(CHUNK_BYTES, 2 ** Math.ceil(Math.log2(bytes)))
    this.#bytes += size
    return { buffer: new SharedArrayBuffer(size), used: 0, parts: 0 }
  }

  #settle(chunk: Chunk): void {
    if (this.#lent.has(chunk)) return
    const isOpen = this.#open.includes(chunk)
    if (chunk.parts > 0) {
      if (!isOpen && left(chunk) >= LEAST_BYTES) this.#open.push(chunk)
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

/** The last one that has room, which was used last. */
function takeFrom(chunks: Chunk[], bytes: number): Chunk | null {
  const at = chunks.findLastIndex((chunk) => left(chunk) >= bytes)
  return at < 0 ? null : (chunks.splice(at, 1)[0] ?? null)
}
