import { isRise, type InsightAnomaly, type InsightSnapshot } from '../model/insights.js'
import { DAY_MS } from '../model/time.js'
import { ANY_ANOMALY, type AnomalyQuery, type StoredAnomaly } from './store.js'

export interface TrackedAnomaly {
  readonly anomaly: InsightAnomaly
  /** The stored anomaly that it continues. */
  readonly known: StoredAnomaly | null
}

/** Anomalies that began earlier are not continued: a run reports five days, and those began up to six days before. */
const KNOWN_MS = 12 * DAY_MS
const MAX_KNOWN = 20_000

/** Selects the stored anomalies that those of a run may continue. */
export const knownBefore = (asOfMs: number): AnomalyQuery => anomaliesSince(asOfMs - KNOWN_MS)

/** Selects the stored anomalies that began since then. */
export const anomaliesSince = (sinceMs: number): AnomalyQuery => ({
  ...ANY_ANOMALY,
  sinceMs,
  limit: MAX_KNOWN,
})

/**
 * Gives each anomaly of a run the id, beginning and time of detection of the stored one that it
 * continues. An id is computed from the beginning, so it stays the same unless late events move the
 * beginning.
 */
export function trackAnomalies(
  found: readonly InsightAnomaly[],
  known: readonly StoredAnomaly[],
): readonly TrackedAnomaly[] {
  const bySeries = new Map<string, StoredAnomaly[]>()
  for (const each of known) {
    const key = seriesOf(each)
    const others = bySeries.get(key)
    if (others === undefined) bySeries.set(key, [each])
    else others.push(each)
  }
  const byId = new Map(known.map((each) => [each.id, each]))
  const taken = new Set(found.filter(({ id }) => byId.has(id)).map(({ id }) => id))
  const knownIds = new Map<string, string>()
  const tracked = found.map((anomaly) => {
    const same = byId.get(anomaly.id)
    if (same !== undefined) return { anomaly, known: same }
    const match = (bySeries.get(seriesOf(anomaly)) ?? []).find(
      (each) => !taken.has(each.id) && overlaps(each, anomaly),
    )
    if (match === undefined) return { anomaly, known: null }
    taken.add(match.id)
    knownIds.set(anomaly.id, match.id)
    const { id, startedAtMs } = match
    const detectedAtMs = Math.min(match.detectedAtMs, anomaly.detectedAtMs)
    return { anomaly: { ...anomaly, id, startedAtMs, detectedAtMs }, known: match }
  })
  return tracked.map(({ anomaly, known: match }) => {
    const partOf = anomaly.partOf === null ? null : (knownIds.get(anomaly.partOf) ?? anomaly.partOf)
    return { anomaly: { ...anomaly, partOf }, known: match }
  })
}

/**
 * Replaces the ids in the snapshot of a run by those of the stored anomalies; `tracked` has the
 * anomalies of the run, in its order.
 */
export function withKnownIds(
  snapshot: InsightSnapshot,
  found: readonly InsightAnomaly[],
  tracked: readonly TrackedAnomaly[],
): InsightSnapshot {
  const ids = new Map(found.map(({ id }, i) => [id, tracked[i]?.anomaly.id ?? id]))
  const idOf = (id: string): string => ids.get(id) ?? id
  return {
    ...snapshot,
    anomalies: tracked.slice(0, snapshot.anomalies.length).map(({ anomaly }) => anomaly),
    correlations: snapshot.correlations.map((each) => ({
      ...each,
      anomalyId: idOf(each.anomalyId),
      alsoAffected: each.alsoAffected.map(({ source, anomalyId }) => ({
        source,
        anomalyId: idOf(anomalyId),
      })),
    })),
  }
}

/** A key of the series and the direction of an anomaly. */
const seriesOf = ({ scope, source, severity, templateId, kind }: InsightAnomaly): string =>
  JSON.stringify([scope, source, scope === 'severity' ? severity : null, templateId, isRise(kind)])

const overlaps = (a: InsightAnomaly, b: InsightAnomaly): boolean =>
  a.startedAtMs < b.endedAtMs && b.startedAtMs < a.endedAtMs
