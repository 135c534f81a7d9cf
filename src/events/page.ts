import type { EventType, Priority, Severity } from '../model/event.js'
import type { Store } from '../clickhouse/client.js'
import type { EventHints } from './event-hints.js'
import { timeRanges } from './event-ranges.js'
import { asOnePart, toConditions, type Condition, type EventFilter } from './event-search.js'
import { createTexts } from './event-texts.js'
import { statement, type Statement } from '../clickhouse/statement.js'
import { HOUR_MS } from '../model/time.js'

/** Where a page goes on: below this event in (time, id) order. */
export interface EventPosition {
  readonly tsMs: number
  readonly id: number
}

export interface EventQuery {
  readonly filter: EventFilter
  /** inclusive */
  readonly fromMs: number
  /** exclusive; null = no bound */
  readonly toMs: number | null
  readonly after: EventPosition | null
  readonly limit: number
}

/** What a list shows of an event. */
export interface ListedRow {
  readonly id: number
  readonly ts_ms: number
  readonly n: number
  readonly source: string
  readonly type: EventType
  readonly severity: Severity
  readonly priority: Priority
  readonly template: string
  readonly host: string
  readonly environment: string
  readonly trace_id: string
  readonly constant_text: string
  readonly variables: string
  readonly tags: string
  readonly correction_reason: string
}

type PageParams = Readonly<Record<string, unknown>>

const pageSql = statement<PageParams, ListedRow>('event_page')

/** no event is accepted that is more than a day ahead of its arrival */
export const MAX_AHEAD_MS = 25 * HOUR_MS

export interface PageSources {
  readonly answers: Pick<Store, 'query'>
  readonly hints: EventHints
}

/** Newest first; walks time ranges from the newest data backwards until the page is full. */
export async function pageRows(
  sources: PageSources,
  query: EventQuery,
  signal: AbortSignal | undefined,
): Promise<ListedRow[]> {
  const options = signal === undefined ? {} : { signal }
  const { answers, hints } = sources
  const texts = createTexts(sources, query, options)
  const rows: ListedRow[] = []
  for await (const range of timeRanges(query, {
    answers,
    hints,
    options,
    rows,
    allTexts: texts.ofAll,
  })) {
    const arrivedMs = Math.max(0, range.fromMs - MAX_AHEAD_MS)
    const ask = (conditions: readonly Condition[]) => {
      const settings = {
        ...(range.isSmall ? { max_threads: 1 } : {}),
        ...(range.isSparse === true ? { use_skip_indexes_on_data_read: 0 as const } : {}),
      }
      const params = {
        from_ms: range.fromMs,
        to_ms: range.toMs,
        arrived_ms: arrivedMs,
        limit: query.limit - rows.length,
        ...Object.assign({}, ...conditions.map((condition) => condition.params)),
      }
      return answers.query(withConditions(conditions), params, { ...options, settings })
    }
    const conditions = texts
      .of(range)
      .then((found) => [
        ...toConditions(query.filter, found),
        ...toPosition(query.after),
        ...(range.hours === null ? [] : [withinHours(range.hours)]),
      ])
    rows.push(...(await ask(await conditions)))
    if (rows.length >= query.limit) break
  }
  return rows
}

const withConditions = (conditions: readonly Condition[]): Statement<PageParams, ListedRow> => ({
  name: pageSql.name,
  sql: pageSql.sql.replace('/*conditions*/', () =>
    conditions.map((condition) => `AND ${condition.sql}`).join('\n    '),
  ),
})

/** The range ends at its time already. */
const toPosition = (after: EventPosition | null): readonly Condition[] =>
  after === null
    ? []
    : [
        asOnePart({
          sql:
            'ts < fromUnixTimestamp64Milli({after_ms:Int64}) OR' +
            ' (ts = fromUnixTimestamp64Milli({after_ms:Int64}) AND id < {after_id:UInt64})',
          params: { after_ms: after.tsMs, after_id: after.id },
        }),
      ]

const withinHours = (hours: readonly number[]): Condition => ({
  sql: "toStartOfHour(ts) IN {hours:Array(DateTime('UTC'))}",
  params: { hours },
})
