/*
 * Computes the KPI snapshot from the counts in ClickHouse (kpi-counts.ts), the alerts, the applications and the templates.
 *
 * Rates are per cent of occurrences. Trends compare the last hour and the last 24 hours with the period before. The health
 * scores of the service and of each application are those of health-score.ts. The function is pure, so equal counts give an
 * equal snapshot, and an unchanged one is not pushed again.
 */
import type { KpiCounts, KpiSnapshot, RecentAlert } from '../model/kpi.js'
import { applicationHealth, globalHealth, share } from './health-score.js'

/** The inputs of a snapshot that do not come from ClickHouse. */
export interface KpiSurroundings {
  readonly applications: readonly KpiApplication[]
  readonly alerts: {
    /** Unread alerts. */
    readonly open: number
    /** Newest first; the snapshot contains the first five. */
    readonly recent: readonly RecentAlert[]
  }
  readonly templatesKnown: number
  /** @returns null for a deleted template */
  readonly textOfTemplate: (id: string) => string | null
  /** 0..1, from the insight engine; null for the share of priorities with enough confidence. */
  readonly mlHealth: number | null
}

interface KpiApplication {
  readonly name: string
  readonly sources: readonly string[]
}

const TOP = 5

export function toKpiSnapshot(counts: KpiCounts, around: KpiSurroundings): KpiSnapshot {
  const { stored, deadLetters, lastMinute } = counts
  const received = stored.occurrences + deadLetters.total
  return {
    unique_events: stored.events,
    total_occurrences: stored.occurrences,
    dedup_rate_pct: percent(stored.occurrences - stored.events, stored.occurrences),
    success_rate_pct: received === 0 ? 100 : percent(stored.occurrences, received),
    dlq_count: deadLetters.lastDay,
    error_events: stored.errors,
    events_last_minute: lastMinute.events,
    errors_last_minute: lastMinute.errors,
    events_last_5min: counts.last5Minutes,
    events_per_second: twoDecimals(lastMinute.events / 60),
    criticals_24h: counts.day.criticals,
    templates_known: around.templatesKnown,
    ...applicationFields(around.applications, counts),
    open_alerts: around.alerts.open,
    global_health_score: health(counts, around.mlHealth),
    recent_alerts: around.alerts.recent.slice(0, TOP),
    top_errors: topErrors(counts, around.textOfTemplate),
    sparkline: counts.sparkline,
    trends: trends(counts),
  }
}

interface ApplicationDay {
  readonly name: string
  readonly occurrences: number
  readonly errors: number
  readonly p1: number
}

function applicationFields(
  applications: readonly KpiApplication[],
  counts: KpiCounts,
): Pick<
  KpiSnapshot,
  | 'total_applications'
  | 'active_applications'
  | 'inactive_applications'
  | 'critical_applications'
  | 'top_critical_apps'
  | 'top_unstable_apps'
> {
  const days = applications.map((application) => toDay(application, counts))
  const active = days.filter((app) => app.occurrences > 0).length
  const critical = days.filter((app) => app.p1 > 0)
  const unstable = days.filter((app) => app.errors > 0)
  return {
    total_applications: days.length,
    active_applications: active,
    inactive_applications: days.length - active,
    critical_applications: critical.length,
    top_critical_apps: top(critical, (app) => app.p1).map(({ name, p1, errors, occurrences }) => ({
      name,
      critical_count: p1,
      health_score: applicationHealth(p1, share(errors, occurrences)),
    })),
    top_unstable_apps: top(unstable, (app) => share(app.errors, app.occurrences)).map((app) => ({
      name: app.name,
      error_rate_pct: percent(app.errors, app.occurrences),
    })),
  }
}

function toDay({ name, sources }: KpiApplication, counts: KpiCounts): ApplicationDay {
  const sum = { occurrences: 0, errors: 0, p1: 0 }
  for (const source of new Set(sources)) {
    const day = counts.sources.get(source)
    if (day === undefined) continue
    sum.occurrences += day.occurrences
    sum.errors += day.errors
    sum.p1 += day.p1
  }
  return { name, ...sum }
}

/** The greatest few, ties by name. */
const top = <T extends { readonly name: string }>(
  items: readonly T[],
  valueOf: (item: T) => number,
): readonly T[] =>
  items.toSorted((a, b) => valueOf(b) - valueOf(a) || (a.name < b.name ? -1 : 1)).slice(0, TOP)

function topErrors(
  counts: KpiCounts,
  textOf: (id: string) => string | null,
): KpiSnapshot['top_errors'] {
  const known = counts.topErrors.flatMap(({ templateId, count }) => {
    const name = textOf(templateId)
    return name === null ? [] : [{ templateId, count, name }]
  })
  return top(known, (each) => each.count).map(({ templateId, count, name }) => ({
    template_id: templateId,
    count,
    template_text: name,
  }))
}

function health({ stored, deadLetters, day }: KpiCounts, mlHealth: number | null): number {
  const routineDay = day.events - day.p1
  return globalHealth({
    p1: day.p1,
    deadShare: share(deadLetters.lastDay, deadLetters.lastDay + routineDay),
    mlHealth: mlHealth ?? 1 - share(stored.unsure, stored.routine),
    dedupShare: share(stored.routineOccurrences - stored.routine, stored.routineOccurrences),
  })
}

const trends = ({ hour, day }: KpiCounts): KpiSnapshot['trends'] => ({
  events: {
    '1h': trend(hour.events, hour.eventsBefore),
    '24h': trend(day.events, day.eventsBefore),
  },
  errors: {
    '1h': trend(hour.errors, hour.errorsBefore),
    '24h': trend(day.errors, day.errorsBefore),
  },
})

/** Per cent change of a period against the one before; 100 when only the later one has occurrences. */
function trend(last: number, before: number): number {
  if (before <= 0) return last <= 0 ? 0 : 100
  return twoDecimals(((last - before) / before) * 100)
}

const percent = (part: number, whole: number): number => twoDecimals(share(part, whole) * 100)

const twoDecimals = (value: number): number => Math.round(value * 100) / 100
