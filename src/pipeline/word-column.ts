import { hashBytes } from '../lib/hash.js'
import type { Interner } from '../lib/interner.js'
import { DictColumn } from '../lib/native-columns.js'

/**
 * A column of few different values: each value has a place in the block's dictionary and a hash pair there.
 * Values come as text or as a decoder's word, whose text is looked at once a block.
 */
export class WordColumn extends DictColumn {
  /** two per place */
  hashes = new Int32Array(512)
  readonly #seed: Int32Array
  readonly #words: Interner
  /** place of each word, valid where its stamp is that of the block */
  #places = new Int32Array(1024)
  #stamps = new Int32Array(1024)
  #stamp = 1

  constructor(name: string, words: Interner, seed: Int32Array) {
    super(name)
    this.#words = words
    this.#seed = seed
  }

  /** @returns the word's place in the dictionary */
  place(word: number): number {
    if (this.#stamps[word] === this.#stamp) return this.#places[word] ?? 0
    if (word >= this.#stamps.length) this.#widen(word)
    const place = this.index(this.#words.text(word))
    this.#places[word] = place
    this.#stamps[word] = this.#stamp
    return place
  }

  override index(value: string): number {
    const before = this.values.length
    const place = super.index(value)
    if (place === before) this.#hash(place, value)
    return place
  }

  override clear(): void {
    super.clear()
    this.#stamp++
  }

  #hash(place: number, value: string): void {
    if (place * 2 >= this.hashes.length) {
      const { hashes } = this
      this.hashes = new Int32Array(hashes.length * 2)
      this.hashes.set(hashes)
    }
    const bytes = Buffer.from(value)
    const pair = this.hashes.subarray(place * 2, place * 2 + 2)
    pair.set(this.#seed)
    hashBytes(bytes, 0, bytes.length, pair)
  }

  #widen(word: number): void {
    const size = Math.max(word + 1, this.#stamps.length * 2)
    const [places, stamps] = [this.#places, this.#stamps]
    this.#places = new Int32Array(size)
    this.#stamps = new Int32Array(size)
    this.#places.set(places)
    this.#stamps.set(stamps)
  }
}
