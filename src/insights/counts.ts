import { HourCounts } from './hour-counts.js'
import { LookMemos } from './look-memos.js'
import type { HourRow } from './rows.js'
import type { HourSpan } from './stored-series.js'
import type { SliceClock } from './slice-clock.js'

/** What is kept from look to look. */
export interface InsightMemory {
  readonly sources: CountTable
  readonly templates: CountTable
  readonly memos: LookMemos
  /** hours whose two rollups did not add up to the same, as they were read */
  readonly unequal: Map<number, string>
  readonly limits: KeptLimits
}

/** How many series stay in memory; of more, page by page is read at every look. */
export interface KeptLimits {
  readonly sources: number
  readonly templates: number
}

/** 3.3 kB each, and up to five for a source */
const LIMITS: KeptLimits = { sources: 4_000, templates: 16_000 }

export const createMemory = (limits = LIMITS): InsightMemory => ({
  limits,
  sources: new CountTable(),
  templates: new CountTable(),
  memos: new LookMemos(),
  unequal: new Map(),
})

export interface Wanted {
  readonly span: HourSpan
  /** by hour, what tells whether it is as it was */
  readonly marks: ReadonlyMap<number, string>
  /** about how many series there are */
  readonly series: number
  readonly read: (span: HourSpan) => Promise<Iterable<HourRow>>
}

/** numbers a query tells at most: 10 MB */
const MAX_CELLS = 1_600_000
/** changed hours with less between them are read as one span */
const NEAR_HOURS = 6
/** series that are gone are kept until they are more than those there are, and this */
const MANY = 1000
const NO_ROWS = ''
const NEVER = Number.MAX_SAFE_INTEGER

/** Counts by hour of one rollup. Only hours whose mark is not what it was are read again. */
export class CountTable {
  #counts = new HourCounts()
  /** nothing is known of what was there before */
  #isFresh = true
  readonly #marks = new Map<number, string>()
  readonly #sums = new Map<number, number>()

  async refresh({ span, marks, series, read }: Wanted, clock: SliceClock): Promise<void> {
    if (this.#counts.size > 2 * (series + MANY)) this.clear()
    for (const hour of this.#marks.keys()) if (hour < span.from) this.forget(hour)
    const changed: number[] = []
    for (let hour = span.from; hour < span.until; hour++)
      if (this.#marks.get(hour) !== (marks.get(hour) ?? NO_ROWS)) changed.push(hour)
    const longest = Math.max(1, Math.floor(MAX_CELLS / Math.max(1, series)))
    for (const part of spansOf(changed, longest)) {
      await this.#replace(part, await clock.wait(read(part)), clock)
      for (let hour = part.from; hour < part.until; hour++)
        this.#marks.set(hour, marks.get(hour) ?? NO_ROWS)
    }
  }

  /**
   * Adds the counts of a series from an hour on to `into`.
   *
   * @returns index of the first one that changed since `forgetChanges`; beyond the last one when none has
   */
  read(key: string, into: Float64Array, startHour: number): number {
    const slot = this.#counts.find(key)
    if (slot === null) return this.#isFresh ? 0 : NEVER
    this.#counts.addTo(into, slot, startHour)
    return this.#counts.changedFrom(slot) - startHour
  }

  forgetChanges(): void {
    this.#isFresh = false
    this.#counts.forgetChanges()
  }

  clear(): void {
    this.#counts = new HourCounts()
    this.#isFresh = true
    this.#marks.clear()
    this.#sums.clear()
  }

  /** Occurrences of an hour over all series. */
  sumOf(hour: number): number {
    return this.#sums.get(hour) ?? 0
  }

  /** The hour is read again at the next look. */
  forget(hour: number): void {
    this.#marks.delete(hour)
    this.#sums.delete(hour)
  }

  async #replace(span: HourSpan, rows: Iterable<HourRow>, clock: SliceClock): Promise<void> {
    const hours = Array.from({ length: span.until - span.from }, (_, i) => span.from + i)
    const replacement = this.#counts.replace(hours, (hour) => !this.#marks.has(hour))
    for (const hour of hours) this.forget(hour)
    const sums = new Float64Array(hours.length)
    for (const row of rows) {
      replacement.add(this.#counts.slotOf(row.key), row)
      for (let i = row.begin; i < row.end; i++) {
        const at = row.from - span.from + (row.at[i] ?? 0)
        sums[at] = (sums[at] ?? 0) + (row.n[i] ?? 0)
      }
      await clock.pause()
    }
    replacement.end()
    for (const [i, hour] of hours.entries()) this.#sums.set(hour, sums[i] ?? 0)
  }
}

function spansOf(hours: readonly number[], longest: number): readonly HourSpan[] {
  const spans: { from: number; until: number }[] = []
  for (const hour of hours) {
    const last = spans.at(-1)
    if (last !== undefined && hour < last.until + NEAR_HOURS && hour < last.from + longest)
      last.until = hour + 1
    else spans.push({ from: hour, until: hour + 1 })
  }
  return spans
}
