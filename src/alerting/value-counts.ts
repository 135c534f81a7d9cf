/* Reads the metric values of a rule's windows, each when its window has ended. */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { attributeNumber } from '../events/attribute-condition.js'
import { bound } from '../events/bind.js'
import { rowCondition } from '../events/row-condition.js'
import { numberSql } from '../events/number-functions.js'
import type { Count, CountDeps } from './count.js'
import { groupsSql } from './group-sql.js'
import type { Counter } from './counter.js'

interface Asked {
  readonly counter: Extract<Counter, { kind: 'value' }>
  readonly groupBy: readonly string[]
  readonly everyMs: number
  readonly maxAgeMs: number
}

const valuesSql = statement<
  Readonly<Record<string, unknown>>,
  { readonly slot: number; readonly group_values: readonly string[]; readonly value: number }
>('alert_values')

/** The statements of repeats by arrival, which is kept for two days, and by event time. */
const REPEATS =
  'SELECT arrived, repeat_arrivals.id AS repeated_id, repeat_arrivals.n AS repeated_n FROM repeat_arrivals ' +
  "WHERE arrived >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrived < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')"
const PAST_REPEATS =
  'SELECT t AS arrived, event_occurrences.id AS repeated_id, event_occurrences.n AS repeated_n FROM event_occurrences ' +
  "WHERE t >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC') " +
  "AND arrival >= toDate(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrival <= toDate(intDiv({to_ms:Int64}, 1000), 'UTC') + 1"

/** @returns the values of the windows that ended in the range, by their last slots */
export async function countByValues(
  deps: CountDeps & { readonly store: Pick<Store, 'query'> },
  { counter, groupBy, everyMs, maxAgeMs }: Asked,
  asked: {
    readonly fromMs: number
    readonly toMs: number
    readonly isPast: boolean
    readonly options: RequestOptions
  },
): Promise<readonly Count[]> {
  const first = Math.floor(asked.fromMs / everyMs)
  const end = Math.floor(asked.toMs / everyMs)
  if (first === end) return []
  const endMs = end * everyMs
  const redirects = deps.redirects()
  const groups = bound('group', (bind) => groupsSql(groupBy, bind, redirects))
  const number = bound('number', (bind) => attributeNumber(counter.attribute, bind))
  const condition = bound('where', (bind) =>
    rowCondition(deps.resolve(counter.query), { bind, endMs, redirects }),
  )
  const sql = valuesSql.sql
    .replaceAll('/*groups*/', () => groups.sql)
    .replaceAll('/*number*/', () => number.sql)
    .replaceAll('/*condition*/', () => condition.sql)
    .replaceAll('/*repeats*/', asked.isPast ? PAST_REPEATS : REPEATS)
    .replace('/*metric*/', () => numberSql(counter.of, 'number'))
  const range = {
    from_ms: (first + 1) * everyMs - counter.windowMs,
    to_ms: endMs,
    max_age_s: maxAgeMs / 1000,
    every_s: everyMs / 1000,
    first_slot: first,
    last_slot: end - 1,
    slots: counter.windowMs / everyMs,
  }
  const params = { ...range, ...groups.params, ...number.params, ...condition.params }
  const rows = await deps.store.query({ ...valuesSql, sql }, params, asked.options)
  return rows.map(({ slot, group_values: group, value }) => ({ slot, group, count: value }))
}
