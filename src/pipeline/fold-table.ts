/**
 * Finds equal messages of one millisecond within a block: an open-addressing table over (hash pair, time).
 * Rows are numbered in order of first appearance; the arrays are longer than `rows`.
 */
export class FoldTable {
  rows = 0
  hashes = new Int32Array(2048)
  times = new Float64Array(1024)
  counts = new Int32Array(1024)
  #slots = new Int32Array(2048)

  /** @returns the row, or -1 */
  find(hash: Int32Array, timeMs: number): number {
    const lo = hash[0] ?? 0
    const hi = hash[1] ?? 0
    const mask = this.#slots.length - 1
    for (let slot = start(lo, hi, timeMs) & mask; ; slot = (slot + 1) & mask) {
      const row = (this.#slots[slot] ?? 0) - 1
      if (row < 0) return -1
      if (
        this.hashes[row * 2] === lo &&
        this.hashes[row * 2 + 1] === hi &&
        this.times[row] === timeMs
      )
        return row
    }
  }

  count(row: number): void {
    this.counts[row] = (this.counts[row] ?? 0) + 1
  }

  /** Adds a row with count 1. */
  add(hash: Int32Array, timeMs: number): void {
    if (this.rows === this.times.length) this.#grow()
    const row = this.rows++
    this.hashes[row * 2] = hash[0] ?? 0
    this.hashes[row * 2 + 1] = hash[1] ?? 0
    this.times[row] = timeMs
    this.counts[row] = 1
    this.#place(row)
  }

  clear(): void {
    this.rows = 0
    this.#slots.fill(0)
  }

  #place(row: number): void {
    const mask = this.#slots.length - 1
    const lo = this.hashes[row * 2] ?? 0
    const hi = this.hashes[row * 2 + 1] ?? 0
    let slot = start(lo, hi, this.times[row] ?? 0) & mask
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
    this.#slots[slot] = row + 1
  }

  #grow(): void {
    const size = this.times.length * 2
    const [hashes, times, counts] = [this.hashes, this.times, this.counts]
    this.hashes = new Int32Array(size * 2)
    this.times = new Float64Array(size)
    this.counts = new Int32Array(size)
    this.hashes.set(hashes)
    this.times.set(times)
    this.counts.set(counts)
    this.#slots = new Int32Array(size * 2)
    for (let row = 0; row < this.rows; row++) this.#place(row)
  }
}

const start = (lo: number, hi: number, timeMs: number): number =>
  lo ^ Math.imul(hi, 0x9e3779b1) ^ Math.imul(timeMs % 0x4000_0000, 0x85ebca6b)
