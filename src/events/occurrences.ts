/*
 * The meaning of a time range, for all queries that count. An occurrence has the time of its
 * message, to the second: repeats are stored by second, and repeats in the second in which their
 * event began have the event's time. An occurrence counts in the range and bucket of its own time,
 * wherever its event began. An event is in a range when one of its occurrences is. Therefore the
 * counts of adjacent ranges add up to that of both, a repeat is never moved to another bucket, and
 * rollups, which count by second, agree with events. An event can be repeated only within the
 * deduplication window after its beginning, so an event that is repeated in a range began at most
 * that long before it.
 */

import { statement, type Statement } from '../clickhouse/statement.js'
import type { Condition } from './bind.js'
import { toConditions, type Matches } from './conditions.js'
import type { EventFilter } from './filter.js'
import { MAX_AHEAD_MS } from './range-rows.js'
import { NO_HOURS, type WholeHours } from './whole-hours.js'

/** The events that a query is about. */
export interface EventQuestion {
  readonly filter: EventFilter
  readonly fromMs: number
  /** Exclusive; null for no bound. */
  readonly toMs: number | null
}

/** A query over a time range with two ends. */
export interface RangeQuestion extends EventQuestion {
  readonly toMs: number
  /** The end of the requested time range, which `new` looks back from. */
  readonly endMs: number
  /** How long after its first occurrence an event can be repeated. */
  readonly windowMs: number
}

type RepeatedRange = Pick<RangeQuestion, 'fromMs' | 'toMs' | 'windowMs'>
type Params = Readonly<Record<string, unknown>>

const begunSql = statement<Params, never>('event_begun_rows')
const repeatSql = statement<Params, never>('event_repeat_rows')
const onceSql = statement<Params, never>('event_matching_rows')
const repeatedSql = statement<Params, { readonly id: number }>('event_repeated')

/** The earliest time at which events of a range can begin. */
export const beginningMs = ({ fromMs, windowMs }: RepeatedRange): number =>
  Math.max(0, fromMs - windowMs)

/** The condition that an event from before the range is repeated within it. */
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

/**
 * Conditions that select some events: by their places, which ClickHouse finds by the primary key,
 * and by the ids of their repeats.
 */
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

/** The inputs of the rows of a range. */
interface Matching {
  /** The dictionary matches in the range. */
  readonly found: Matches
  /** SQL of values of a row of `events`, as the columns k0, k1 … */
  readonly expressions: readonly Condition[]
}

interface MatchingEvents extends Matching {
  /** Whole hours whose events are counted from a rollup. */
  readonly hours: WholeHours
}

interface MatchingOccurrences extends Matching {
  /** All matching events, when they are known. */
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
 * The occurrences of a range as a statement for a FROM clause, with the columns at, occurrences,
 * begun (1 for the first occurrence of an event in the range), and the expressions.
 */
export function occurrenceRows(
  question: RangeQuestion,
  { places, ...matching }: MatchingOccurrences,
): Condition {
  const { filter, endMs } = question
  const few = places === undefined ? null : amongPlaces(places)
  const conditions = few?.conditions ?? toConditions(filter, { ...matching, endMs })
  const parts = { ...matching, conditions, repeats: few?.repeats ?? '' }
  // Conditions on texts and attributes are expensive, so they are evaluated once. Cheap columns are
  // read faster twice than joined with the repeats of all events.
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
