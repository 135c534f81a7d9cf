import type { KpiCounts, SourceDay } from '../model/kpi.js'
import type { Store } from './client.js'
import { statement } from './statement.js'
import { mergedIds, type TemplateDirectory } from './template-stats.js'

type SeriesRow = {
  readonly minute: number
  readonly minute_errors: number
  readonly five_minutes: number
  readonly hour: number
  readonly hour_before: number
  readonly hour_errors: number
  readonly hour_errors_before: number
  readonly day: number
  readonly day_before: number
  readonly day_errors: number
  readonly day_errors_before: number
  readonly day_criticals: number
  readonly day_p1: number
  readonly sparkline: readonly number[]
}

type TotalsRow = {
  readonly events: number
  readonly occurrences: number
  readonly errors: number
  readonly routine: number
  readonly routine_occurrences: number
  readonly unsure: number
}

const seriesSql = statement<{ readonly now: number }, SeriesRow>('kpi_series')
const totalsSql = statement<Record<string, never>, TotalsRow>('kpi_totals')
const deadSql = statement<
  { readonly since_ms: number },
  { readonly total: number; readonly recent: number }
>('kpi_dead_letters')
const sourcesSql = statement<
  { readonly from: number; readonly until: number; readonly sources: readonly string[] },
  SourceDay & { readonly source: string }
>('kpi_sources')
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

const DAY_S = 86_400
/** More than are shown, so that ties can be ordered by text and unknown templates left out. */
const TOP_ERRORS = 50
const SPARKLINE_MINUTES = 7

/**
 * Reads all counts in one round of parallel statements.
 *
 * @param sources whose last 24 h are wanted one by one
 */
export async function readKpiCounts(
  store: Store,
  directory: Pick<TemplateDirectory, 'redirects'>,
  { nowMs, sources }: { readonly nowMs: number; readonly sources: readonly string[] },
): Promise<KpiCounts> {
  const now = Math.floor(nowMs / 1000)
  const day = { from: now + 1 - DAY_S, until: now + 1 }
  const merged = mergedIds(directory)
  const [series, totals, dead, perSource, errors] = await Promise.all([
    store.query(seriesSql, { now }),
    store.query(totalsSql, {}),
    store.query(deadSql, { since_ms: nowMs - DAY_S * 1000 }),
    sources.length === 0 ? [] : store.query(sourcesSql, { ...day, sources }),
    store.query(topErrorsSql, { from: day.from, to: now, ...merged, limit: TOP_ERRORS }),
  ])
  return {
    ...toWindows(one(series)),
    stored: toStored(one(totals)),
    deadLetters: { total: one(dead).total, lastDay: one(dead).recent },
    sources: new Map(perSource.map(({ source, ...counts }) => [source, counts])),
    topErrors: errors.map(({ template, errors: count }) => ({ templateId: template, count })),
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

const toWindows = (
  row: SeriesRow,
): Pick<KpiCounts, 'lastMinute' | 'last5Minutes' | 'hour' | 'day' | 'sparkline'> => ({
  lastMinute: { events: row.minute, errors: row.minute_errors },
  last5Minutes: row.five_minutes,
  hour: {
    events: row.hour,
    eventsBefore: row.hour_before,
    errors: row.hour_errors,
    errorsBefore: row.hour_errors_before,
  },
  day: {
    events: row.day,
    eventsBefore: row.day_before,
    errors: row.day_errors,
    errorsBefore: row.day_errors_before,
    criticals: row.day_criticals,
    p1: row.day_p1,
  },
  // without rows the array is empty
  sparkline: Array.from({ length: SPARKLINE_MINUTES }, (_, i) => row.sparkline[i] ?? 0),
})
