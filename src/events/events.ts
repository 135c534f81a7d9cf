import { LRUCache } from 'lru-cache'
import { wholeMessage } from '../model/stored-message.js'
import { AppError } from '../model/errors.js'
import type { EventRecord, ListedEvent, Priority, PrioritySource } from '../model/event.js'
import type { Store } from '../clickhouse/client.js'
import { ANY_TIME, type Arrival, createArrivals } from './event-arrivals.js'
import { createEventHints } from './event-hints.js'
import { type EventQuery, type ListedRow, MAX_AHEAD_MS, pageRows } from './page.js'
import { statement } from '../clickhouse/statement.js'
import { DAY_MS } from '../model/time.js'

interface EventRow extends ListedRow {
  readonly received_ms: number
  readonly auto_priority: Priority
  readonly priority_source: PrioritySource
  readonly confidence: number
  readonly model_version: string
  readonly span_id: string
  readonly summary: string
  readonly dedup_key: string
}

/** What a correction moves: so many occurrences of one moment from one priority to another. */
export interface CountedUnder {
  readonly tsMs: number
  readonly priority: Priority
  readonly n: number
}

const byIdSql = statement<
  {
    readonly id: number
    readonly from_ms: number
    readonly to_ms: number
    readonly first_ms: number
    readonly last_ms: number
  },
  EventRow
>('event_by_id')
interface Repeats {
  readonly id: number
  readonly repeats: number
  readonly last_ms: number
}

const repeatsSql = statement<
  { readonly ids: readonly number[]; readonly arrived_ms: number },
  Repeats
>('event_repeats')
const countedSql = statement<
  { readonly id: number },
  { readonly t_ms: number; readonly priority: Priority; readonly counted: number }
>('event_counted')
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

/** A repeat may be read before what it repeats, by less than this. */
const MAX_EARLY_MS = DAY_MS
/** what reads a few rows is done before a second thread has started */
const ONE_THREAD = { max_threads: 1 }

export interface Events {
  /** Newest first; walks time ranges from the newest data backwards until the page is full. */
  page(query: EventQuery, signal?: AbortSignal): Promise<readonly ListedEvent[]>
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
 */
export function createEvents(store: Store): Events {
  const { rowOf, repeatsOf, get, noteTimes } = createLookUp(store)
  const sources = {
    answers: store,
    hints: createEventHints(store),
  }
  return {
    page: async (query, signal) => {
      const rows = await pageRows(sources, query, signal)
      const oldest = rows.at(-1)
      if (oldest === undefined) return []
      noteTimes(rows)
      const ids = rows.map(({ id }) => id)
      const repeats = await repeatsOf(ids, oldest.ts_ms - MAX_AHEAD_MS, signal)
      const byId = new Map(repeats.map((row) => [row.id, row]))
      return rows.map((row) => toListed(row, byId.get(row.id)))
    },
    get,
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

/** Where an event may be. */
interface Place {
  readonly arrival: Arrival
  /** its time; null = any */
  readonly tsMs: number | null
}

const ANYWHERE: Place = { arrival: ANY_TIME, tsMs: null }
/** the range of ClickHouse's DateTime64 */
const FIRST_MS = Date.UTC(1900, 0, 1)
const LAST_MS = Date.UTC(2299, 11, 31)
/** those of a thousand pages, in 5 MB */
const MAX_TIMES = 50_000

/** Single events by id. */
function createLookUp(store: Pick<Store, 'query'>) {
  const arrivals = createArrivals(store)
  const times = new LRUCache<number, number>({ max: MAX_TIMES })
  const toOptions = (signal: AbortSignal | undefined) => ({
    settings: ONE_THREAD,
    ...(signal === undefined ? {} : { signal }),
  })

  /**
   * Where to look, one after the other. Rows lie by their times: of hours in which very many came, late and early
   * ones mixed, an id alone tells too little, and who looks at an event has mostly seen it in a list.
   */
  const placesOf = async (id: number): Promise<readonly Place[]> => {
    const arrival = await arrivals.guess(id)
    const tsMs = times.get(id) ?? null
    return arrival === ANY_TIME && tsMs === null ? [ANYWHERE] : [{ arrival, tsMs }, ANYWHERE]
  }

  /** @param arrivedMs none of the events arrived before */
  const repeatsOf = (ids: readonly number[], arrivedMs: number, signal: AbortSignal | undefined) =>
    store.query(
      repeatsSql,
      { ids, arrived_ms: Math.max(0, arrivedMs - MAX_EARLY_MS) },
      toOptions(signal),
    )

  const rowAt = async (
    id: number,
    { arrival, tsMs }: Place,
    signal: AbortSignal | undefined,
  ): Promise<EventRow | undefined> => {
    const params = {
      id,
      from_ms: arrival.fromMs,
      to_ms: arrival.toMs,
      first_ms: tsMs ?? FIRST_MS,
      last_ms: tsMs ?? LAST_MS,
    }
    return (await store.query(byIdSql, params, toOptions(signal)))[0]
  }

  const rowOf = async (id: number): Promise<EventRow | undefined> => {
    for (const place of await placesOf(id)) {
      const row = await rowAt(id, place, undefined)
      if (row !== undefined) return row
    }
    return undefined
  }

  const get = async (id: number, signal?: AbortSignal): Promise<EventRecord | null> => {
    for (const place of await placesOf(id)) {
      const [row, [repeats]] = await Promise.all([
        rowAt(id, place, signal),
        repeatsOf([id], place.arrival.fromMs, signal),
      ])
      if (row !== undefined) return toEvent(row, repeats)
    }
    return null
  }

  return {
    repeatsOf,
    rowOf,
    get,
    /** An event keeps its time, so what was listed is found by it. */
    noteTimes: (rows: readonly ListedRow[]) => {
      for (const { id, ts_ms: tsMs } of rows) times.set(id, tsMs)
    },
  }
}

function toListed(row: ListedRow, repeated: Repeats | undefined): ListedEvent {
  const tags = row.tags === '' ? {} : (JSON.parse(row.tags) as Record<string, unknown>) // written by the encoder
  return {
    id: row.id,
    timestampMs: row.ts_ms,
    lastSeenMs: Math.max(row.ts_ms, repeated?.last_ms ?? 0),
    source: row.source,
    type: row.type,
    severity: row.severity,
    priority: row.priority,
    templateId: row.template,
    host: row.host,
    environment: row.environment,
    traceId: row.trace_id,
    message: wholeMessage(row.constant_text, row.variables),
    tags:
      row.correction_reason === '' ? tags : { ...tags, correction_reason: row.correction_reason },
    occurrenceCount: row.n + (repeated?.repeats ?? 0),
  }
}

const toEvent = (row: EventRow, repeated: Repeats | undefined): EventRecord => ({
  ...toListed(row, repeated),
  receivedAtMs: row.received_ms,
  prioritySource: row.priority_source,
  confidence: row.confidence,
  modelVersion: row.model_version,
  spanId: row.span_id,
  summary: row.summary,
  dedupKey: row.dedup_key,
})
