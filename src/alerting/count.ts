import type { Store } from '../clickhouse/client.js'
import type { Redirects } from '../events/filter.js'
import type { Finding } from '../insights/findings.js'
import type { Query } from '../query/ast.js'

export interface Count {
  readonly slot: number
  readonly group: readonly string[]
  readonly count: number
  /** What was counted, where it is an anomaly. */
  readonly finding?: Finding
}

export interface CountDeps {
  readonly store: Pick<Store, 'query' | 'isSharded'>
  /** What the names in a query mean now, such as the sources of an application. */
  readonly resolve: (query: Query) => Query
  readonly redirects: () => Redirects
  /** The anomalies that began since then, the gravest first. */
  readonly findings: (sinceMs: number, signal?: AbortSignal) => Promise<readonly Finding[]>
}
