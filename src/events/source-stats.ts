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

const totalsSql = statement<Record<string, never>, Row>('source_totals')

export const createSourceStats = (store: Pick<Store, 'query'>) => ({
  /** Totals of every source that has events. */
  all: async (signal?: AbortSignal): Promise<ReadonlyMap<string, SourceTotals>> => {
    const rows = await store.query(totalsSql, {}, signal === undefined ? {} : { signal })
    return new Map(
      rows.map(({ source, events, occurrences, last_ms: lastEventAtMs }) => [
        source,
        { events, occurrences, lastEventAtMs },
      ]),
    )
  },
})
