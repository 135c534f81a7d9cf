import type { Severity } from '../model/event.js'
import type { Store } from '../clickhouse/client.js'
import { sourceRows, templateDays, templateRows, type HourRow, type TemplateDay } from './rows.js'
import { statement } from '../clickhouse/statement.js'
import type { TemplateDirectory } from '../templates/directory.js'
import { mergedIds } from '../events/template-stats.js'
import { HOUR_S } from '../model/time.js'

/** Whole hours since 1970: the first one, and the one after the last. */
export interface HourSpan {
  readonly from: number
  readonly until: number
}

/** What tells whether an hour is as it was. */
export interface HourMark {
  /** since 1970 */
  readonly hour: number
  readonly mark: string
}

export interface SourceName {
  readonly source: string
  /** the last hour with occurrences below P1, since 1970; 0 without */
  readonly routine_at: number
}

export interface TemplateTotal {
  /** 16 hex digits, as stored: a merged one counts for itself here */
  readonly template: string
  readonly source: string
  readonly first_ms: number
  readonly last_ms: number
  readonly debug: number
  readonly info: number
  readonly warning: number
  readonly error: number
  readonly critical: number
}

/** A range of names or ids, both included. */
export interface KeyRange {
  readonly first: string
  readonly last: string
}

/** What templates counted in a span and before it; hours since 1970. */
export interface PartsQuery {
  /** '' = any */
  readonly source: string
  readonly severity: Severity | ''
  readonly before: number
  readonly from: number
  readonly until: number
}

export interface Part {
  readonly name: string
  readonly before: number
  readonly during: number
}

/** The rollups as the insight engine reads them. */
export interface InsightSeries {
  /** @returns hours since 1970; null without any data before `untilHour` */
  latestHour(untilHour: number): Promise<number | null>
  marks(span: HourSpan): Promise<readonly HourMark[]>
  /** In the order of their names. */
  sourceNames(span: HourSpan): Promise<readonly SourceName[]>
  /** The counts of a range of sources by severity, under `sourceKey`. */
  sources(span: HourSpan, range: KeyRange): Promise<Iterable<HourRow>>
  /** Templates that occurred since an hour, in the order of their ids. */
  templateTotals(sinceHour: number): Promise<readonly TemplateTotal[]>
  /** The counts of a range of templates, by their ids. */
  templates(span: HourSpan, range: KeyRange): Promise<Iterable<HourRow>>
  /** By template. */
  templateDay(span: HourSpan): Promise<ReadonlyMap<string, TemplateDay>>
  sourceParts(query: Omit<PartsQuery, 'source'>, signal?: AbortSignal): Promise<readonly Part[]>
  parts(query: PartsQuery, signal?: AbortSignal): Promise<readonly Part[]>
  /** The hosts that changed most; what the others and messages without a host counted is under the name ''. */
  hostParts(query: PartsQuery, signal?: AbortSignal): Promise<readonly Part[]>
}

type Moments = { readonly from: number; readonly until: number }
type Rows = Readonly<Record<string, unknown>>

const latestSql = statement<{ readonly until: number }, { readonly hour: number }>('insight_latest')
const marksSql = statement<Moments, HourMark>('insight_marks')
const namesSql = statement<Moments, SourceName>('insight_source_names')
const sourcesSql = statement<Rows, Rows>('insight_sources')
const totalsSql = statement<{ readonly since: number }, TemplateTotal>('insight_template_totals')
const templatesSql = statement<Rows, Rows>('insight_templates')
const daySql = statement<Moments, Rows>('insight_template_day')
const sourcePartsSql = statement<Rows, Part>('insight_source_parts')
const partsSql = statement<
  Rows,
  { readonly template: string; readonly before: number; readonly during: number }
>('insight_parts')
const hostPartsSql = statement<Rows, HostRow>('insight_host_parts')

/** a few are shown: there may be more hosts than an answer should hold */
const MAX_HOSTS = 100
/** a look has time, and is told what it took: a thread at a time, so that the time is the processor's too */
const SETTINGS = { max_threads: 1 } as const
const options = (signal?: AbortSignal) => ({
  settings: SETTINGS,
  ...(signal === undefined ? {} : { signal }),
})
const toNumber = (hex: string): bigint => BigInt(`0x${hex}`)
/** The first weeks of 1970 have frames that begin before it. */
const toSeconds = (hour: number): number => Math.max(0, hour) * HOUR_S
const toMoments = ({ from, until }: HourSpan): Moments => ({
  from: toSeconds(from),
  until: toSeconds(until),
})

export function createInsightSeries(
  store: Store,
  directory: Pick<TemplateDirectory, 'redirects'>,
): InsightSeries {
  return {
    async latestHour(untilHour) {
      const [row] = await store.query(latestSql, { until: toSeconds(untilHour) }, options())
      return row?.hour ?? null
    },
    marks: (span) => store.query(marksSql, toMoments(span), options()),
    sourceNames: (span) => store.query(namesSql, toMoments(span), options()),
    async sources(span, range) {
      const blocks = await store.queryColumns(
        sourcesSql,
        { ...toMoments(span), ...range },
        options(),
      )
      return sourceRows(blocks, Math.max(0, span.from))
    },
    templateTotals: (sinceHour) =>
      store.query(totalsSql, { since: toSeconds(sinceHour) }, options()),
    async templates(span, { first, last }) {
      const ids = { first: toNumber(first), last: toNumber(last) }
      const blocks = await store.queryColumns(
        templatesSql,
        { ...toMoments(span), ...ids },
        options(),
      )
      return templateRows(blocks, Math.max(0, span.from))
    },
    async templateDay(span) {
      return templateDays(await store.queryColumns(daySql, toMoments(span), options()))
    },
    sourceParts: (query, signal) =>
      store.query(sourcePartsSql, toSpans({ ...query, source: '' }), options(signal)),
    async parts(query, signal) {
      const params = { ...toSpans(query), ...mergedIds(directory) }
      const rows = await store.query(partsSql, params, options(signal))
      return rows.map(({ template, ...counts }) => ({ name: template, ...counts }))
    },
    async hostParts(query, signal) {
      const params = { ...toSpans(query), limit: MAX_HOSTS }
      return withOthers(await store.query(hostPartsSql, params, options(signal)))
    },
  }
}

const toSpans = ({ source, severity, before, ...span }: PartsQuery) => ({
  source,
  severity,
  before: toSeconds(before),
  ...toMoments(span),
})

type HostRow = Part & { readonly all_before: number; readonly all_during: number }

function withOthers(rows: readonly HostRow[]): readonly Part[] {
  const named = rows.filter(({ name }) => name !== '')
  const sum = (of: (part: Part) => number): number => named.reduce((all, part) => all + of(part), 0)
  const [{ all_before: before, all_during: during } = { all_before: 0, all_during: 0 }] = rows
  return [
    ...named.map((row) => ({ name: row.name, before: row.before, during: row.during })),
    {
      name: '',
      before: before - sum((part) => part.before),
      during: during - sum((part) => part.during),
    },
  ]
}
