import { AppError } from '../model/errors.js'
import type { EventType, Priority, PrioritySource, Severity } from '../model/event.js'
import type { Store } from './client.js'
import { toConditions, type Condition, type EventFilter } from './event-search.js'
import { statement, type Statement } from './statement.js'

/** A stored event with what was counted for it. */
export interface StoredEvent {
  readonly id: number
  readonly timestampMs: number
  readonly lastSeenMs: number
  readonly receivedAtMs: number
  readonly source: string
  readonly type: EventType
  readonly severity: Severity
  readonly priority: Priority
  readonly prioritySource: PrioritySource
  readonly confidence: number
  readonly modelVersion: string
  /** 16 hex digits, as stored: a later merge redirects it */
  readonly templateId: string
  readonly host: string
  readonly environment: string
  readonly traceId: string
  readonly spanId: string
  readonly message: string
  readonly summary: string
  readonly tags: Readonly<Record<string, unknown>>
  /** '' unless the producer brought one */
  readonly dedupKey: string
  readonly occurrenceCount: number
}

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

const HOUR_MS = 3_600_000
const EMPTY_SPAN = { first_ms: 0, last_ms: 0, hours: 0 }
/** bench/flow/query.ts: most pages are full within the first hour that holds data */
const FIRST_RANGE_MS = HOUR_MS
const RANGE_GROWTH = 6

export interface Events {
  /** Newest first; walks growing time ranges from the newest data backwards until the page is full. */
  page(query: EventQuery, signal?: AbortSignal): Promise<readonly StoredEvent[]>
  /** @returns null when there is no such event */
  get(id: number, signal?: AbortSignal): Promise<StoredEvent | null>
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

/** The events table: the only reader of it. */
export function createEvents(store: Store): Events {
  const withRepeats = async (
    rows: readonly EventRow[],
    signal: AbortSignal | undefined,
  ): Promise<StoredEvent[]> => {
    if (rows.length === 0) return []
    const options = signal === undefined ? {} : { signal }
    const repeats = await store.query(repeatsSql, { ids: rows.map((row) => row.id) }, options)
    const byId = new Map(repeats.map((row) => [row.id, row]))
    return rows.map((row) => toEvent(row, byId.get(row.id)))
  }

  const page = async (query: EventQuery, signal?: AbortSignal): Promise<StoredEvent[]> => {
    const options = signal === undefined ? {} : { signal }
    const [span] = await store.query(spanSql, {}, options)
    const conditions = [...toConditions(query.filter), ...toPosition(query.after)]
    const rows: EventRow[] = []
    for (const range of ranges(query, span ?? EMPTY_SPAN)) {
      const params = {
        from_ms: range.fromMs,
        to_ms: range.toMs,
        limit: query.limit - rows.length,
        ...Object.assign({}, ...conditions.map((condition) => condition.params)),
      }
      rows.push(...(await store.query(withConditions(pageSql, conditions), params, options)))
      if (rows.length >= query.limit) break
    }
    return await withRepeats(rows, signal)
  }

  const rowOf = async (id: number, signal?: AbortSignal): Promise<EventRow | undefined> =>
    (await store.query(byIdSql, { id }, signal === undefined ? {} : { signal }))[0]

  return {
    page,
    get: async (id, signal) => {
      const row = await rowOf(id, signal)
      return row === undefined ? null : ((await withRepeats([row], signal))[0] ?? null)
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

/** Time ranges from the newest backwards, each longer than the one before, without gaps. */
function* ranges(
  query: EventQuery,
  span: typeof EMPTY_SPAN,
): Generator<{ readonly fromMs: number; readonly toMs: number }> {
  if (span.hours === 0) return
  const first = Math.max(query.fromMs, span.first_ms)
  let toMs = Math.min(query.toMs ?? Number.MAX_SAFE_INTEGER, span.last_ms + HOUR_MS)
  if (query.after !== null) toMs = Math.min(toMs, query.after.tsMs + 1)
  for (let lengthMs = FIRST_RANGE_MS; toMs > first; lengthMs *= RANGE_GROWTH) {
    const fromMs = Math.max(first, toMs - lengthMs)
    yield { fromMs, toMs }
    toMs = fromMs
  }
}

function toEvent(
  row: EventRow,
  repeated: { readonly repeats: number; readonly last_ms: number } | undefined,
): StoredEvent {
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
    message: row.message,
    summary: row.summary,
    tags:
      row.correction_reason === '' ? tags : { ...tags, correction_reason: row.correction_reason },
    dedupKey: row.dedup_key,
    occurrenceCount: row.n + (repeated?.repeats ?? 0),
  }
}
