import type { Store } from './client.js'
import { statement } from './statement.js'

export interface SourceTotals {
  readonly events: number
  readonly occurrences: number
  /** event time of the latest, ms since 1970 */
  readonly lastEventAtMs: number
}

export interface SourceStats {
  /** Totals of every source that has events; at most a second old, and never older than `invalidate`. */
  all(signal?: AbortSignal): Promise<ReadonlyMap<string, SourceTotals>>
  /** Something was written or deleted. */
  invalidate(): void
}

type Row = {
  readonly source: string
  readonly events: number
  readonly occurrences: number
  readonly last_ms: number
}

const totalsSql = statement<Record<string, never>, Row>('source_totals')

const MAX_AGE_MS = 1000

interface Reading {
  readonly startedAtMs: number
  readonly totals: Promise<ReadonlyMap<string, SourceTotals>>
}

export function createSourceStats(
  store: Store,
  nowMs: () => number = () => performance.now(),
): SourceStats {
  let last: Reading | null = null

  const read = (): Reading => {
    const totals = store.query(totalsSql, {}).then(toTotals)
    const reading = { startedAtMs: nowMs(), totals }
    totals.catch(() => {
      if (last === reading) last = null
    })
    return reading
  }

  return {
    // one read serves everyone, so the signal of a single caller does not end it
    async all(signal) {
      signal?.throwIfAborted()
      if (last === null || nowMs() - last.startedAtMs > MAX_AGE_MS) last = read()
      return await last.totals
    },
    invalidate() {
      last = null
    },
  }
}

const toTotals = (rows: readonly Row[]): ReadonlyMap<string, SourceTotals> =>
  new Map(
    rows.map(({ source, events, occurrences, last_ms: lastEventAtMs }) => [
      source,
      { events, occurrences, lastEventAtMs },
    ]),
  )
