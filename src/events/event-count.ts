/*
 * The number of events of a time range. `template_stats` counts the events of each hour by source and template. It does not count
 * them by severity or priority, but it has the occurrences of each. If all occurrences of a template have the same
 * severity, so do all its events. As soon as one template has several severities, all events of the range are read and
 * counted, which costs less than to look up the events of that template alone (bench/NOTES.md).
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
  /** The number of templates of which only some occurrences have the severities and priorities. */
  readonly mixed: number
}

const begunSql = statement<Params, { readonly events: number }>('event_begun')
const hoursSql = statement<Params, HourRow>('event_begun_hours')

const NO_EVENTS: HourRow = { events: 0, mixed: 0 }

interface Known {
  /** The dictionary matches in the range. */
  readonly found: Matches
  /** Events from before this time may have been dropped. */
  readonly keptMs: number
}

export async function countEvents(
  store: Pick<Store, 'query'>,
  question: RangeQuestion,
  { found, keptMs }: Known,
  options: RequestOptions,
): Promise<number> {
  const hours = wholeHours(question, keptMs)
  const counting = readHours(store, { filter: question.filter, hours }, options)
  const isCounted = !hasCounters(question.filter) || (await counting).mixed === 0
  const rows = eventRows(question, { found, hours: isCounted ? hours : NO_HOURS, expressions: [] })
  const begun = { ...begunSql, sql: begunSql.sql.replace('/*rows*/', () => rows.sql) }
  const [ofHours, [row]] = await Promise.all([
    isCounted ? counting : NO_EVENTS,
    store.query(begun, rows.params, options),
  ])
  return ofHours.events + (row?.events ?? 0)
}

const hasCounters = ({ severities, priorities }: EventFilter): boolean =>
  severities !== null || priorities !== null

async function readHours(
  store: Pick<Store, 'query'>,
  { filter, hours }: { readonly filter: EventFilter; readonly hours: WholeHours },
  options: RequestOptions,
): Promise<HourRow> {
  if (hours === NO_HOURS) return NO_EVENTS
  const params = {
    ...toCounters(filter),
    hours_from: hours.fromS,
    hours_until: hours.untilS,
    sources: filter.sources ?? [],
    template_ids: (filter.templateIds ?? []).map(toTemplateNumber),
  }
  const [row] = await store.query(hoursSql, params, options)
  return row ?? NO_EVENTS
}
