import { contributionsOf, type PartCounts } from './contributions.js'
import type { Severity } from '../model/event.js'
import type { Explanation, InsightAnomaly } from '../model/insights.js'
import type { InsightSeries, PartsQuery } from './stored-series.js'
import { HOUR_MS } from '../model/time.js'

/** What is counted in the span of an anomaly and before; hours since 1970. */
export interface CountedSpan extends Omit<PartsQuery, 'severity'> {
  /** null = any */
  readonly severity: Severity | null
  readonly hostSeverity: Severity | null
}

type Counted = Record<'templates' | 'sources' | 'hosts', readonly PartCounts[]>
type Series = Pick<InsightSeries, 'parts' | 'sourceParts' | 'hostParts'>

const LEAST_BEFORE_HOURS = 6

/** What templates, sources and hosts counted; sources only where the anomaly is not of one. */
export async function countParts(
  series: Series,
  { severity, hostSeverity, ...span }: CountedSpan,
  signal?: AbortSignal,
): Promise<Counted> {
  const query = { ...span, severity: severity ?? ('' as const) }
  const [templates, sources, hosts] = await Promise.all([
    series.parts(query, signal),
    span.source === '' ? series.sourceParts(query, signal) : [],
    series.hostParts({ ...query, severity: hostSeverity ?? '' }, signal),
  ])
  return { templates, sources, hosts }
}

/** Explains an anomaly as it is known, also one that no snapshot explains. */
export async function explain(
  series: Series,
  anomaly: InsightAnomaly,
  signal?: AbortSignal,
): Promise<Explanation> {
  const { scope, source, severity, startedAtMs, endedAtMs } = anomaly
  const duringHours = (endedAtMs - startedAtMs) / HOUR_MS
  const [from, until] = [startedAtMs / HOUR_MS, endedAtMs / HOUR_MS]
  const before = Math.max(0, from - Math.max(LEAST_BEFORE_HOURS, duringHours))
  const span = {
    source,
    before,
    from,
    until,
    severity: scope === 'severity' ? severity : null,
    hostSeverity: scope === 'severity' || scope === 'template' ? severity : null,
  }
  const parts = await countParts(series, span, signal)
  const spans = { beforeHours: Math.max(1, from - before), duringHours }
  return {
    fromMs: startedAtMs,
    toMs: endedAtMs,
    beforeFromMs: before * HOUR_MS,
    templates: contributionsOf(parts.templates, spans),
    sources: contributionsOf(parts.sources, spans),
    hosts: contributionsOf(parts.hosts, spans),
  }
}
