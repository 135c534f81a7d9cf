/*
 * The number of events of a time range. `template_stats` counts the events of each hour by source and template. It does not count
 * them by severity or priority, but it has the occurrences of each: the events of a template whose occurrences all have one
 * severity have it too. So the events of few templates are left to be counted one by one.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { Matches } from './conditions.js'
import { toCounters } from './counted-hours.js'
import type { EventFilter } from './filter.js'
import { eventRows, type RangeQuestion } from './occurrences.js'
import { toTemplateNumber } from './row-condition.js'
import { NO_HOURS, wholeHours, type WholeHours } from './whole-hours.js'

type Params = Readonly<Record<string, unknown>>

interface HourRow {
  readonly events: number
  /** Templates of which only some occurrences have the severities and priorities, as decimal numbers. */
  readonly mixed: readonly string[]
}

const begunSql = statement<Params, { readonly events: number }>('event_begun')
const hoursSql = statement<Params, HourRow>('event_begun_hours')

const NOTHING: HourRow = { events: 0, mixed: [] }

interface Known {
  /** The matches of the dictionaries in the range. */
  readonly found: Matches
  /** Events of before may be gone. */
  readonly keptMs: number
}

export async function countEvents(
  store: Pick<Store, 'query'>,
  question: RangeQuestion,
  { found, keptMs }: Known,
  options: RequestOptions,
): Promise<number> {
  const { filter } = question
  const hours = wholeHours(question, keptMs)
  const counting = hours === NO_HOURS ? NOTHING : readHours(store, { filter, hours }, options)
  const hasMixed = filter.severities !== null || filter.priorities !== null
  const { mixed } = hasMixed ? await counting : NOTHING
  const { sql, params } = eventRows(question, { found, hours, templates: mixed, expressions: [] })
  const begun = { ...begunSql, sql: begunSql.sql.replace('/*rows*/', () => sql) }
  const [ofHours, rows] = await Promise.all([counting, store.query(begun, params, options)])
  return ofHours.events + (rows[0]?.events ?? 0)
}

async function readHours(
  store: Pick<Store, 'query'>,
  { filter, hours }: { readonly filter: EventFilter; readonly hours: WholeHours },
  options: RequestOptions,
): Promise<HourRow> {
  const params = {
    ...toCounters(filter),
    hours_from: hours.fromS,
    hours_until: hours.untilS,
    sources: filter.sources ?? [],
    template_ids: (filter.templateIds ?? []).map(toTemplateNumber),
  }
  const [row] = await store.query(hoursSql, params, options)
  return row ?? NOTHING
}
