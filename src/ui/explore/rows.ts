import type { Static } from '@sinclair/typebox'

import type { EventDetail, EventItem } from '../../api/schemas/event.js'

export type Row = Static<typeof EventItem>
/** An event with everything that is known of it. */
export type Detail = Static<typeof EventDetail>

/** A section of the time range, and how many events have their first occurrence in it. */
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

/** Where rows come from. */
export interface Source {
  /** Events up to a time, newest first. @param toMs exclusive; the same for a page and those after it */
  page(toMs: number, cursor: string | null): Promise<Page>
  /** How the events of a bucket are spread over it, oldest first. */
  counts(bucket: Bucket): Promise<readonly Bucket[]>
}

/** What a result has, as it was counted. */
export interface Counted {
  readonly total: number
  /** Oldest first. */
  readonly buckets: readonly Bucket[]
}

/** A bucket with the place of its newest event. */
interface Placed extends Bucket {
  readonly place: number
}

/** Rows that follow one another, read page by page from a time on. */
interface Chain {
  /** The place of the first row that is kept. */
  first: number
  readonly toMs: number
  rows: Row[]
  cursor: string | null
  isDone: boolean
  isLoading: boolean
}

/** A place further down than this is reached by the counts, not by reading all rows before it. */
const FAR = 1000
/** Rows that stay in memory; others are loaded again when they are shown. */
const MOST_LOADED = 12_000

/**
 * The rows of a result by their place, newest first, however many there are. The newest are read at once. The counts of the
 * histogram say where in time row i is, so any place is reached with a few requests, and the scroll bar is true; until they are
 * there, rows follow one another.
 */
export class Rows {
  readonly #source: Source
  readonly #onChange: () => void
  /** Newest first. */
  #buckets: readonly Placed[] = []
  #chains: Chain[] = []
  /** Null until it is known. */
  #total: number | null = null
  #error: unknown = null
  #isSplitting = false

  /** @param onChange is called when rows can be drawn */
  constructor(source: Source, onChange: () => void) {
    this.#source = source
    this.#onChange = onChange
  }

  /** All rows, or those that are loaded while nobody has counted them. */
  get total(): number {
    return this.#total ?? endOf(this.#chains[0])
  }

  /** Null until it is known. */
  get counted(): number | null {
    return this.#total
  }

  count({ total, buckets }: Counted): void {
    this.#buckets = placed(buckets, 0)
    const loaded = endOf(this.#chains[0])
    // Rows may have come in since.
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

  /** The rows of these places that are loaded. */
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

  /** Loads what is missing of the rows from `first` up to `last`, which are shown. */
  show(first: number, last: number): void {
    const end = Math.min(last, this.#total ?? last)
    let missing = first
    while (missing < end && this.at(missing) !== undefined) missing++
    if (missing < end) void this.#load(missing, end)
    this.#forget(first, end)
  }

  async #load(from: number, to: number): Promise<void> {
    try {
      // The newest rows are asked for at once, before anything that is asked for beside them.
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
    // What was deleted, or came in, since the count.
    if (chain.isDone) this.#total = endOf(chain)
  }

  /** The chain that reaches a place with a few pages. */
  #chainBefore(place: number): Chain | null {
    for (const chain of this.#chains) {
      if (chain.first <= place && place - endOf(chain) <= FAR && !chain.isDone) return chain
    }
    return null
  }

  /** @returns null while another one is looked for */
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

  /** The last bucket that begins at or before a place, by halving. */
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
    // A chain that is not on show goes whole; of the one that is, the rows far above.
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

/** The place after the last row that is loaded. */
const endOf = (chain: Chain | undefined): number =>
  chain === undefined ? 0 : chain.first + chain.rows.length

/** Buckets with their places, newest first. */
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
