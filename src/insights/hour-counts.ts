/** Hours that are kept: the longest frame with its running hour. */
const KEPT_HOURS = 34 * 24
/** series a slab of memory: 1.7 MB */
const SLAB = 512
const MOST = 0x7fff_ffff
/** hours since 1970, later than any */
const NEVER = 0x7fff_ffff

/** Items `begin` up to `end` of two lists: hours after `from`, and what was counted in them. */
export interface CountedHours {
  /** hours since 1970 */
  readonly from: number
  readonly at: ArrayLike<number>
  /** may be negative; the sum of those of an hour is not */
  readonly n: ArrayLike<number>
  readonly begin: number
  readonly end: number
}

/** Hours that are being replaced. */
export interface Replacement {
  add(slot: number, counted: CountedHours): void
  /** Notes which series the replacement has changed. */
  end(): void
}

/**
 * Counts of many series by hour, kept from look to look. An hour lies at its number modulo what is kept, so
 * a new hour takes the place of one that has left the frame. Four bytes a series and hour.
 */
export class HourCounts {
  readonly #slots = new Map<string, number>()
  readonly #slabs: Int32Array[] = []
  /** by slot: the earliest hour that has changed since `forgetChanges` */
  #changedFrom = new Int32Array(SLAB).fill(NEVER)
  /** by place of an hour: whether something was counted there */
  readonly #isUsed = new Uint8Array(KEPT_HOURS)

  /** How many series there are; they are numbered from 0 on. */
  get size(): number {
    return this.#slots.size
  }

  /** The series of a name, made when there is none. */
  slotOf(key: string): number {
    const known = this.#slots.get(key)
    if (known !== undefined) return known
    const slot = this.#slots.size
    if (slot % SLAB === 0) this.#addSlab()
    this.#slots.set(key, slot)
    this.#changedFrom[slot] = 0
    return slot
  }

  /** @returns null when nothing was ever counted under the name */
  find(key: string): number | null {
    return this.#slots.get(key) ?? null
  }

  /**
   * Empties some hours, to be filled anew.
   *
   * @param hours since 1970, of one frame, ascending
   * @param isNew hours that were not counted before change every series
   */
  replace(hours: readonly number[], isNew: (hour: number) => boolean): Replacement {
    const before = hours.map((hour) => {
      const column = isNew(hour) ? null : this.#column(hour)
      this.#clear(hour)
      return column
    })
    return {
      add: (slot, counted) => this.#add(slot, counted),
      end: () => {
        const firstNew = hours.find((_, i) => before[i] === null)
        if (firstNew !== undefined) this.#noteAllChanged(firstNew)
        for (const [i, column] of before.entries())
          if (column !== null) this.#noteChanges(hours[i] ?? 0, column)
      },
    }
  }

  /** Adds the counts from an hour on to `into`, which has as many as are wanted. */
  addTo(into: Float64Array, slot: number, startHour: number): void {
    const slab = this.#slabOf(slot)
    const base = (slot % SLAB) * KEPT_HOURS
    let at = base + placeOf(startHour)
    for (let i = 0; i < into.length; i++) {
      const n = slab[at] ?? 0
      if (n > 0) into[i] = (into[i] ?? 0) + n
      if (++at === base + KEPT_HOURS) at = base
    }
  }

  /** The earliest hour of a series that has changed, later than any when none has. */
  changedFrom(slot: number): number {
    return this.#changedFrom[slot] ?? 0
  }

  forgetChanges(): void {
    this.#changedFrom.fill(NEVER)
  }

  #add(slot: number, { from, at, n, begin, end }: CountedHours): void {
    const slab = this.#slabOf(slot)
    const base = (slot % SLAB) * KEPT_HOURS
    const first = placeOf(from)
    for (let i = begin; i < end; i++) {
      const cell = base + ((first + (at[i] ?? 0)) % KEPT_HOURS)
      slab[cell] = Math.min(MOST, (slab[cell] ?? 0) + (n[i] ?? 0))
    }
  }

  #column(hour: number): Int32Array {
    const column = new Int32Array(this.size)
    const place = placeOf(hour)
    for (let slot = 0; slot < column.length; slot++)
      column[slot] = this.#slabOf(slot)[(slot % SLAB) * KEPT_HOURS + place] ?? 0
    return column
  }

  #clear(hour: number): void {
    const place = placeOf(hour)
    if (this.#isUsed[place] === 1)
      for (const slab of this.#slabs)
        for (let cell = place; cell < slab.length; cell += KEPT_HOURS) slab[cell] = 0
    this.#isUsed[place] = 1
  }

  #noteAllChanged(hour: number): void {
    for (let slot = 0; slot < this.size; slot++)
      if (hour < this.changedFrom(slot)) this.#changedFrom[slot] = hour
  }

  #noteChanges(hour: number, before: Int32Array): void {
    const { size } = this
    const place = placeOf(hour)
    for (let slot = 0; slot < size; slot++) {
      if (hour >= this.changedFrom(slot)) continue
      const count = this.#slabOf(slot)[(slot % SLAB) * KEPT_HOURS + place]
      if (count !== (before[slot] ?? 0)) this.#changedFrom[slot] = hour
    }
  }

  #slabOf(slot: number): Int32Array {
    const slab = this.#slabs[Math.floor(slot / SLAB)]
    if (slab === undefined) throw new Error(`bug: there is no series ${slot}`)
    return slab
  }

  #addSlab(): void {
    this.#slabs.push(new Int32Array(SLAB * KEPT_HOURS))
    const changed = new Int32Array(this.#slabs.length * SLAB).fill(NEVER)
    changed.set(this.#changedFrom.subarray(0, changed.length))
    this.#changedFrom = changed
  }
}

/** Frames of the first weeks of 1970 begin before it. */
const placeOf = (hour: number): number => ((hour % KEPT_HOURS) + KEPT_HOURS) % KEPT_HOURS
