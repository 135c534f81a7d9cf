import type { Static } from '@sinclair/typebox'

import type { EventDetail, EventItem } from '../../api/schemas/event.js'

export type Row = Static<typeof EventItem>
/** An event with all its fields. */
export type Detail = Static<typeof EventDetail>

/** A part of the time range, with the number of events that begin in it. */
export interface Bucket {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  readonly count: number
}

export interface Page {
  readonly items: readonly Row[]
  readonly next_cursor: string | null
}

/** Loads rows and counts. */
export interface Source {
  /**
   * A page of events before a time, newest first.
   *
   * @param toMs exclusive; the same for a page and those after it
   */
  page(toMs: number, cursor: string | null): Promise<Page>
  /** The distribution of the events in a bucket, oldest first. */
  counts(bucket: Bucket): Promise<readonly Bucket[]>
}

/** The counts of a result. */
export interface Counted {
  readonly total: number
  /** Oldest first. */
  readonly buckets: readonly Bucket[]
}

/** A bucket with the position of its newest event. */
interface Placed extends Bucket {
  readonly place: number
}

/** Consecutive rows, read page by page from a time on. */
interface Chain {
  /** The position of the first row that is kept. */
  first: number
  readonly toMs: number
  rows: Row[]
  cursor: string | null
  isDone: boolean
  isLoading: boolean
}

/** A position further down than this is reached by the counts instead of reading all rows before it. */
const FAR = 1000
/** The rows that stay in memory; others are loaded again when they are shown. */
const MOST_LOADED = 12_000

/**
 * The rows of a result by their position, newest first, whatever their number. The newest are read
 * at once. The counts of the histogram give the time of any position, so that it is reached with a
 * few requests, and the scroll bar is exact. Until the counts are loaded, rows are read one page
 * after the other.
 */
export class Rows {
  readonly #source: Source
  readonly #onChange: () => void
  /** Newest first. */
  #buckets: readonly Placed[] = []
  #chains: Chain[] = []
  /** The number of events; null until it is known. */
  #total: number | null = null
  #error: unknown = null
  #isSplitting = false

  /** @param onChange is called when rows can be drawn */
  constructor(source: Source, onChange: () => void) {
    this.#source = source
    this.#onChange = onChange
  }

  /** The number of all rows, or of the loaded ones while the total is not known. */
  get total(): number {
    return this.#total ?? endOf(this.#chains[0])
  }

  /** The number of events; null until it is known. */
  get counted(): number | null {
    return this.#total
  }

  count({ total, buckets }: Counted): void {
    this.#buckets = placed(buckets, 0)
    const loaded = endOf(this.#chains[0])
    // More rows may have been stored since the count.
    this.#total ??= Math.max(total, loaded)
    if (loaded > 0) this.#onChange()
  }

  get error(): unknown {
    return this.#error
  }

  /** @returns undefined while the row is not loaded */
  at(i: number): Row | undefined {
    const chain = this.#chainWith(i)
    return chain?.rows[i - chain.first]
  }

  /** The loaded rows in a range of positions. */
  between(first: number, last: number): readonly Row[] {
    return this.#chains.flatMap((chain) =>
      chain.rows.slice(Math.max(0, first - chain.first), Math.max(0, last - chain.first)),
    )
  }

  /** @returns -1 for a row that is not loaded */
  placeOf(id: number): number {
    for (const { first, rows } of this.#chains) {
      const at = rows.findIndex((row) => row.id === id)
      if (at !== -1) return first + at
    }
    return -1
  }

  replace(row: Row): void {
    for (const { rows } of this.#chains) {
      const at = rows.findIndex(({ id }) => id === row.id)
      if (at !== -1) rows[at] = row
    }
    this.#onChange()
  }

  /** Loads the missing rows from `first` to `last`, which are visible. */
  show(first: number, last: number): void {
    const end = Math.min(last, this.#total ?? last)
    let missing = first
    while (missing < end && this.at(missing) !== undefined) missing++
    if (missing < end) void this.#load(missing, end)
    this.#forget(first, end)
  }

  async #load(from: number, to: number): Promise<void> {
    try {
      // The newest rows are requested first, before the counts.
      const isFirst = this.#total === null && this.#chains.length === 0
      const chain = isFirst
        ? this.#begin()
        : (this.#chainBefore(from) ?? (await this.#newChain(from)))
      if (chain === null || chain.isLoading) return
      chain.isLoading = true
      try {
        await this.#read(chain, to)
      } finally {
        chain.isLoading = false
      }
      this.#error = null
    } catch (error) {
      this.#error = error
    }
    this.#onChange()
  }

  async #read(chain: Chain, to: number): Promise<void> {
    while (endOf(chain) < to && !chain.isDone) {
      const { items, next_cursor: next } = await this.#source.page(chain.toMs, chain.cursor)
      chain.rows.push(...items)
      chain.cursor = next
      chain.isDone = next === null
    }
    // Rows that were deleted or stored since the count are taken into account.
    if (chain.isDone) this.#total = endOf(chain)
  }

  /** The chain that reaches a position with a few pages. */
  #chainBefore(place: number): Chain | null {
    for (const chain of this.#chains) {
      if (chain.first <= place && place - endOf(chain) <= FAR && !chain.isDone) return chain
    }
    return null
  }

  /** @returns null while another chain is being started */
  async #newChain(place: number): Promise<Chain | null> {
    if (this.#isSplitting) return null
    this.#isSplitting = true
    try {
      let bucket = this.#bucketAt(place)
      while (
        bucket !== undefined &&
        place - bucket.place > FAR &&
        bucket.toMs - bucket.fromMs > 1000
      ) {
        const parts = placed(await this.#source.counts(bucket), bucket.place)
        if (parts.length < 2) break
        const split = bucket
        this.#buckets = this.#buckets.flatMap((one) => (one === split ? parts : [one]))
        bucket = this.#bucketAt(place)
      }
      return this.#begin(bucket)
    } finally {
      this.#isSplitting = false
    }
  }

  #begin({ place: first = 0, toMs = Number.POSITIVE_INFINITY }: Partial<Placed> = {}): Chain {
    const chain = { first, toMs, rows: [], cursor: null, isDone: false, isLoading: false }
    this.#chains.push(chain)
    return chain
  }

  #chainWith(i: number): Chain | undefined {
    return this.#chains.find(({ first, rows }) => first <= i && i < first + rows.length)
  }

  /** The last bucket that begins at or before a position, by binary search. */
  #bucketAt(i: number): Placed | undefined {
    let low = 0
    let high = this.#buckets.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#buckets[middle]?.place ?? 0) <= i) low = middle
      else high = middle - 1
    }
    return this.#buckets[low]
  }

  #forget(first: number, last: number): void {
    const loaded = this.#chains.reduce((sum, { rows }) => sum + rows.length, 0)
    if (loaded <= MOST_LOADED) return
    // Drops invisible chains as a whole, and of the visible one the rows far above.
    this.#chains = this.#chains.filter(
      (chain) => chain.isLoading || (chain.first < last && endOf(chain) > first),
    )
    for (const chain of this.#chains) {
      const above = first - FAR - chain.first
      if (above < FAR) continue
      chain.rows = chain.rows.slice(above)
      chain.first += above
    }
  }
}

/** The position after the last loaded row. */
const endOf = (chain: Chain | undefined): number =>
  chain === undefined ? 0 : chain.first + chain.rows.length

/** Buckets with their positions, newest first. */
function placed(buckets: readonly Bucket[], first: number): readonly Placed[] {
  let place = first
  return buckets
    .filter(({ count }) => count > 0)
    .toReversed()
    .map((bucket) => {
      const found = { ...bucket, place }
      place += bucket.count
      return found
    })
}
