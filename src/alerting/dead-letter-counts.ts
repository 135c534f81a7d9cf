import type { RequestOptions } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { Count, CountDeps } from './count.js'

interface Asked {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  readonly everyMs: number
  /** Whether each source is a group. */
  readonly isGrouped: boolean
  readonly maxRows: number
}

const deadSql = statement<
  {
    readonly from_ms: number
    readonly to_ms: number
    readonly every_s: number
    readonly by_source: boolean
    readonly max_sources: number
    readonly max_rows: number
  },
  { readonly slot: number; readonly source: string; readonly dead: number }
>('alert_dead_counts')

/** The most sources of a slot. A rejected record may name any source, so their number has no limit of its own. */
const MAX_SOURCES = 10_000

/** Counts dead letters by the slot of their arrival. By source, only the `MAX_SOURCES` sources with the most in each slot. */
export async function countDeadLetters(
  { store }: Pick<CountDeps, 'store'>,
  { fromMs, toMs, everyMs, isGrouped, maxRows }: Asked,
  options: RequestOptions,
): Promise<readonly Count[]> {
  const params = {
    from_ms: fromMs,
    to_ms: toMs,
    every_s: everyMs / 1000,
    by_source: isGrouped,
    max_sources: MAX_SOURCES,
    max_rows: maxRows,
  }
  const rows = await store.query(deadSql, params, options)
  return rows.map(({ slot, source, dead }) => ({
    slot,
    group: isGrouped ? [source] : [],
    count: dead,
  }))
}
