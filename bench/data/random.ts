/** Reproducible pseudo-random numbers (sfc32 by Chris Doty-Humphrey, PractRand 0.93); not for secrets. */
export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number) {
    this.#a = seed | 0
    this.#b = Math.imul(seed, 0x9e3779b1) | 0
    this.#c = ~seed | 0
    for (let i = 0; i < 15; i++) this.uint32()
  }

  /** Returns an integer in 0..2^32-1. */
  uint32(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0
    return t >>> 0
  }

  /** Returns a number in [0, 1). */
  share(): number {
    return this.uint32() / 0x1_0000_0000
  }

  /** Returns an integer in [0, n); n is at most 2^32. */
  below(n: number): number {
    return Math.floor(this.share() * n)
  }

  /** Returns an integer in [low, high]. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  /** True with probability `p`. */
  chance(p: number): boolean {
    return this.share() < p
  }

  /** Returns an integer that is uniform in the logarithm; low is at least 1. */
  logBetween(low: number, high: number): number {
    return Math.floor(low * Math.exp(this.share() * Math.log((high + 1) / low)))
  }

  /** Returns an element; the first ones are more frequent. */
  skewed<T>(items: readonly T[]): T {
    const at = Math.floor(this.share() ** 3 * items.length)
    const item = items[at]
    if (item === undefined) throw new Error('bug: no item to pick')
    return item
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('bug: no item to pick')
    return item
  }
}
