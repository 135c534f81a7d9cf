import type { Row } from '../explore/rows.js'

/** A message of the service about a subscription. */
export interface TailRows {
  readonly type: 'tail:rows'
  readonly matched: number
  readonly left_out: number
  readonly from: string
  readonly to: string
  readonly watermark: string
  /** Newest first. */
  readonly rows: readonly Row[]
}

/** A line of the tail: an event, or a gap where some were left out. */
export type TailItem =
  | { readonly kind: 'event'; readonly key: number; readonly row: Row }
  | { readonly kind: 'gap'; readonly key: string; readonly count: number; readonly text: string }

const MOST = 4000
/** The seconds that the rate covers. */
const RATE_MS = 10_000

/**
 * The newest events, oldest first. During a pause the visible lines do not move: new events are
 * counted and buffered, and shown at the end of the pause as far as they were kept.
 */
export class TailBuffer {
  items: readonly TailItem[] = []
  isPaused = false
  /** The number of matching events since the pause began. */
  waiting = 0
  matched = 0
  leftOut = 0
  #held: TailItem[] = []
  #arrivals: { readonly atMs: number; readonly count: number }[] = []
  #gaps = 0

  push({ rows, matched, left_out: leftOut }: TailRows, nowMs: number): void {
    this.matched += matched
    this.leftOut += leftOut
    this.#arrivals.push({ atMs: nowMs, count: matched })
    const items: TailItem[] = []
    if (leftOut > 0) items.push(this.#gap(leftOut, 'came too fast to be sent'))
    for (const row of rows.toReversed()) items.push({ kind: 'event', key: row.id, row })
    if (!this.isPaused) {
      this.#show(items)
      return
    }
    this.waiting += matched
    this.#held = this.#cut([...this.#held, ...items])
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.#show(this.#held)
    this.#held = []
    this.waiting = 0
  }

  clear(): void {
    Object.assign(this, { items: [], waiting: 0, matched: 0, leftOut: 0 })
    this.#held = []
  }

  ratePerSecond(nowMs: number): number {
    this.#arrivals = this.#arrivals.filter(({ atMs }) => nowMs - atMs < RATE_MS)
    return this.#arrivals.reduce((sum, { count }) => sum + count, 0) / (RATE_MS / 1000)
  }

  #show(items: readonly TailItem[]): void {
    this.items = this.#cut([...this.items, ...items])
  }

  /** Keeps the newest items; the first item has the number of dropped events. */
  #cut(items: readonly TailItem[]): TailItem[] {
    if (items.length <= MOST) return [...items]
    const rest = items.slice(items.length - MOST + 1)
    const before = countOf(items.slice(0, items.length - rest.length))
    return [this.#gap(before, 'came before these'), ...rest]
  }

  #gap(count: number, why: string): TailItem {
    this.#gaps++
    return { kind: 'gap', key: `gap-${this.#gaps}`, count, text: why }
  }
}

/** The number of events that items stand for. */
const countOf = (items: readonly TailItem[]): number =>
  items.reduce((sum, item) => sum + (item.kind === 'gap' ? item.count : 1), 0)

/** The events of one template, for a tail that is too fast to read line by line. */
export interface TemplateLine {
  readonly id: string
  readonly count: number
  readonly newest: Row
}

/** Most frequent first. */
export function byTemplate(items: readonly TailItem[]): readonly TemplateLine[] {
  const lines = new Map<string, { id: string; count: number; newest: Row }>()
  for (const item of items) {
    if (item.kind === 'gap') continue
    const { template_id: id } = item.row
    const line = lines.get(id)
    if (line === undefined) lines.set(id, { id, count: 1, newest: item.row })
    else Object.assign(line, { count: line.count + 1, newest: item.row })
  }
  return [...lines.values()].sort((a, b) => b.count - a.count || a.id.localeCompare(b.id))
}
