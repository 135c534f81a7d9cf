/* The values of metrics over the window of a rule, which are asked for at each of its times. */

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
  { readonly group_values: readonly string[]; readonly value: number }
>('alert_values')

/** @returns the values of the last window that ended in the range, by its last slot; none where none ended in it */
export async function countByValues(
  deps: CountDeps & { readonly store: Pick<Store, 'query'> },
  { counter, groupBy, everyMs, maxAgeMs }: Asked,
  asked: { readonly fromMs: number; readonly toMs: number; readonly options: RequestOptions },
): Promise<readonly Count[]> {
  const endSlot = Math.floor(asked.toMs / everyMs)
  if (endSlot === Math.floor(asked.fromMs / everyMs)) return []
  const endMs = endSlot * everyMs
  const redirects = deps.redirects()
  const groups = bound('group', (bind) => groupsSql(groupBy, bind, redirects))
  const metric = bound('metric', (bind) =>
    numberSql(counter.of, attributeNumber(counter.attribute, bind)),
  )
  const condition = bound('where', (bind) =>
    rowCondition(deps.resolve(counter.query), { bind, endMs, redirects }),
  )
  const sql = valuesSql.sql
    .replace('/*groups*/', () => groups.sql)
    .replace('/*metric*/', () => metric.sql)
    .replace('/*condition*/', () => condition.sql)
  const range = {
    from_ms: endMs - counter.windowMs,
    to_ms: endMs,
    max_age_s: maxAgeMs / 1000,
  }
  const params = { ...range, ...groups.params, ...metric.params, ...condition.params }
  const rows = await deps.store.query({ ...valuesSql, sql }, params, asked.options)
  return rows.map(({ group_values: group, value }) => ({ slot: endSlot - 1, group, count: value }))
}
