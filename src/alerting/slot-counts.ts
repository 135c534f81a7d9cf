/** Counts by time slot as prefix sums, so that the sum of a range takes two binary searches. */
export class SlotCounts {
  #slots: number[] = []
  #counts: number[] = []
  #totals: number[] = []

  get isEmpty(): boolean {
    return this.#slots.length === 0
  }

  add(slot: number, count: number): void {
    const at = this.#indexOf(slot)
    if (this.#slots[at] !== slot) {
      this.#slots.splice(at, 0, slot)
      this.#counts.splice(at, 0, 0)
      this.#totals.splice(at, 0, this.#totals[at - 1] ?? 0)
    }
    this.#counts[at] = (this.#counts[at] ?? 0) + count
    for (let i = at; i < this.#totals.length; i++) this.#totals[i] = (this.#totals[i] ?? 0) + count
  }

  clear(): void {
    this.#slots = []
    this.#counts = []
    this.#totals = []
  }

  /** Sets the count of a slot. */
  put(slot: number, count: number): void {
    this.add(slot, count - (this.at(slot) ?? 0))
  }

  /** @param until exclusive */
  sum(from: number, until: number): number {
    return this.#upTo(until) - this.#upTo(from)
  }

  /** The count of one slot; null for an empty slot. */
  at(slot: number): number | null {
    const at = this.#indexOf(slot)
    return this.#slots[at] === slot ? (this.#counts[at] ?? null) : null
  }

  forgetBefore(slot: number): void {
    const at = this.#indexOf(slot)
    if (at === 0) return
    const gone = this.#totals[at - 1] ?? 0
    this.#slots = this.#slots.slice(at)
    this.#counts = this.#counts.slice(at)
    this.#totals = this.#totals.slice(at).map((total) => total - gone)
  }

  #upTo(slot: number): number {
    const at = this.#indexOf(slot)
    return at === 0 ? 0 : (this.#totals[at - 1] ?? 0)
  }

  /** The index of the first slot that is not before this one. */
  #indexOf(slot: number): number {
    const last = this.#slots.at(-1)
    if (last === undefined || last < slot) return this.#slots.length
    let [from, to] = [0, this.#slots.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((this.#slots[middle] ?? 0) < slot) from = middle + 1
      else to = middle
    }
    return from
  }
}
