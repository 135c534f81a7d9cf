import type { Collection } from '../coordination/collection.js'
import { comparePositions, takePage, type Page, type PageQuery, type Position } from './page.js'

/** The part of a collection that alerts, incidents and tasks use. */
export type Records<T extends object> = Pick<
  Collection<T>,
  'size' | 'get' | 'list' | 'update' | 'remove' | 'clear' | 'onChange'
>

interface Sequenced {
  readonly id: string
  /** Microseconds since 1970, or the last one plus one: many records may share a millisecond. */
  readonly seq: number
}

interface Slot<T> {
  readonly id: string
  readonly seq: number
  /** Null after a deletion. */
  value: T | null
}

/** The slots of deleted records are removed when there are this many and they are the majority. */
const MIN_HOLES = 1_000

/**
 * An index of a collection in the order of creation. Every change updates it, so the cost of a page
 * depends on the records that it shows and filters, not on the total.
 */
export class NewestFirst<T extends Sequenced> {
  /** Oldest first. */
  #slots: Slot<T>[]
  readonly #byId = new Map<string, Slot<T>>()
  #lastSeq = 0

  constructor(records: Pick<Records<T>, 'list' | 'onChange'>) {
    this.#slots = records.list().map(toSlot)
    this.#slots.sort((a, b) => comparePositions(positionOf(a), positionOf(b)))
    for (const slot of this.#slots) this.#byId.set(slot.id, slot)
    this.#lastSeq = this.#slots.at(-1)?.seq ?? 0
    records.onChange(({ id, value }) => this.#apply(id, value))
  }

  /** @param above the greatest number that was assigned elsewhere */
  nextSeq(nowMs: number, above = 0): number {
    this.#lastSeq = Math.max(this.#lastSeq + 1, above + 1, nowMs * 1_000)
    return this.#lastSeq
  }

  /** Gives the records that are older than a position, the newest first. */
  *values(position: Position | null = null): Generator<T, void> {
    const from = position === null ? this.#slots.length : this.#indexOf(position)
    for (let at = from - 1; at >= 0; at--) {
      const value = this.#slots[at]?.value
      if (value != null) yield value
    }
  }

  /** Gives the oldest records that match. */
  oldest(count: number, matches: (value: T) => boolean): T[] {
    const found: T[] = []
    for (const { value } of this.#slots) {
      if (found.length >= count) break
      if (value !== null && matches(value)) found.push(value)
    }
    return found
  }

  /** @throws AppError invalid_cursor */
  page(query: PageQuery, matches: (value: T) => boolean): Page<T> {
    return takePage(query, (position) => this.#matching(position, matches), positionOf)
  }

  *#matching(position: Position | null, matches: (value: T) => boolean): Generator<T, void> {
    for (const value of this.values(position)) if (matches(value)) yield value
  }

  /** The index of a position among the slots, or where it would be. */
  #indexOf(position: Position): number {
    let [from, to] = [0, this.#slots.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      const slot = this.#slots[middle]
      if (slot !== undefined && comparePositions(positionOf(slot), position) < 0) from = middle + 1
      else to = middle
    }
    return from
  }

  #apply(id: string, value: T | null): void {
    const slot = this.#byId.get(id)
    if (value === null) {
      if (slot === undefined) return
      slot.value = null
      this.#byId.delete(id)
      this.#compact()
      return
    }
    if (slot?.seq === value.seq) {
      slot.value = value
      return
    }
    if (slot !== undefined) slot.value = null
    const added = toSlot(value)
    this.#byId.set(id, added)
    this.#slots.splice(this.#indexOf(positionOf(added)), 0, added)
    this.#lastSeq = Math.max(this.#lastSeq, value.seq)
  }

  #compact(): void {
    const holes = this.#slots.length - this.#byId.size
    if (holes < MIN_HOLES || holes * 2 < this.#slots.length) return
    this.#slots = this.#slots.filter(({ value }) => value !== null)
  }
}

const toSlot = <T extends Sequenced>(value: T): Slot<T> => ({
  id: value.id,
  seq: value.seq,
  value,
})

const positionOf = ({ seq, id }: Sequenced): Position => [seq, id]
