import type { Store } from '../clickhouse/client.js'
import type { Redirects } from '../events/filter.js'
import type { Finding } from '../insights/findings.js'
import type { Query } from '../query/ast.js'

export interface Count {
  readonly slot: number
  readonly group: readonly string[]
  readonly count: number
  /** The anomaly that was counted, for rules of the kind `anomaly`. */
  readonly finding?: Finding
}

export interface CountDeps {
  readonly store: Pick<Store, 'query' | 'isSharded'>
  /** Replaces names in a query by what they stand for now, such as an application by its sources. */
  readonly resolve: (query: Query) => Query
  readonly redirects: () => Redirects
  /** The anomalies that began since then, by descending gravity. */
  readonly findings: (sinceMs: number, signal?: AbortSignal) => Promise<readonly Finding[]>
}
