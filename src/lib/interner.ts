/** Words are kept up to this length; a longer one is the caller's to handle. */
export const MAX_INTERNED_BYTES = 256

/**
 * Gives each distinct byte string a small number, so that a value that comes again costs a hash and a
 * comparison instead of a string. Numbers count from 0; what is known of a word is kept in arrays by number.
 *
 * Bounded: when full, `intern` refuses new words until `clear`.
 */
export class Interner {
  readonly #maxWords: number
  #slots = new Int32Array(1024)
  #hashes = new Int32Array(512)
  /** where each word ends in the arena; it begins where the one before ends */
  #ends = new Int32Array(512)
  #arena = Buffer.alloc(16_384)
  #texts: string[] = []

  /** @param maxWords of at most `MAX_INTERNED_BYTES` each */
  constructor(maxWords: number) {
    this.#maxWords = maxWords
  }

  get size(): number {
    return this.#texts.length
  }

  get isFull(): boolean {
    return this.#texts.length >= this.#maxWords
  }

  /** @returns the word's number, -1 when it is too long or there is no room */
  intern(bytes: Uint8Array, start: number, end: number): number {
    let hash = 0x811c9dc5 ^ (end - start)
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193)
    hash ^= hash >>> 15
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (let no = (this.#slots[slot] ?? 0) - 1; no >= 0; no = (this.#slots[slot] ?? 0) - 1) {
      if (this.#hashes[no] === hash && this.#equals(no, bytes, start, end)) return no
      slot = (slot + 1) & mask
    }
    return this.#add(bytes.subarray(start, end), hash)
  }

  /** The word's text, read as UTF-8. */
  text(no: number): string {
    return this.#texts[no] ?? ''
  }

  clear(): void {
    this.#slots.fill(0)
    this.#texts = []
  }

  #startOf(no: number): number {
    return no === 0 ? 0 : (this.#ends[no - 1] ?? 0)
  }

  #equals(no: number, bytes: Uint8Array, start: number, end: number): boolean {
    let at = this.#startOf(no)
    if ((this.#ends[no] ?? 0) - at !== end - start) return false
    const arena = this.#arena
    for (let i = start; i < end; i++, at++) if (arena[at] !== bytes[i]) return false
    return true
  }

  #add(word: Uint8Array, hash: number): number {
    if (this.isFull || word.length > MAX_INTERNED_BYTES) return -1
    const no = this.#texts.length
    const start = this.#startOf(no)
    this.#reserve(no, start + word.length)
    this.#arena.set(word, start)
    this.#ends[no] = start + word.length
    this.#hashes[no] = hash
    this.#texts.push(this.#arena.toString('utf8', start, start + word.length))
    this.#place(no)
    return no
  }

  #place(no: number): void {
    const mask = this.#slots.length - 1
    let slot = (this.#hashes[no] ?? 0) & mask
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
    this.#slots[slot] = no + 1
  }

  #reserve(no: number, bytes: number): void {
    if (bytes > this.#arena.length) {
      const arena = Buffer.alloc(bytes * 2)
      arena.set(this.#arena)
      this.#arena = arena
    }
    if (no < this.#ends.length) return
    const [ends, hashes] = [this.#ends, this.#hashes]
    this.#ends = new Int32Array(no * 2)
    this.#ends.set(ends)
    this.#hashes = new Int32Array(no * 2)
    this.#hashes.set(hashes)
    this.#slots = new Int32Array(no * 4)
    for (let known = 0; known < no; known++) this.#place(known)
  }
}
