import type { Store } from '../clickhouse/client.js'
import type { Arrivals } from '../events/arrivals.js'
import type { Redirects } from '../events/filter.js'
import type { Query } from '../query/ast.js'

export interface Count {
  readonly slot: number
  readonly group: readonly string[]
  readonly count: number
}

export interface CountDeps {
  readonly store: Pick<Store, 'query' | 'isSharded'>
  readonly arrivals: Pick<Arrivals, 'storedAfter'>
  /** What names in a query stand for now. */
  readonly resolve: (query: Query) => Query
  readonly redirects: () => Redirects
}
