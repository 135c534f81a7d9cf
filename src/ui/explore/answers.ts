import { call, pathWith } from '../lib/api.js'
import type { Span } from '../lib/time.js'
import type { Counted, Page, Source } from './rows.js'

export interface Histogram {
  /** The query line. */
  readonly line: string
  readonly start: string
  readonly end: string
  readonly step_s: number
  readonly total: number
  readonly unique_events: number
  readonly by: string | null
  /** The most frequent values of the whole range. */
  readonly values: readonly { readonly value: string; readonly count: number }[]
  readonly buckets: readonly {
    readonly t: string
    readonly total: number
    readonly values: Readonly<Record<string, number>>
  }[]
  readonly answered_from: 'rollup' | 'events'
  /** Later than the start only when the whole range would have taken too long. */
  readonly complete_from: string
}

export interface FacetReply {
  readonly total: number
  readonly facets: readonly {
    readonly field: string
    readonly distinct: number
    readonly values: readonly { readonly value: string; readonly count: number }[]
  }[]
}

/** The fields whose values are shown without a click, because rollups have their counts. */
export const OPEN_AT_FIRST = ['severity', 'priority', 'source', 'host'] as const
const TOP_VALUES = 8
/** The most values that are shown; a query finds others. */
export const MOST_VALUES = 100

/** @param fields their names, separated by commas */
export const askFacet = (
  run: Run,
  fields: string,
  { top = TOP_VALUES }: { readonly top?: number },
  signal: AbortSignal,
): Promise<FacetReply> =>
  call<FacetReply>(pathWith('/api/logs/facets', { ...runParams(run), fields, top }), { signal })

export const askFacets = (run: Run, signal: AbortSignal): Promise<FacetReply> =>
  askFacet(run, [...OPEN_AT_FIRST, 'template'].join(), {}, signal)

export interface FieldInfo {
  /** The name in the query language. */
  readonly field: string
  readonly kind: 'builtin' | 'attribute'
  readonly type: string
  /** The share of events that have the attribute; null for a built-in field. */
  readonly share: number | null
  readonly examples: readonly unknown[]
}

export interface FieldsReply {
  readonly items: readonly FieldInfo[]
}

/** A query with absolute times. */
export interface Run {
  readonly line: string
  readonly span: Span
}

const iso = (ms: number): string => new Date(ms).toISOString()

export const runParams = ({ line, span }: Run) => ({
  q: line,
  start_time: iso(span.fromMs),
  // The API includes the end.
  end_time: iso(span.toMs - 1),
})

export const askFields = (run: Run, signal: AbortSignal): Promise<FieldsReply> =>
  call<FieldsReply>(pathWith('/api/logs/fields', runParams(run)), { signal })

export type ExportFormat = 'ndjson' | 'csv' | 'txt'

/** The address of a file with all events of a run. */
export const exportPath = (run: Run, format: ExportFormat): string =>
  pathWith('/api/logs/export', { ...runParams(run), format })

interface HistogramOptions {
  readonly by?: string
  readonly buckets?: number
  readonly count?: 'occurrences' | 'events'
}

export async function askHistogram(
  run: Run,
  options: HistogramOptions,
  signal?: AbortSignal,
): Promise<Histogram> {
  const path = pathWith('/api/logs/histogram', { ...runParams(run), ...options })
  const reply = await call<Omit<Histogram, 'line'>>(path, signal === undefined ? {} : { signal })
  return { ...reply, line: run.line }
}

const HOUR_MS = 3_600_000

/** The number of buckets. A rollup counts events by whole hours; a span of some hours has at most one bucket more. */
function bucketsOf({ fromMs, toMs }: Span): number {
  const hours = Math.ceil((toMs - fromMs) / HOUR_MS) + 1
  return hours < 4 ? 300 : Math.min(hours, 300)
}

/** Queries how many events there are, and their distribution over time. */
export async function askCounts(run: Run, signal?: AbortSignal): Promise<Counted> {
  const asked = { count: 'events', buckets: bucketsOf(run.span) } as const
  const { buckets, step_s: step, unique_events: total } = await askHistogram(run, asked, signal)
  return {
    total,
    buckets: buckets.map((bucket) => {
      const fromMs = Math.max(Date.parse(bucket.t), run.span.fromMs)
      const toMs = Math.min(Date.parse(bucket.t) + step * 1000, run.span.toMs)
      return { fromMs, toMs, count: bucket.total }
    }),
  }
}

const PAGE = 200
/** The most characters of a message in a row. */
export const ROW_MESSAGE = 1000

export const rowSource = ({ line, span }: Run, signal: AbortSignal): Source => ({
  page: (toMs, cursor) => {
    const part = { fromMs: span.fromMs, toMs: Math.min(toMs, span.toMs) }
    const shown = { limit: PAGE, message_cut: ROW_MESSAGE, cursor }
    const params = { ...runParams({ line, span: part }), ...shown }
    return call<Page>(pathWith('/api/logs', params), { signal })
  },
  counts: async ({ fromMs, toMs }) =>
    (await askCounts({ line, span: { fromMs, toMs } }, signal)).buckets,
})
