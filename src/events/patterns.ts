import type { Store } from '../clickhouse/client.js'
import { isPatternError } from '../clickhouse/failure.js'
import { statement } from '../clickhouse/statement.js'
import type { Query, ValueTest } from '../query/ast.js'

const patternSql = statement<{ readonly pattern: string }, { readonly matches: number }>(
  'pattern_check',
)

/** The longest time of a check, because a user waits for it. */
const TIMEOUT_MS = 2000

/**
 * Finds the first clause with a regular expression that RE2 refuses. The parser detects common
 * faults; only RE2 detects all of them.
 */
export const createPatternCheck =
  (store: Pick<Store, 'query'>) =>
  async (query: Query, signal?: AbortSignal): Promise<Query | null> => {
    const options = { timeoutMs: TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) }
    for (const { clause, pattern } of patternsIn(query))
      try {
        await store.query(patternSql, { pattern }, options)
      } catch (error) {
        if (isPatternError(error)) return clause
        throw error
      }
    return null
  }

interface Pattern {
  readonly clause: Query
  readonly pattern: string
}

function patternsIn(query: Query): readonly Pattern[] {
  if ('nodes' in query) return query.nodes.flatMap(patternsIn)
  if ('node' in query) return patternsIn(query.node)
  const tests: readonly ValueTest[] =
    query.kind === 'text' ? [query.test] : query.kind === 'field' ? query.tests : []
  return tests.flatMap((test) =>
    test.kind === 'regex' ? [{ clause: query, pattern: test.pattern }] : [],
  )
}
