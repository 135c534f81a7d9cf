import type { Severity } from '../model/event.js'
import type { Store } from './client.js'
import { statement } from './statement.js'
import { mergedIds, type TemplateDirectory } from './template-stats.js'

/** Whole hours since 1970: the first one, and the one after the last. */
export interface HourSpan {
  readonly from: number
  readonly until: number
}

/** Counts of hours; `at` are hours after the first of the span. */
export interface SourceHours {
  readonly source: string
  readonly at: readonly number[]
  readonly debug: readonly number[]
  readonly info: readonly number[]
  readonly warning: readonly number[]
  readonly error: readonly number[]
  readonly critical: readonly number[]
  /** the last hour with occurrences below P1, -1 without */
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

export interface TemplateHours {
  readonly template: string
  readonly at: readonly number[]
  readonly n: readonly number[]
  /** of the last 24 h: occurrences below P1, events below P1, and unsure ones of these */
  readonly routine: number
  readonly routine_events: number
  readonly unsure_events: number
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

export interface HostsQuery {
  readonly source: string
  readonly severity: Severity | ''
  /** empty = any */
  readonly templateIds: readonly string[]
  readonly beforeMs: number
  readonly fromMs: number
  readonly untilMs: number
}

/** The rollups as the insight engine reads them: in pages, so that no reply is large. */
export interface InsightSeries {
  /** @returns hours since 1970; null without any data before `untilHour` */
  latestHour(untilHour: number): Promise<number | null>
  /** A page of sources in the order of their names. @param after '' = from the first on */
  sources(span: HourSpan, after: string): Promise<readonly SourceHours[]>
  /** Templates that occurred since an hour. */
  templateTotals(sinceHour: number): Promise<readonly TemplateTotal[]>
  /** @param first and `last`: ids, both included */
  templates(span: HourSpan, first: string, last: string): Promise<readonly TemplateHours[]>
  parts(query: PartsQuery, signal?: AbortSignal): Promise<readonly Part[]>
  /** Events by host. Reads the events table, up to a bound in each span: shares are exact below it. */
  hosts(query: HostsQuery, signal?: AbortSignal): Promise<readonly Part[]>
}

type Moments = { readonly from: number; readonly until: number }

const latestSql = statement<{ readonly until: number }, { readonly hour: number }>('insight_latest')
const sourcesSql = statement<
  Moments & { readonly after: string; readonly limit: number },
  SourceHours
>('insight_sources')
const totalsSql = statement<{ readonly since: number }, TemplateTotal>('insight_template_totals')
const templatesSql = statement<
  Moments & { readonly day: number; readonly first: bigint; readonly last: bigint },
  TemplateHours
>('insight_templates')
const partsSql = statement<
  Readonly<Record<string, unknown>>,
  { readonly template: string; readonly before: number; readonly during: number }
>('insight_parts')
const hostsSql = statement<Readonly<Record<string, unknown>>, HostRow>('insight_hosts')

/** sources a query: one that is not full is the last */
export const SOURCE_PAGE = 1000
const HOUR_S = 3600
const DAY_HOURS = 24
const MAX_HOSTS = 1000
/** rows of the events table that are read for one span of one anomaly */
const HOST_ROWS = '2000000'
const options = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })
const toNumber = (hex: string): bigint => BigInt(`0x${hex}`)

export function createInsightSeries(
  store: Store,
  directory: Pick<TemplateDirectory, 'redirects'>,
): InsightSeries {
  const hostsIn = async (query: HostsQuery, span: Moments, signal: AbortSignal | undefined) => {
    const { source, severity, templateIds } = query
    const params = {
      source,
      severity,
      template_ids: templateIds.map(toNumber),
      from_ms: span.from,
      to_ms: span.until,
      limit: MAX_HOSTS,
    }
    const settings = { max_rows_to_read: HOST_ROWS, read_overflow_mode: 'break' as const }
    return await store.query(hostsSql, params, { ...options(signal), settings })
  }
  return {
    async latestHour(untilHour) {
      const [row] = await store.query(latestSql, { until: untilHour * HOUR_S })
      return row === undefined || row.hour === 0 ? null : row.hour
    },
    sources: ({ from, until }, after) =>
      store.query(sourcesSql, {
        from: from * HOUR_S,
        until: until * HOUR_S,
        after,
        limit: SOURCE_PAGE,
      }),
    templateTotals: (sinceHour) => store.query(totalsSql, { since: sinceHour * HOUR_S }),
    templates: ({ from, until }, first, last) =>
      store.query(
        templatesSql,
        {
          from: from * HOUR_S,
          until: until * HOUR_S,
          day: (until - DAY_HOURS) * HOUR_S,
          first: toNumber(first),
          last: toNumber(last),
        },
        // the table is in the order of its templates: no hash table is needed
        { settings: { optimize_aggregation_in_order: 1, max_threads: 1 } },
      ),
    async parts({ source, severity, before, from, until }, signal) {
      const moments = { before: before * HOUR_S, from: from * HOUR_S, until: until * HOUR_S }
      const params = { source, severity, ...moments, ...mergedIds(directory) }
      const rows = await store.query(partsSql, params, options(signal))
      return rows.map(({ template, ...counts }) => ({ name: template, ...counts }))
    },
    async hosts(query, signal) {
      const [before, during] = await Promise.all([
        hostsIn(query, { from: query.beforeMs, until: query.fromMs }, signal),
        hostsIn(query, { from: query.fromMs, until: query.untilMs }, signal),
      ])
      return joinHosts(before, during)
    },
  }
}

type HostRow = { readonly host: string; readonly events: number }

function joinHosts(before: readonly HostRow[], during: readonly HostRow[]): readonly Part[] {
  const parts = new Map<string, Part>()
  for (const { host, events } of before) parts.set(host, { name: host, before: events, during: 0 })
  for (const { host, events } of during)
    parts.set(host, { name: host, before: parts.get(host)?.before ?? 0, during: events })
  return [...parts.values()]
}
