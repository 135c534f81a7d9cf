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

import { statement, type Statement } from '../clickhouse/statement.js'
import type { Condition } from './bind.js'
import { toConditions, type Matches } from './conditions.js'
import type { EventFilter } from './filter.js'
import { MAX_AHEAD_MS } from './range-rows.js'
import { NO_HOURS, type WholeHours } from './whole-hours.js'

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

const begunSql = statement<Params, never>('event_begun_rows')
const repeatSql = statement<Params, never>('event_repeat_rows')
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

/** An event by its place in the table, which is sorted by time and id. */
export interface Place {
  readonly id: number
  readonly ts_ms: number
}

/** The conditions on some events: on their places, by which ClickHouse finds them, and on the ids of their repeats. */
const amongPlaces = (places: readonly Place[]) => ({
  conditions:
    places.length === 0
      ? [{ sql: '0', params: {} }]
      : [
          {
            sql: 'ts IN arrayMap(ms -> fromUnixTimestamp64Milli(ms), {few_ms:Array(Int64)}) AND id IN {few:Array(UInt64)}',
            params: { few_ms: places.map((one) => one.ts_ms), few: places.map((one) => one.id) },
          },
        ],
  repeats: places.length === 0 ? 'AND 0' : 'AND id IN {few:Array(UInt64)}',
})

/** What the rows of a range are made from. */
interface Matching {
  /** The matches of the dictionaries in the range. */
  readonly found: Matches
  /** SQL of values of a row of `events`, which become the columns k0, k1 … */
  readonly expressions: readonly Condition[]
}

interface MatchingEvents extends Matching {
  /** Their events are counted elsewhere. */
  readonly hours: WholeHours
}

interface MatchingOccurrences extends Matching {
  /** All events that match, when they are known. */
  readonly places: readonly Place[] | undefined
}

/** The events of a range as a statement for a FROM clause, with the columns at, occurrences, begun (1), and the expressions. */
export function eventRows(
  question: RangeQuestion,
  { hours, ...matching }: MatchingEvents,
): Condition {
  const conditions = toConditions(question.filter, { ...matching, endMs: question.endMs })
  const { sql, params } = withParts([begunSql], question, { ...matching, conditions, repeats: '' })
  return { sql, params: { ...params, hours_from: hours.fromS, hours_until: hours.untilS } }
}

/**
 * The occurrences of a range as a statement for a FROM clause, with the columns at, occurrences, begun (1 for an event that was not
 * counted yet), and the expressions.
 */
export function occurrenceRows(
  question: RangeQuestion,
  { places, ...matching }: MatchingOccurrences,
): Condition {
  const { filter, endMs } = question
  const few = places === undefined ? null : amongPlaces(places)
  const conditions = few?.conditions ?? toConditions(filter, { ...matching, endMs })
  const parts = { ...matching, conditions, repeats: few?.repeats ?? '' }
  // Texts and attributes are evaluated once; columns are read faster twice than joined with the repeats of all events.
  const isCheap = few === null && filter.terms.length + filter.clauses.length === 0
  const { sql, params } = withParts(isCheap ? [begunSql, repeatSql] : [onceSql], question, parts)
  const { fromS: hours_from, untilS: hours_until } = NO_HOURS
  return { sql, params: isCheap ? { ...params, hours_from, hours_until } : params }
}

interface Parts extends Pick<Matching, 'expressions'> {
  readonly conditions: readonly Condition[]
  /** A condition on the repeats. */
  readonly repeats: string
}

function withParts(
  statements: readonly Statement<Params, never>[],
  range: RangeQuestion,
  { conditions, expressions, repeats }: Parts,
): Condition {
  const repeated = repeatedWithin(range)
  const parts: Readonly<Record<string, string>> = {
    conditions: and(conditions),
    expressions: expressions.map(({ sql }, i) => `, ${sql} AS k${i}`).join(''),
    names: expressions.map((_, i) => `, k${i}`).join(''),
    repeated: `AND ${repeated.sql}`,
    repeats,
  }
  const sql = statements.map((one) => one.sql).join('\nUNION ALL\n')
  return {
    sql: sql.replaceAll(/\/\*([a-z]+)\*\//g, (_, name: string) => parts[name] ?? ''),
    params: {
      ...repeated.params,
      from_ms: beginningMs(range),
      to_ms: range.toMs,
      ...Object.assign({}, ...[...conditions, ...expressions].map(({ params }) => params)),
    },
  }
}
