import { wholeMessage } from '../lib/skeleton.js'
import { AppError } from '../model/errors.js'
import {
  PRIORITIES,
  SEVERITIES,
  type EventRecord,
  type EventType,
  type Priority,
  type PrioritySource,
  type Severity,
} from '../model/event.js'
import type { RequestOptions, Store } from './client.js'
import { findSkeletons, toConditions, type Condition, type EventFilter } from './event-search.js'
import { statement, type Statement } from './statement.js'

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

interface EventRow {
  readonly id: number
  readonly ts_ms: number
  readonly received_ms: number
  readonly n: number
  readonly source: string
  readonly type: EventType
  readonly severity: Severity
  readonly priority: Priority
  readonly auto_priority: Priority
  readonly priority_source: PrioritySource
  readonly confidence: number
  readonly model_version: string
  readonly template: string
  readonly host: string
  readonly environment: string
  readonly trace_id: string
  readonly span_id: string
  readonly skeleton: string
  readonly message: string
  readonly summary: string
  readonly tags: string
  readonly dedup_key: string
  readonly correction_reason: string
}

/** What a correction moves: so many occurrences of one moment from one priority to another. */
export interface CountedUnder {
  readonly tsMs: number
  readonly priority: Priority
  readonly n: number
}

type PageParams = Readonly<Record<string, unknown>>

const pageSql = statement<PageParams, EventRow>('event_page')
const byIdSql = statement<{ readonly id: number }, EventRow>('event_by_id')
const repeatsSql = statement<
  { readonly ids: readonly number[] },
  { readonly id: number; readonly repeats: number; readonly last_ms: number }
>('event_repeats')
const countedSql = statement<
  { readonly id: number },
  { readonly t_ms: number; readonly priority: Priority; readonly counted: number }
>('event_counted')
const spanSql = statement<
  Record<string, never>,
  { readonly first_ms: number; readonly last_ms: number; readonly hours: number }
>('event_span')
const sourcesSql = statement<{ readonly ids: readonly number[] }, { readonly source: string }>(
  'event_sources',
)
const correctSql = statement<
  {
    readonly id: number
    readonly ts_ms: number
    readonly priority: Priority
    readonly reason: string
  },
  never
>('event_correct')

const hoursSql = statement<HoursParams, { readonly hour: number; readonly most: number }>(
  'event_hours',
)

interface HoursParams extends Readonly<Record<string, unknown>> {
  readonly from: number
  readonly until: number
  readonly sources: readonly string[]
  readonly limit: number
}

const HOUR_MS = 3_600_000
const HOUR_S = 3_600
/** hours that one question names; more are asked for in further ones */
const MAX_HOURS = 1000
const EMPTY_SPAN = { first_ms: 0, last_ms: 0, hours: 0 }
/** bench/flow/query.ts: most pages are full within the first hour that holds data */
const FIRST_RANGE_MS = HOUR_MS
const RANGE_GROWTH = 6

export interface Events {
  /** Newest first; walks time ranges from the newest data backwards until the page is full. */
  page(query: EventQuery, signal?: AbortSignal): Promise<readonly EventRecord[]>
  /** @returns null when there is no such event */
  get(id: number, signal?: AbortSignal): Promise<EventRecord | null>
  /** Distinct sources of those of these events that exist. */
  sourcesOf(ids: readonly number[]): Promise<readonly string[]>
  /** What the event's occurrences are counted under, the first row's included. */
  counted(id: number): Promise<readonly CountedUnder[]>
  correct(correction: {
    readonly id: number
    readonly tsMs: number
    readonly priority: Priority
    readonly reason: string
  }): Promise<void>
}

/**
 * The events table: the only reader of it.
 * @param answers what the rollups say, asked once until something is written
 */
export function createEvents(store: Store, answers: Pick<Store, 'query'> = store): Events {
  const repeatsOf = (ids: readonly number[], signal: AbortSignal | undefined) =>
    store.query(repeatsSql, { ids }, signal === undefined ? {} : { signal })

  const withRepeats = async (
    rows: readonly EventRow[],
    signal: AbortSignal | undefined,
  ): Promise<EventRecord[]> => {
    if (rows.length === 0) return []
    const repeats = await repeatsOf(
      rows.map(({ id }) => id),
      signal,
    )
    const byId = new Map(repeats.map((row) => [row.id, row]))
    return rows.map((row) => toEvent(row, byId.get(row.id)))
  }

  const rowOf = async (id: number, signal?: AbortSignal): Promise<EventRow | undefined> =>
    (await store.query(byIdSql, { id }, signal === undefined ? {} : { signal }))[0]

  return {
    page: async (query, signal) =>
      await withRepeats(await readPage({ store, answers }, query, signal), signal),
    get: async (id, signal) => {
      const [row, [repeats]] = await Promise.all([rowOf(id, signal), repeatsOf([id], signal)])
      return row === undefined ? null : toEvent(row, repeats)
    },
    sourcesOf: async (ids) =>
      ids.length === 0 ? [] : (await store.query(sourcesSql, { ids })).map(({ source }) => source),
    counted: async (id) => {
      const [row, repeats] = await Promise.all([rowOf(id), store.query(countedSql, { id })])
      if (row === undefined)
        throw new AppError('not_found', 'there is no such event', { details: { event_id: id } })
      const first = { tsMs: row.ts_ms, priority: row.auto_priority, n: row.n }
      const others = repeats.map((r) => ({
        // kept to the second; none is earlier than the first
        tsMs: Math.max(r.t_ms, row.ts_ms),
        priority: r.priority,
        n: r.counted,
      }))
      return [first, ...others]
    },
    correct: async ({ id, tsMs, priority, reason }) => {
      await store.change(correctSql.sql, { id, ts_ms: tsMs, priority, reason })
    },
  }
}

async function readPage(
  { store, answers }: { readonly store: Store; readonly answers: Pick<Store, 'query'> },
  query: EventQuery,
  signal: AbortSignal | undefined,
): Promise<EventRow[]> {
  const options = signal === undefined ? {} : { signal }
  const [[span], conditions] = await Promise.all([
    answers.query(spanSql, {}, options),
    conditionsOf(store, query, options),
  ])
  const rows: EventRow[] = []
  for await (const range of ranges(
    query,
    span ?? EMPTY_SPAN,
    hoursByRollup(answers, query, signal),
  )) {
    const narrowed = range.hours === null ? conditions : [...conditions, withinHours(range.hours)]
    const params = {
      from_ms: range.fromMs,
      to_ms: range.toMs,
      limit: query.limit - rows.length,
      ...Object.assign({}, ...narrowed.map((condition) => condition.params)),
    }
    rows.push(...(await store.query(withConditions(pageSql, narrowed), params, options)))
    if (rows.length >= query.limit) break
  }
  return rows
}

async function conditionsOf(
  store: Store,
  { filter, after }: EventQuery,
  options: RequestOptions,
): Promise<readonly Condition[]> {
  const skeletons = await findSkeletons(store, filter.search, options)
  return [...toConditions(filter, skeletons), ...toPosition(after)]
}

const withConditions = (
  { name, sql }: Statement<PageParams, EventRow>,
  conditions: readonly Condition[],
): Statement<PageParams, EventRow> => ({
  name,
  sql: sql.replace('/*conditions*/', () =>
    conditions.map((condition) => `AND ${condition.sql}`).join('\n    '),
  ),
})

const toPosition = (after: EventPosition | null): readonly Condition[] =>
  after === null
    ? []
    : [
        {
          sql:
            '(ts < fromUnixTimestamp64Milli({after_ms:Int64}) OR' +
            ' (ts = fromUnixTimestamp64Milli({after_ms:Int64}) AND id < {after_id:UInt64}))',
          params: { after_ms: after.tsMs, after_id: after.id },
        },
      ]

interface TimeRange {
  /** inclusive */
  readonly fromMs: number
  /** exclusive */
  readonly toMs: number
  /** the only hours in it that can hold matches, s since 1970; null = any */
  readonly hours: readonly number[] | null
}

/** Reads which hours before a moment can hold matches, the newest first; null when no rollup knows. */
type Planned = ((fromMs: number, toMs: number) => AsyncGenerator<readonly number[]>) | null

/**
 * Time ranges from the newest backwards, without gaps but those that hold no match: the newest hour, then
 * the hours that the rollups name, or else ranges of which each is longer than the one before.
 */
async function* ranges(
  query: EventQuery,
  span: typeof EMPTY_SPAN,
  planned: Planned,
): AsyncGenerator<TimeRange> {
  if (span.hours === 0) return
  const first = Math.max(query.fromMs, span.first_ms)
  let toMs = Math.min(query.toMs ?? Number.MAX_SAFE_INTEGER, span.last_ms + HOUR_MS)
  if (query.after !== null) toMs = Math.min(toMs, query.after.tsMs + 1)
  for (let lengthMs = FIRST_RANGE_MS; toMs > first; lengthMs *= RANGE_GROWTH) {
    const fromMs = Math.max(first, toMs - lengthMs)
    yield { fromMs, toMs, hours: null }
    toMs = fromMs
    if (planned === null || toMs <= first) continue
    for await (const hours of planned(first, toMs)) {
      const oldest = Math.min(...hours) * 1000
      yield { fromMs: Math.max(first, oldest), toMs, hours }
      toMs = Math.max(first, oldest)
    }
    return
  }
}

/** What the hourly rollup can tell of a filter: it counts by source, severity and priority. */
function hoursByRollup(
  answers: Pick<Store, 'query'>,
  { filter, limit }: EventQuery,
  signal: AbortSignal | undefined,
): Planned {
  const { severities, priorities, sources } = filter
  if (severities.length === 0 && priorities.length === 0 && sources === null) return null
  const isWanted = (wanted: readonly string[], one: string): 0 | 1 =>
    wanted.length === 0 || wanted.includes(one) ? 1 : 0
  const counters = Object.fromEntries([
    ...SEVERITIES.map((one) => [one.toLowerCase(), isWanted(severities, one)]),
    ...PRIORITIES.map((one) => [one.toLowerCase(), isWanted(priorities, one)]),
  ])
  const options = signal === undefined ? {} : { signal }
  return async function* (fromMs, toMs) {
    const from = Math.floor(fromMs / HOUR_MS) * HOUR_S
    for (let until = Math.ceil(toMs / HOUR_MS) * HOUR_S, wanted = limit; until > from;) {
      const params = { ...counters, from, until, sources: sources ?? [], limit: MAX_HOURS }
      const found = await answers.query(hoursSql, params, options)
      for (let at = 0; at < found.length; wanted *= RANGE_GROWTH) {
        const hours: number[] = []
        for (let most = 0; most < wanted && at < found.length; at++) {
          hours.push(found[at]?.hour ?? 0)
          most += found[at]?.most ?? 0
        }
        yield hours
      }
      const oldest = found.at(-1)
      if (oldest === undefined || found.length < MAX_HOURS) return
      until = oldest.hour
    }
  }
}

const withinHours = (hours: readonly number[]): Condition => ({
  sql: "toStartOfHour(ts) IN (SELECT toDateTime(arrayJoin({hours:Array(UInt32)}), 'UTC'))",
  params: { hours },
})

function toEvent(
  row: EventRow,
  repeated: { readonly repeats: number; readonly last_ms: number } | undefined,
): EventRecord {
  const tags = row.tags === '' ? {} : (JSON.parse(row.tags) as Record<string, unknown>) // written by the encoder
  return {
    id: row.id,
    timestampMs: row.ts_ms,
    receivedAtMs: row.received_ms,
    lastSeenMs: Math.max(row.ts_ms, repeated?.last_ms ?? 0),
    source: row.source,
    type: row.type,
    severity: row.severity,
    priority: row.priority,
    prioritySource: row.priority_source,
    confidence: row.confidence,
    modelVersion: row.model_version,
    templateId: row.template,
    host: row.host,
    environment: row.environment,
    traceId: row.trace_id,
    spanId: row.span_id,
    message: wholeMessage(row.skeleton, row.message),
    summary: row.summary,
    tags:
      row.correction_reason === '' ? tags : { ...tags, correction_reason: row.correction_reason },
    dedupKey: row.dedup_key,
    occurrenceCount: row.n + (repeated?.repeats ?? 0),
  }
}
