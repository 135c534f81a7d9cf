import type { RowContext } from '../events/row-condition.js'
import { mapped } from '../events/row-condition.js'
import { HOUR_MS } from '../model/time.js'

const HOUR_S = HOUR_MS / 1_000

/** SQL of whether the template of a row had no event for so long before the last hour; by whole hours, from a rollup. */
export function unseen(forMs: number, { bind, endMs, redirects }: RowContext): string {
  const root = mapped('template_id', redirects, bind)
  const toHour = Math.floor((endMs - 1) / HOUR_MS) - 1
  const from = bind('Int64', (toHour - Math.ceil(forMs / HOUR_MS)) * HOUR_S)
  const to = bind('Int64', toHour * HOUR_S)
  return (
    `template_id != 0 AND ${root} NOT IN (SELECT ${root} FROM template_stats ` +
    `WHERE t >= toDateTime(${from}, 'UTC') AND t < toDateTime(${to}, 'UTC') ` +
    `AND arrival >= toStartOfMonth(toDateTime(${from}, 'UTC')))`
  )
}
