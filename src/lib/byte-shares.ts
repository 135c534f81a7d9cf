/**
 * A limit of bytes in use that one owner can't exhaust: it may use twice as much as is free. A
 * single owner gets two thirds, two get two fifths each, and some bytes are always free for one
 * more (dynamic thresholds, Choudhury and Hahne, 1998).
 */
export class ByteShares {
  readonly limitBytes: number
  readonly #usedBy = new Map<string, number>()
  #usedBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  hasRoom(owner: string, bytes: number): boolean {
    const free = this.limitBytes - this.#usedBytes
    return bytes <= free && (this.#usedBy.get(owner) ?? 0) + bytes <= free * 2
  }

  use(owner: string, bytes: number): void {
    this.#usedBytes += bytes
    this.#usedBy.set(owner, (this.#usedBy.get(owner) ?? 0) + bytes)
  }

  release(owner: string, bytes: number): void {
    this.#usedBytes -= bytes
    const left = (this.#usedBy.get(owner) ?? 0) - bytes
    if (left > 0) this.#usedBy.set(owner, left)
    else this.#usedBy.delete(owner)
  }
}
