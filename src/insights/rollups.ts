import type { Store } from '../clickhouse/client.js'
import type { NativeBlock, Numbers } from '../clickhouse/native-reader.js'
import { statement } from '../clickhouse/statement.js'
import type { Severity } from '../model/event.js'
import { mergedIds } from '../events/template-stats.js'
import type { TemplateDirectory } from '../templates/directory.js'
import { HOUR_S } from '../model/time.js'

/** Whole hours since 1970: the first one, and the one after the last. */
export interface HourSpan {
  readonly from: number
  readonly until: number
}

/** A range of names or ids, both ends included. */
export interface KeyRange {
  readonly first: string
  readonly last: string
}

export interface SourceName {
  readonly source: string
  /** Hours since 1970 of the last hour with occurrences below P1; 0 = none. */
  readonly routine_at: number
}

export interface TemplateTotal {
  /** An id of 16 hex digits; a template that was merged into another has its own row. */
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

/** Counts of one series: for `begin` ≤ i < `end`, `n[i]` occurrences in the hour `at[i]` of a span. */
export interface HourlyCounts {
  readonly at: Numbers
  readonly n: Numbers
  readonly begin: number
  readonly end: number
}

/** Priorities that a template's events had in a span. */
export interface TemplateDay {
  /** Occurrences below P1. */
  readonly routine: number
  /** Events below P1, and those of them with a confidence under a half. */
  readonly routineEvents: number
  readonly unsureEvents: number
}

/** A span and the hours that it is compared with, hours since 1970; '' matches any source or severity. */
export interface ComparedSpans {
  readonly source: string
  readonly severity: Severity | ''
  /** Before `from`, ascending. */
  readonly earlier: readonly number[]
  readonly from: number
  readonly until: number
}

/** Occurrences of a template, source or host in a span and in the hours that it is compared with. */
export interface ContributorCounts {
  readonly name: string
  readonly before: number
  readonly during: number
  /** The number of errors among them; absent when errors are not counted separately. */
  readonly errors?: { readonly before: number; readonly during: number }
}

type Seconds = { readonly from: number; readonly until: number }
type Params = Readonly<Record<string, unknown>>
type HostRow = ContributorCounts & { readonly all_before: number; readonly all_during: number }

const latestHourSql = statement<{ readonly until: number }, { readonly hour: number }>(
  'insight_latest_hour',
)
const firstHourSql = statement<Params, { readonly hour: number }>('insight_first_hour')
const sourceNamesSql = statement<Seconds, SourceName>('insight_source_names')
const sourceHoursSql = statement<Params, unknown>('insight_source_hours')
const templateTotalsSql = statement<{ readonly since: number }, TemplateTotal>(
  'insight_template_totals',
)
const templateHoursSql = statement<Params, unknown>('insight_template_hours')
const templateDaySql = statement<Seconds, unknown>('insight_template_day')
const sourceContributionsSql = statement<Params, ContributorCounts>('insight_source_contributions')
const templateContributionsSql = statement<Params, ContributorCounts>(
  'insight_template_contributions',
)
const hostContributionsSql = statement<Params, HostRow>('insight_host_contributions')

const MAX_HOSTS = 100
const SEVERITY_COLUMNS = ['debug', 'info', 'warning', 'error', 'critical'] as const
/** With one thread the duration of a query is CPU time, which the budget of a run limits. */
const SETTINGS = { max_threads: 1 } as const

const options = (signal?: AbortSignal) => ({
  settings: SETTINGS,
  ...(signal === undefined ? {} : { signal }),
})
/** The frames of the first weeks of 1970 begin before 1970. */
const toSeconds = (hour: number): number => Math.max(0, hour) * HOUR_S
const spanParams = ({ from, until }: HourSpan): Seconds => ({
  from: toSeconds(from),
  until: toSeconds(until),
})
const comparedParams = ({ source, severity, earlier, ...span }: ComparedSpans) => ({
  source,
  severity,
  before: toSeconds(earlier[0] ?? span.from),
  earlier: earlier.map(toSeconds),
  ...spanParams(span),
})

export type Rollups = ReturnType<typeof createRollups>

/** The hourly rollups as insights read them; no statement reads the events. */
export const createRollups = (store: Store, directory: Pick<TemplateDirectory, 'redirects'>) => ({
  ...createCountReads(store),
  ...createContributionReads(store, directory),
})

const createCountReads = (store: Store) => ({
  /** @returns the newest hour with occurrences before `untilHour`, or null */
  async latestHour(untilHour: number): Promise<number | null> {
    const [row] = await store.query(latestHourSql, { until: toSeconds(untilHour) }, options())
    return row?.hour ?? null
  },
  /** @returns the first hour of a span with occurrences of a source, '' of any, or null */
  async firstHour(source: string, span: HourSpan, signal?: AbortSignal): Promise<number | null> {
    const params = { source, ...spanParams(span) }
    const [row] = await store.query(firstHourSql, params, options(signal))
    return row?.hour ?? null
  },
  /** @returns the sources with counts in the span, by name */
  sourceNames: (span: HourSpan): Promise<readonly SourceName[]> =>
    store.query(sourceNamesSql, spanParams(span), options()),
  /** @returns by source its counts in the order of SEVERITIES */
  async sourceHours(span: HourSpan, range: KeyRange) {
    const params = { ...spanParams(span), ...range }
    return sourceCounts(await store.queryColumns(sourceHoursSql, params, options()))
  },
  /** @returns the templates that occurred since an hour, by id */
  templateTotals: (sinceHour: number): Promise<readonly TemplateTotal[]> =>
    store.query(templateTotalsSql, { since: toSeconds(sinceHour) }, options()),
  async templateHours(span: HourSpan, { first, last }: KeyRange) {
    const params = { ...spanParams(span), first: BigInt(`0x${first}`), last: BigInt(`0x${last}`) }
    return templateCounts(await store.queryColumns(templateHoursSql, params, options()))
  },
  async templateDay(span: HourSpan) {
    return templateDays(await store.queryColumns(templateDaySql, spanParams(span), options()))
  },
})

const createContributionReads = (
  store: Store,
  directory: Pick<TemplateDirectory, 'redirects'>,
) => ({
  sourceContributions: (
    spans: ComparedSpans,
    signal?: AbortSignal,
  ): Promise<readonly ContributorCounts[]> =>
    store.query(sourceContributionsSql, comparedParams(spans), options(signal)),
  templateContributions: (
    spans: ComparedSpans,
    signal?: AbortSignal,
  ): Promise<readonly ContributorCounts[]> => {
    const params = { ...comparedParams(spans), ...mergedIds(directory) }
    return store.query(templateContributionsSql, params, options(signal))
  },
  /** @returns the hosts that changed most; under the name '' all others, and messages without a host */
  async hostContributions(
    spans: ComparedSpans,
    signal?: AbortSignal,
  ): Promise<readonly ContributorCounts[]> {
    const params = { ...comparedParams(spans), limit: MAX_HOSTS }
    return withOtherHosts(await store.query(hostContributionsSql, params, options(signal)))
  },
})

/** Adds counts to those of a frame that begins at the first hour of their span. */
export function addHours(
  into: Float64Array,
  startHour: number,
  { at, n, begin, end }: HourlyCounts,
): void {
  const first = Math.max(0, -startHour)
  for (let i = begin; i < end; i++) {
    const hour = first + (at[i] ?? 0)
    into[hour] = (into[hour] ?? 0) + (n[i] ?? 0)
  }
}

function sourceCounts(
  blocks: readonly NativeBlock[],
): ReadonlyMap<string, readonly HourlyCounts[]> {
  const counts = new Map<string, readonly HourlyCounts[]>()
  for (const block of blocks) {
    const { items: at, ends } = block.lists('at')
    const bySeverity = SEVERITY_COLUMNS.map((name) => block.lists(name).items)
    for (const [row, source] of block.texts('source').entries()) {
      const [begin, end] = [ends[row - 1] ?? 0, ends[row] ?? 0]
      counts.set(
        source,
        bySeverity.map((n) => ({ at, n, begin, end })),
      )
    }
  }
  return counts
}

function templateCounts(blocks: readonly NativeBlock[]): ReadonlyMap<string, HourlyCounts> {
  const counts = new Map<string, HourlyCounts>()
  for (const block of blocks) {
    const { items: at, ends } = block.lists('at')
    const n = block.lists('n').items
    for (const [row, id] of block.hexIds('template').entries())
      counts.set(id, { at, n, begin: ends[row - 1] ?? 0, end: ends[row] ?? 0 })
  }
  return counts
}

function templateDays(blocks: readonly NativeBlock[]): ReadonlyMap<string, TemplateDay> {
  const days = new Map<string, TemplateDay>()
  for (const block of blocks) {
    const routine = block.numbers('routine')
    const routineEvents = block.numbers('routine_events')
    const unsureEvents = block.numbers('unsure_events')
    for (const [row, id] of block.hexIds('template').entries())
      days.set(id, {
        routine: routine[row] ?? 0,
        routineEvents: routineEvents[row] ?? 0,
        unsureEvents: unsureEvents[row] ?? 0,
      })
  }
  return days
}

function withOtherHosts(rows: readonly HostRow[]): readonly ContributorCounts[] {
  const named = rows.filter(({ name }) => name !== '')
  const [{ all_before: before, all_during: during } = { all_before: 0, all_during: 0 }] = rows
  const sum = (of: (host: HostRow) => number): number =>
    named.reduce((all, host) => all + of(host), 0)
  return [
    ...named.map((host) => ({ name: host.name, before: host.before, during: host.during })),
    {
      name: '',
      before: before - sum((host) => host.before),
      during: during - sum((host) => host.during),
    },
  ]
}
