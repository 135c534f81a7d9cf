import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'

export interface SourceTotals {
  readonly events: number
  readonly occurrences: number
  /** Event time of the latest event. */
  readonly lastEventAtMs: number
}

export type SourceStats = ReturnType<typeof createSourceStats>

type Row = {
  readonly source: string
  readonly events: number
  readonly occurrences: number
  readonly last_ms: number
}

const totalsSql = statement<{ readonly sources: readonly string[] }, Row>('source_totals')
const deadSql = statement<
  { readonly sources: readonly string[]; readonly from_ms: number; readonly to_ms: number },
  { readonly name: string; readonly dead: number }
>('source_dead_letters')

export const createSourceStats = (store: Pick<Store, 'query'>) => ({
  /** The totals of the sources that have events. @param sources null for all */
  totals: async (
    sources: readonly string[] | null,
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<string, SourceTotals>> => {
    if (sources?.length === 0) return new Map()
    const params = { sources: sources ?? [] }
    const rows = await store.query(totalsSql, params, signal === undefined ? {} : { signal })
    return new Map(
      rows.map(({ source, events, occurrences, last_ms: lastEventAtMs }) => [
        source,
        { events, occurrences, lastEventAtMs },
      ]),
    )
  },
  /** Counts the dead letters that arrived in a span, by source. Sources without any are left out. */
  deadLetters: async (
    sources: readonly string[],
    { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<string, number>> => {
    const params = { sources, from_ms: fromMs, to_ms: toMs }
    const rows = await store.query(deadSql, params, signal === undefined ? {} : { signal })
    return new Map(rows.map(({ name, dead }) => [name, dead]))
  },
})
