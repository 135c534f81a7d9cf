import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { toConditions, type Matches } from './conditions.js'
import { hasIndex } from './filter.js'
import { beginningMs, type Place, type RangeQuestion } from './occurrences.js'
import { MAX_AHEAD_MS } from './range-rows.js'

type Params = Readonly<Record<string, unknown>>

const firstSql = statement<Params, Place>('event_first_matches')

/** Finding a thousand matches takes a small part of the time for reading the repeats of a day. */
export const FEW_MATCHES = 1000

interface Asked {
  readonly question: RangeQuestion
  /** The dictionary matches in the range. */
  readonly found: Matches
  /** The most matches that count as few. */
  readonly most: number
}

/**
 * Finds the matches of a range with an index when they are few, so that only their repeats have to
 * be looked up.
 *
 * @returns undefined when there may be more
 */
export async function findFewMatches(
  store: Pick<Store, 'query'>,
  { question, found, most }: Asked,
  options: RequestOptions,
): Promise<readonly Place[] | undefined> {
  const { filter, toMs, endMs } = question
  if (!hasIndex(filter)) return undefined
  const conditions = toConditions(filter, { found, endMs })
  const sql = firstSql.sql.replace('/*conditions*/', () =>
    conditions.map((one) => `AND ${one.sql}`).join('\n    '),
  )
  const fromMs = beginningMs(question)
  const params = {
    ...Object.assign({}, ...conditions.map((one) => one.params)),
    from_ms: fromMs,
    to_ms: toMs,
    arrived_ms: Math.max(0, fromMs - MAX_AHEAD_MS),
    limit: most + 1,
  }
  const places = await store.query({ ...firstSql, sql }, params, options)
  return places.length > most ? undefined : places
}
