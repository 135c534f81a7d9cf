import type { InsightAnomaly } from '../model/insights.js'
import { HOUR_MS } from '../model/time.js'

/** Hours that may lie between two parts of one anomaly. */
const GAP_MS = 3 * HOUR_MS

/**
 * Gives anomalies the id, beginning and moment of detection under which they are known already: events that
 * arrive late can move a beginning, and days can pass it out of sight.
 */
export function continued<T extends InsightAnomaly>(
  found: readonly InsightAnomaly[],
  known: readonly T[],
): readonly { readonly anomaly: InsightAnomaly; readonly known: T | null }[] {
  const bySeries = new Map<string, T[]>()
  for (const each of known) {
    const key = seriesOf(each)
    const others = bySeries.get(key)
    if (others === undefined) bySeries.set(key, [each])
    else others.push(each)
  }
  const taken = new Set<string>()
  const newIds = new Map<string, string>()
  const matched = found.map((anomaly) => {
    const match = (bySeries.get(seriesOf(anomaly)) ?? []).find(
      (each) => !taken.has(each.id) && isNear(each, anomaly),
    )
    if (match === undefined) return { anomaly, known: null }
    taken.add(match.id)
    newIds.set(anomaly.id, match.id)
    const { id, startedAtMs } = match
    const detectedAtMs = Math.min(match.detectedAtMs, anomaly.detectedAtMs)
    return { anomaly: { ...anomaly, id, startedAtMs, detectedAtMs }, known: match }
  })
  return matched.map(({ anomaly, known: match }) => {
    const partOf = anomaly.partOf === null ? null : (newIds.get(anomaly.partOf) ?? anomaly.partOf)
    return { anomaly: { ...anomaly, partOf }, known: match }
  })
}

/** Names the series of an anomaly and the way it went. */
export const seriesOf = ({
  scope,
  source,
  severity,
  templateId,
  kind,
}: Pick<InsightAnomaly, 'scope' | 'source' | 'severity' | 'templateId' | 'kind'>): string =>
  JSON.stringify([
    scope,
    source,
    scope === 'severity' ? severity : null,
    templateId,
    kind === 'spike',
  ])

const isNear = (a: InsightAnomaly, b: InsightAnomaly): boolean =>
  a.startedAtMs <= b.endedAtMs + GAP_MS && b.startedAtMs <= a.endedAtMs + GAP_MS
