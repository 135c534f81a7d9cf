/*
 * Prepares the deletion of events by a query. The rollups are corrected by rows with negated
 * counts: occurrences by rows of `landing`, which its views distribute, and events by rows of
 * `template_stats`.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { toConditions } from './conditions.js'
import { createDictionary } from './dictionary-matches.js'
import { matchesNothing } from './filter.js'
import { beginningMs, repeatedWithin, type RangeQuestion } from './occurrences.js'
import { MAX_AHEAD_MS } from './range-rows.js'

type Params = Readonly<Record<string, unknown>>
type Ids = { readonly ids: readonly number[] }

const idsSql = statement<Params, { readonly id: number }>('event_ids')
const rowsSql = statement<Ids, never>('event_removal_rows')
const statsSql = statement<Ids, never>('event_removal_stats')

/** Blocks in the Native format. */
export interface RemovalRows {
  readonly ids: readonly number[]
  /** Of `landing`. */
  readonly landing: Uint8Array
  readonly landingRows: number
  /** Of `template_stats`. */
  readonly stats: Uint8Array
}

const READ: RequestOptions = { isSearch: true }

export function createRemoval(store: Pick<Store, 'query' | 'queryColumns'>) {
  /** The negated counts of these events, in as many blocks as needed. Events that are not stored have none. */
  const rows = async (ids: readonly number[]): Promise<readonly RemovalRows[]> => {
    const [landing = [], stats = []] = await Promise.all(
      [rowsSql, statsSql].map((sql) => store.queryColumns(sql, { ids }, READ)),
    )
    const [one, ...more] = landing
    const [sums, ...others] = stats
    if (one === undefined || sums === undefined) return []
    if (more.length + others.length === 0)
      return [{ ids, landing: one.bytes, landingRows: one.rows, stats: sums.bytes }]
    const half = Math.ceil(ids.length / 2)
    return [...(await rows(ids.slice(0, half))), ...(await rows(ids.slice(half)))]
  }

  return {
    /** The ids of the events of a range in ascending order, up to the limit. */
    ids: async (question: RangeQuestion, limit: number): Promise<readonly number[]> => {
      const { filter, fromMs, toMs, endMs } = question
      if (fromMs >= toMs || matchesNothing(filter)) return []
      const dictionary = createDictionary(store, filter, READ)
      const found = await dictionary.matches(beginningMs(question), toMs)
      const conditions = toConditions(filter, { found, endMs })
      const repeated = repeatedWithin(question)
      const sql = idsSql.sql
        .replace('/*conditions*/', () => conditions.map((one) => `AND ${one.sql}`).join('\n    '))
        .replace('/*repeated*/', () => repeated.sql)
      const params = {
        ...repeated.params,
        from_ms: beginningMs(question),
        arrived_ms: Math.max(0, beginningMs(question) - MAX_AHEAD_MS),
        to_ms: toMs,
        limit,
        ...Object.assign({}, ...conditions.map((one) => one.params)),
      }
      return (await store.query({ ...idsSql, sql }, params, READ)).map(({ id }) => id)
    },

    rows,
  }
}
