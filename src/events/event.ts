import { wholeMessage } from '../model/stored-message.js'
import { wholeTags } from '../model/stored-tags.js'
import { AppError } from '../model/errors.js'
import type { EventRecord, ListedEvent, Priority, PrioritySource } from '../model/event.js'
import type { Store } from '../clickhouse/client.js'
import { ANY_TIME, type Arrival, createArrivals } from './event-arrivals.js'
import { END_MS, type ListedRow } from './range-rows.js'
import { statement } from '../clickhouse/statement.js'
import { DAY_MS } from '../model/time.js'

interface EventRow extends ListedRow {
  readonly received_ms: number
  readonly auto_priority: Priority
  readonly priority_source: PrioritySource
  readonly confidence: number
  readonly model_version: string
  readonly summary: string
  readonly dedup_key: string
}

/** Occurrences of one timestamp that a correction moves from one priority to another. */
export interface CountedUnder {
  readonly tsMs: number
  readonly priority: Priority
  readonly n: number
}

const byIdSql = statement<
  { readonly id: number; readonly arrived_ms: number; readonly arrived_until_ms: number },
  EventRow
>('event_by_id')
interface Repeats {
  readonly id: number
  /** Repeats within the time range. */
  readonly repeats: number
  /** Repeats in the second in which the time range begins, when it begins within a second. */
  readonly repeats_cut: number
  readonly last_ms: number
}

const repeatsSql = statement<
  {
    readonly ids: readonly number[]
    readonly arrived_ms: number
    readonly from_ms: number
    readonly to_ms: number
  },
  Repeats
>('event_repeats')
const countedSql = statement<
  { readonly id: number },
  { readonly t_ms: number; readonly priority: Priority; readonly counted: number }
>('event_counted')

/** Occurrences outside this time range are not counted. */
interface CountedRange {
  readonly fromMs: number
  /** Exclusive; null for no bound. */
  readonly toMs: number | null
}

const ANY_RANGE: CountedRange = { fromMs: 0, toMs: null }

/** A repeat may arrive before the event it repeats, by less than this. */
const MAX_EARLY_MS = DAY_MS
/** Reading a few rows takes less time than starting a second thread. */
const ONE_THREAD = { max_threads: 1 }

const toOptions = (signal: AbortSignal | undefined) => ({
  settings: ONE_THREAD,
  ...(signal === undefined ? {} : { signal }),
})

/** Reads single events by id, and the repeats of events. */
export function createEventReader(store: Pick<Store, 'query'>) {
  const arrivals = createArrivals(store)

  const rowOf = async (
    id: number,
    { fromMs, toMs }: Arrival,
    signal: AbortSignal | undefined,
  ): Promise<EventRow | undefined> => {
    const params = { id, arrived_ms: fromMs, arrived_until_ms: toMs }
    return (await store.query(byIdSql, params, toOptions(signal)))[0]
  }

  /** @param arrivedMs the earliest arrival of the events */
  const repeatsOf = (
    ids: readonly number[],
    arrivedMs: number,
    signal: AbortSignal | undefined,
    { fromMs, toMs }: CountedRange = ANY_RANGE,
  ): Promise<readonly Repeats[]> => {
    const params = {
      ids,
      arrived_ms: Math.max(0, arrivedMs - MAX_EARLY_MS),
      from_ms: fromMs,
      to_ms: Math.min(toMs ?? END_MS, END_MS),
    }
    return store.query(repeatsSql, params, toOptions(signal))
  }

  return {
    repeatsOf,

    /** @returns null when there is no such event */
    get: async (id: number, signal?: AbortSignal): Promise<EventRecord | null> => {
      for (const arrival of await arrivals.guesses(id)) {
        const [row, [repeats]] = await Promise.all([
          rowOf(id, arrival, signal),
          repeatsOf([id], arrival.fromMs, signal),
        ])
        if (row !== undefined) return toEvent(row, repeats)
      }
      return null
    },

    /** The occurrences of the event by timestamp and priority, those of its first row included. */
    counted: async (id: number): Promise<readonly CountedUnder[]> => {
      const [row, repeats] = await Promise.all([
        rowOf(id, ANY_TIME, undefined),
        store.query(countedSql, { id }),
      ])
      if (row === undefined)
        throw new AppError('not_found', 'there is no such event', { details: { event_id: id } })
      const first = { tsMs: row.ts_ms, priority: row.auto_priority, n: row.n }
      const others = repeats.map((r) => ({
        // Repeats are stored to the second, and none is earlier than the event.
        tsMs: Math.max(r.t_ms, row.ts_ms),
        priority: r.priority,
        n: r.counted,
      }))
      return [first, ...others]
    },
  }
}

/** @param fromMs where the range begins in which occurrences are counted */
export function toListed(row: ListedRow, repeated: Repeats | undefined, fromMs = 0): ListedEvent {
  // A repeat in the first second of its event has the event's time.
  const hasBegun = row.ts_ms >= fromMs
  const repeats = (repeated?.repeats ?? 0) + (hasBegun ? (repeated?.repeats_cut ?? 0) : 0)
  const json = wholeTags({
    names: row.attribute_names,
    values: row.attribute_values,
    text: row.tags_text,
  })
  // The row encoder writes only JSON objects.
  const tags = json === '' ? {} : (JSON.parse(json) as Record<string, unknown>)
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
    spanId: row.span_id,
    message: wholeMessage(row.constant_text, row.variables),
    tags:
      row.correction_reason === '' ? tags : { ...tags, correction_reason: row.correction_reason },
    occurrenceCount: (hasBegun ? row.n : 0) + repeats,
  }
}

const toEvent = (row: EventRow, repeated: Repeats | undefined): EventRecord => ({
  ...toListed(row, repeated),
  receivedAtMs: row.received_ms,
  prioritySource: row.priority_source,
  confidence: row.confidence,
  modelVersion: row.model_version,
  summary: row.summary,
  dedupKey: row.dedup_key,
})
