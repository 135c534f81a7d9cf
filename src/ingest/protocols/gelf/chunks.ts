import type { RecordSink } from '../../record-batch.js'

/** The most chunks of a message, and the longest time until all have arrived, by the specification of GELF. */
const MAX_CHUNKS = 128
const EXPIRES_MS = 5_000
/** The most incomplete messages; above it the oldest is dropped. */
const MAX_MESSAGES = 2_000
const MAX_BYTES = 8 * 1024 * 1024
const HEAD_BYTES = 12

interface Partial {
  readonly parts: (Uint8Array | undefined)[]
  readonly atMs: number
  missing: number
  bytes: number
}

/**
 * Joins the chunks of GELF messages that came in several datagrams. A chunk begins with `1e 0f`,
 * the message's id of 8 bytes, its number and the number of chunks. A message that is incomplete
 * after 5 seconds is dropped.
 */
export class GelfChunks {
  readonly #nowMs: () => number
  /** The incomplete messages by sender and id, oldest first. */
  readonly #partial = new Map<string, Partial>()
  #bytes = 0

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
  }

  get heldBytes(): number {
    return this.#bytes
  }

  /** @param from address and port of the sender, because ids are unique only for a sender */
  take(datagram: Buffer, from: string, sink: RecordSink): void {
    const isChunk = datagram.length >= HEAD_BYTES && datagram[0] === 0x1e && datagram[1] === 0x0f
    if (!isChunk) {
      if (datagram.length > 0) sink.record(datagram, 0, datagram.length, false)
      return
    }
    const [number = 0, count = 0] = datagram.subarray(10, HEAD_BYTES)
    if (count === 0 || count > MAX_CHUNKS || number >= count) return
    this.#makeRoom()
    const key = `${from} ${datagram.toString('latin1', 2, 10)}`
    const whole = this.#add(key, { number, count, bytes: datagram.subarray(HEAD_BYTES) })
    if (whole !== null) sink.record(whole, 0, whole.length, false)
  }

  #add(
    key: string,
    {
      number,
      count,
      bytes,
    }: { readonly number: number; readonly count: number; readonly bytes: Buffer },
  ): Buffer | null {
    const known = this.#partial.get(key)
    const message: Partial = known ?? {
      parts: Array.from({ length: count }),
      atMs: this.#nowMs(),
      missing: count,
      bytes: 0,
    }
    if (message.parts.length !== count || message.parts[number] !== undefined) return null
    // The chunk is copied to memory of its own: a view of a few bytes would keep Node's shared 8 KiB buffer alive.
    message.parts[number] = new Uint8Array(bytes)
    message.missing -= 1
    message.bytes += bytes.length
    this.#bytes += bytes.length
    this.#partial.set(key, message)
    if (message.missing > 0) return null
    this.#drop(key, message)
    return Buffer.concat(message.parts.filter((part) => part !== undefined))
  }

  #makeRoom(): void {
    const beforeMs = this.#nowMs() - EXPIRES_MS
    for (const [key, message] of this.#partial) {
      const isFull = this.#partial.size > MAX_MESSAGES || this.#bytes > MAX_BYTES
      if (message.atMs >= beforeMs && !isFull) return
      this.#drop(key, message)
    }
  }

  #drop(key: string, { bytes }: Partial): void {
    this.#partial.delete(key)
    this.#bytes -= bytes
  }
}
