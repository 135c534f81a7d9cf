import type { KpiCounts, KpiPeriod, SourceDay } from '../model/kpi.js'
import { alignDown } from '../model/window.js'
import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { TemplateDirectory } from '../templates/directory.js'
import { mergedIds } from './template-stats.js'
import { HOUR_S, DAY_S } from '../model/time.js'

interface SeriesRow {
  readonly by_source: 0 | 1
  /** A second since 1970, or the length of a span in seconds. */
  readonly span: number
  readonly is_before: 0 | 1
  readonly named: string
  readonly n: number
  readonly errors: number
  readonly criticals: number
  readonly first: number
}

type TotalsRow = {
  readonly events: number
  readonly occurrences: number
  readonly errors: number
  readonly routine: number
  readonly routine_occurrences: number
  readonly unsure: number
}

/** Times are in seconds since 1970. */
type SeriesParams = {
  readonly recent: number
  readonly hour_1: number
  readonly hour_2: number
  readonly day_1: number
  readonly day_2: number
  readonly stop: number
  readonly hours_until: number
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly sources: readonly string[]
}

const SERIES = [
  statement<SeriesParams, SeriesRow>('kpi_seconds'),
  statement<SeriesParams, SeriesRow>('kpi_minutes'),
  statement<SeriesParams, SeriesRow>('kpi_hours'),
]
const totalsSql = statement<Record<string, never>, TotalsRow>('kpi_totals')
const deadSql = statement<
  { readonly since_ms: number },
  { readonly total: number; readonly recent: number }
>('kpi_dead_letters')
const topErrorsSql = statement<
  {
    readonly from: number
    readonly to: number
    readonly merged: readonly bigint[]
    readonly into: readonly bigint[]
    readonly limit: number
  },
  { readonly template: string; readonly errors: number }
>('kpi_top_errors')

/** More than the snapshot shows: ties are ordered by text and unknown templates are left out. */
const TOP_ERRORS = 50
const SPARKLINE_MINUTES = 7
/** The statements run in parallel, so none gains by a second thread. */
const ONE_THREAD = { max_threads: 1 }
/** A number up to this is the length of a span, a greater one a timestamp. */
const LONGEST_SPAN = 2 * DAY_S

/**
 * Reads all counts in one round of parallel statements.
 *
 * @param sources those whose last 24 h are counted one by one
 */
export async function readKpiCounts(
  store: Store,
  directory: Pick<TemplateDirectory, 'redirects'>,
  { nowMs, sources }: { readonly nowMs: number; readonly sources: readonly string[] },
): Promise<KpiCounts> {
  const now = Math.floor(nowMs / 1000)
  const merged = mergedIds(directory)
  const bounds = toBounds(now)
  const options = { settings: ONE_THREAD }
  const [parts, totals, dead, errors] = await Promise.all([
    Promise.all(SERIES.map((sql) => store.query(sql, { ...bounds, sources }, options))),
    store.query(totalsSql, {}, options),
    store.query(deadSql, { since_ms: nowMs - DAY_S * 1000 }, options),
    store.query(
      topErrorsSql,
      { from: now + 1 - DAY_S, to: now, ...merged, limit: TOP_ERRORS },
      options,
    ),
  ])
  const series = parts.flat()
  return {
    ...toWindows(series, now),
    stored: toStored(one(totals)),
    deadLetters: { total: one(dead).total, lastDay: one(dead).recent },
    sources: toSources(series),
    topErrors: errors.map(({ template, errors: count }) => ({ templateId: template, count })),
  }
}

/** Where the windows that end after a second begin. */
function toBounds(now: number): Omit<SeriesParams, 'sources'> {
  const stop = now + 1
  const starts = {
    hour_1: stop - HOUR_S,
    hour_2: stop - 2 * HOUR_S,
    day_1: stop - DAY_S,
    day_2: stop - 2 * DAY_S,
  }
  return {
    ...starts,
    stop,
    recent: alignDown(now, 60) - (SPARKLINE_MINUTES - 1) * 60,
    hours_until: alignDown(starts.hour_2, HOUR_S),
    minutes: Object.values(starts).map((start) => alignDown(start, 60)),
    hours: [starts.day_1, starts.day_2].map((start) => alignDown(start, HOUR_S)),
  }
}

/** An aggregate without GROUP BY always has one row. */
function one<Row>(rows: readonly Row[]): Row {
  const [row] = rows
  if (row === undefined) throw new Error('bug: an aggregate returned no row')
  return row
}

const toStored = ({ routine_occurrences, ...row }: TotalsRow): KpiCounts['stored'] => ({
  ...row,
  routineOccurrences: routine_occurrences,
})

type Windows = Pick<KpiCounts, 'lastMinute' | 'last5Minutes' | 'hour' | 'day' | 'sparkline'>

function toWindows(rows: readonly SeriesRow[], now: number): Windows {
  const spans = rows.filter((row) => row.by_source === 0)
  const seconds = spans.filter((row) => row.span > LONGEST_SPAN)
  const since = (second: number): Sums => sumOf(seconds.filter((row) => row.span >= second))
  const span = (length: number): Sums => sumOf(spans.filter((row) => row.span === length))
  // The span of the hour excludes the last seven minutes.
  const hour = plus(sumOf(seconds), span(HOUR_S))
  const hourBefore = span(2 * HOUR_S)
  const day = plus(plus(hour, hourBefore), span(DAY_S))
  const minute = since(now + 1 - 60)
  const runningMinute = alignDown(now, 60)
  return {
    lastMinute: { events: minute.n, errors: minute.errors },
    last5Minutes: since(now + 1 - 300).n,
    hour: toPeriod(hour, hourBefore),
    day: { ...toPeriod(day, span(2 * DAY_S)), criticals: day.criticals, p1: day.first },
    sparkline: Array.from({ length: SPARKLINE_MINUTES }, (_, i) => {
      const start = runningMinute - (SPARKLINE_MINUTES - 1 - i) * 60
      return sumOf(seconds.filter((row) => alignDown(row.span, 60) === start)).n
    }),
  }
}

type Sums = Pick<SeriesRow, 'n' | 'errors' | 'criticals' | 'first'>

const NOTHING: Sums = { n: 0, errors: 0, criticals: 0, first: 0 }

const plus = (a: Sums, b: Sums): Sums => ({
  n: a.n + b.n,
  errors: a.errors + b.errors,
  criticals: a.criticals + b.criticals,
  first: a.first + b.first,
})

const sumOf = (rows: readonly Sums[]): Sums => rows.reduce<Sums>(plus, NOTHING)

const toPeriod = (last: Sums, before: Sums): KpiPeriod => ({
  events: last.n,
  eventsBefore: before.n,
  errors: last.errors,
  errorsBefore: before.errors,
})

function toSources(rows: readonly SeriesRow[]): ReadonlyMap<string, SourceDay> {
  const days = new Map<string, SourceDay>()
  for (const { by_source, is_before, named, n, errors, first } of rows) {
    if (by_source === 0 || is_before === 1 || named === '' || n === 0) continue
    const day = days.get(named) ?? { occurrences: 0, errors: 0, p1: 0 }
    days.set(named, {
      occurrences: day.occurrences + n,
      errors: day.errors + errors,
      p1: day.p1 + first,
    })
  }
  return days
}
