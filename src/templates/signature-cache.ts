const WAYS = 4
const ENTRY = 4
const BUCKET = WAYS * ENTRY

/**
 * Signature → template number in shared memory: one writer thread, many readers, fixed size. A
 * bucket of 4 entries is a cache line. When it is full, `put` evicts an entry, whose signature the
 * miner resolves again.
 *
 * An entry has lo, hi, the number and a checksum of all three. It is written without a lock: in a
 * half-written entry the checksum is wrong, and the reader reports a miss.
 */
export class SignatureCache {
  readonly buffer: SharedArrayBuffer
  readonly #entries: Int32Array
  readonly #mask: number
  #nextWay = 0

  /** @param buffer from the `buffer` of a cache made by `create` */
  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    this.#entries = new Int32Array(buffer)
    this.#mask = this.#entries.length / BUCKET - 1
  }

  /** @param capacity entries of 16 bytes; rounded up to a power of two, at least 4 */
  static create(capacity: number): SignatureCache {
    let entries = WAYS
    while (entries < capacity) entries *= 2
    return new SignatureCache(new SharedArrayBuffer(entries * ENTRY * Int32Array.BYTES_PER_ELEMENT))
  }

  /** @returns the template number, 0 when the signature is not known */
  get(lo: number, hi: number): number {
    const entries = this.#entries
    const bucket = (lo & this.#mask) * BUCKET
    for (let at = bucket; at < bucket + BUCKET; at += ENTRY) {
      if (entries[at] !== lo || entries[at + 1] !== hi) continue
      const no = entries[at + 2] ?? 0
      if (entries[at + 3] === check(lo, hi, no)) return no
    }
    return 0
  }

  /** For the one writer only. @param no 1 to 2^31 - 1 */
  put(lo: number, hi: number, no: number): void {
    const entries = this.#entries
    const at = this.#place(lo, hi)
    // Readers reject the entry until its checksum is written.
    entries[at + 3] = 0
    entries[at + 2] = no
    entries[at + 1] = hi
    entries[at] = lo
    entries[at + 3] = check(lo, hi, no)
  }

  /** For the one writer only. */
  clear(): void {
    this.#entries.fill(0)
  }

  /** The entry of the signature, or a free one, or the next one to evict. */
  #place(lo: number, hi: number): number {
    const entries = this.#entries
    const bucket = (lo & this.#mask) * BUCKET
    let free = -1
    for (let at = bucket; at < bucket + BUCKET; at += ENTRY) {
      if (entries[at] === lo && entries[at + 1] === hi) return at
      if (free < 0 && entries[at + 2] === 0) free = at
    }
    if (free >= 0) return free
    this.#nextWay = (this.#nextWay + 1) % WAYS
    return bucket + this.#nextWay * ENTRY
  }
}

/** The checksum of an entry. It depends on all bits and is never 0, so that a free entry does not match. */
const check = (lo: number, hi: number, no: number): number =>
  (Math.imul(no, 0x9e3779b1) ^ Math.imul(lo, 0x85ebca77) ^ hi) | 1
