import { mapped, type Arrival, type RowContext } from '../events/row-condition.js'
import { HOUR_MS } from '../model/time.js'

const HOUR_S = HOUR_MS / 1_000

interface UnseenContext extends Pick<RowContext, 'bind' | 'redirects'> {
  readonly arrival: Arrival
  /** The end of the range of arrivals. */
  readonly endMs: number
}

/**
 * SQL of whether the template of a row is new: without an event in the k hours that end an hour
 * before the row's own hour, by the hourly rollup. A template seen in hour s is therefore not new
 * in the hours s + 2 to s + 1 + k. Of the hours before the range only the last one with the
 * template matters.
 */
export function unseen(forMs: number, { bind, redirects, arrival, endMs }: UnseenContext): string {
  const root = mapped('template_id', redirects, bind)
  const k = Math.ceil(forMs / HOUR_MS)
  const first = Math.floor(arrival.fromMs / HOUR_MS)
  const last = Math.floor((endMs - 1) / HOUR_MS)
  const number = (value: number): string => bind('Int64', value)
  const from = number((first - 1 - k) * HOUR_S)
  const tooSoon = `range(greatest(seen + 2, ${number(first)}), least(seen + 2 + ${number(k)}, ${number(last + 1)}))`
  const hour = (time: string): string => `toInt64(intDiv(toUnixTimestamp(${time}), ${HOUR_S}))`
  return (
    `template_id != 0 AND (${root}, ${hour(arrival.sql)}) NOT IN (` +
    `SELECT root, arrayJoin(${tooSoon}) FROM (SELECT ${root} AS root, max(${hour('t')}) AS seen FROM template_stats ` +
    `WHERE t >= toDateTime(${from}, 'UTC') AND t < toDateTime(${number((last - 1) * HOUR_S)}, 'UTC') ` +
    `AND arrival >= toStartOfMonth(toDateTime(${from}, 'UTC')) ` +
    `GROUP BY root, greatest(${hour('t')}, ${number(first - 2)})))`
  )
}
