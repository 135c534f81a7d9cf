/*
 * What a time range holds, for all questions that count.
 *
 * An occurrence has the time of its message to the second: repeats are stored by second, and those of the second in which their
 * event began have the event's time. It counts in the range and in the bucket of its own time, wherever its event began. An event
 * is in a range when one of its occurrences is. So the counts of adjacent ranges add up to that of both, a repeat is never moved
 * to another bucket, and rollups, which count by second, agree with events.
 *
 * An event is repeated within the deduplication window after its beginning, so what is repeated in a range began at most that
 * long before it.
 */

import { statement } from '../clickhouse/statement.js'
import type { Condition } from './bind.js'
import { toConditions, type Matches } from './conditions.js'
import type { EventFilter } from './filter.js'
import { MAX_AHEAD_MS } from './range-rows.js'

/** Which events are asked for. */
export interface EventQuestion {
  readonly filter: EventFilter
  readonly fromMs: number
  /** Exclusive; null for no bound. */
  readonly toMs: number | null
}

/** A question about a time range with two ends. */
export interface RangeQuestion extends EventQuestion {
  readonly toMs: number
  /** The end of the time range that was asked for, which `new` looks back from. */
  readonly endMs: number
  /** Events are repeated for so long after they begin. */
  readonly windowMs: number
}

type RepeatedRange = Pick<RangeQuestion, 'fromMs' | 'toMs' | 'windowMs'>
type Params = Readonly<Record<string, unknown>>

const cheapSql = statement<Params, never>('event_occurrence_rows')
const onceSql = statement<Params, never>('event_matching_rows')
const repeatedSql = statement<Params, { readonly id: number }>('event_repeated')

/** Where the events of a range may begin. */
export const beginningMs = ({ fromMs, windowMs }: RepeatedRange): number =>
  Math.max(0, fromMs - windowMs)

/** The condition on events that began before the range that they are repeated within it. */
export const repeatedWithin = (range: RepeatedRange): Condition => ({
  sql: `id IN (\n${repeatedSql.sql}\n)`,
  params: {
    start_ms: range.fromMs,
    repeated_until_ms: Math.min(range.toMs, range.fromMs + range.windowMs),
    arrived_ms: Math.max(0, beginningMs(range) - MAX_AHEAD_MS),
  },
})

const and = (conditions: readonly Condition[]): string =>
  conditions.map(({ sql }) => `AND ${sql}`).join('\n    ')

/**
 * The occurrences of a range as a statement for a FROM clause.
 *
 * @param expressions of a row of `events`; they are called k0, k1 …
 */
export function occurrenceRows(
  question: RangeQuestion,
  found: Matches,
  expressions: readonly Condition[],
): Condition {
  const { filter, toMs, endMs } = question
  const conditions = toConditions(filter, { found, endMs })
  const begun = beginningMs(question)
  const repeated = repeatedWithin(question)
  const parts: Readonly<Record<string, string>> = {
    conditions: and(conditions),
    expressions: expressions.map(({ sql }, i) => `, ${sql} AS k${i}`).join(''),
    names: expressions.map((_, i) => `, k${i}`).join(''),
    repeated: `AND ${repeated.sql}`,
  }
  // Texts and attributes are evaluated once; columns are read faster twice than joined with the repeats of all events.
  const isCheap = filter.terms.length + filter.clauses.length === 0
  const { sql } = isCheap ? cheapSql : onceSql
  return {
    sql: sql.replaceAll(/\/\*([a-z ]+)\*\//g, (_, name: string) => parts[name] ?? ''),
    params: {
      ...repeated.params,
      from_ms: begun,
      to_ms: toMs,
      ...Object.assign({}, ...[...conditions, ...expressions].map(({ params }) => params)),
    },
  }
}
