import { decodeCursor, encodeCursor, type CursorFilters } from './cursor.js'
import type { Page } from './keyset.js'
import type { Records } from './records.js'

/** What the order follows. `seq` grows with creation: many records may share a millisecond. */
export interface Sequenced {
  readonly id: string
  /** microseconds since 1970, or the last one plus one */
  readonly seq: number
}

/** What a list asks for; a cursor is good for the same `list`, filters and key only. */
export interface PageQuery {
  readonly limit: number
  readonly cursor?: string | undefined
  readonly filters: CursorFilters
  readonly cursorKey: Buffer
}

interface Slot<T> {
  readonly id: string
  readonly seq: number
  /** null when the record is gone */
  value: T | null
}

type Position = readonly [seq: number, id: string]

/** Slots of removed records are given up when they are this many and the greater part. */
const MIN_HOLES = 1_000

/**
 * Records in the order of their creation, kept up with every change, so that a page costs what it
 * shows (and what its filter passes over) however many records there are.
 */
export class NewestFirst<T extends Sequenced> {
  /** oldest first */
  #slots: Slot<T>[]
  readonly #byId = new Map<string, Slot<T>>()
  #lastSeq = 0

  constructor(records: Pick<Records<T>, 'list' | 'onChange'>) {
    this.#slots = records.list().map((value) => toSlot(value))
    this.#slots.sort((a, b) => compare(positionOf(a), positionOf(b)))
    for (const slot of this.#slots) this.#byId.set(slot.id, slot)
    this.#lastSeq = this.#slots.at(-1)?.seq ?? 0
    records.onChange(({ id, value }) => this.#apply(id, value))
  }

  /** @param above a number that was given elsewhere */
  nextSeq(nowMs: number, above = 0): number {
    this.#lastSeq = Math.max(this.#lastSeq + 1, above + 1, nowMs * 1_000)
    return this.#lastSeq
  }

  /** Newest first. */
  *values(): Generator<T, void> {
    for (let at = this.#slots.length - 1; at >= 0; at--) {
      const value = this.#slots[at]?.value
      if (value != null) yield value
    }
  }

  /** Those that match, from the oldest on. */
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
    const { limit, cursor, filters, cursorKey } = query
    const items: T[] = []
    let at = this.#slots.length - 1
    if (cursor !== undefined) {
      at = this.#before(decodeCursor(cursorKey, filters, cursor, isPosition))
    }
    for (; at >= 0 && items.length <= limit; at--) {
      const value = this.#slots[at]?.value
      if (value != null && matches(value)) items.push(value)
    }
    const last = items[limit - 1]
    if (items.length <= limit || last === undefined) {
      return { items, next_cursor: null, has_more: false }
    }
    const next = encodeCursor(cursorKey, filters, positionOf(last))
    return { items: items.slice(0, limit), next_cursor: next, has_more: true }
  }

  /** Index of the newest slot that is older than a position. */
  #before(position: Position): number {
    let [from, to] = [0, this.#slots.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      const slot = this.#slots[middle]
      if (slot !== undefined && compare(positionOf(slot), position) < 0) from = middle + 1
      else to = middle
    }
    return from - 1
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
    this.#slots.splice(this.#before(positionOf(added)) + 1, 0, added)
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

function compare([aSeq, a]: Position, [bSeq, b]: Position): number {
  if (aSeq !== bSeq) return aSeq - bSeq
  return a < b ? -1 : Number(a > b)
}

const isPosition = (value: unknown): value is Position =>
  Array.isArray(value) &&
  value.length === 2 &&
  Number.isSafeInteger(value[0]) &&
  typeof value[1] === 'string'
