/*
 * The messages of the live tail. Events that a client has not been sent are merged, so that a slow
 * one gets fewer messages, each about a longer span. The sum of `matched` over all messages is what
 * arrived, and `left_out` says how much of it no message contains.
 */

import type { Blocks } from './arrivals.js'

/** A position among the arrivals. */
export interface TailPosition {
  readonly atMs: number
  readonly blocks: Blocks
}

/** An event as the API shows it. */
export interface TailRow {
  readonly tsMs: number
  readonly id: number
  readonly json: string
}

/** The matching arrivals of a span that a client has not been sent. */
export interface TailSpan {
  readonly fromMs: number
  /** The end of the span. */
  readonly to: TailPosition
  readonly matched: number
  /** The newest events, newest first. */
  readonly rows: readonly TailRow[]
}

/** The most characters of a message's rows. A single larger row is left out. */
const ROW_CHARS = 262_144

/** @param newer the span that follows `older` */
export function joinSpans(older: TailSpan | null, newer: TailSpan, max: number): TailSpan {
  if (older === null) return { ...newer, rows: fitting(newer.rows, max) }
  return {
    fromMs: older.fromMs,
    to: newer.to,
    matched: older.matched + newer.matched,
    rows: fitting([...newer.rows, ...older.rows].toSorted(newestFirst), max),
  }
}

const newestFirst = (a: TailRow, b: TailRow): number => b.tsMs - a.tsMs || b.id - a.id

function fitting(rows: readonly TailRow[], max: number): readonly TailRow[] {
  let chars = 0
  const kept: TailRow[] = []
  for (const row of rows) {
    if (kept.length === max) break
    if (chars + row.json.length > ROW_CHARS) continue
    chars += row.json.length
    kept.push(row)
  }
  return kept.length === rows.length ? rows : kept
}

export interface TailFault {
  readonly code: string
  readonly message: string
  /** The field of the client's message that is wrong. */
  readonly path?: string
  /** The position of the error in a query. */
  readonly position?: number
  readonly length?: number
  readonly suggestion?: string | null
}

const iso = (ms: number): string => new Date(ms).toISOString()

export function rowsMessage(id: string, span: TailSpan, watermark: string): string {
  const head = JSON.stringify({
    type: 'tail:rows',
    id,
    from: iso(span.fromMs),
    to: iso(span.to.atMs),
    matched: span.matched,
    left_out: span.matched - span.rows.length,
    watermark,
  })
  return `${head.slice(0, -1)},"rows":[${span.rows.map(({ json }) => json).join(',')}]}`
}

export const subscribedMessage = (id: string, watermark: string): string =>
  JSON.stringify({ type: 'tail:subscribed', id, watermark })

export const unsubscribedMessage = (id: string): string =>
  JSON.stringify({ type: 'tail:unsubscribed', id })

export const errorMessage = (id: string, error: TailFault): string =>
  JSON.stringify({ type: 'tail:error', id, error })
