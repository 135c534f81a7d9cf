import type { InsightAnomaly } from '../model/insights.js'

/** share of a change that makes it the matter of one of its parts */
export const MOSTLY = 0.8

/**
 * Names for each the anomaly of its source, or of its severity, that goes the same way at the same time. Where one
 * severity brings about most of what its source does, it is the other way round: errors that soar are told as such.
 */
export function withWholes(anomalies: readonly InsightAnomaly[]): readonly InsightAnomaly[] {
  const wholes = new Map<string, InsightAnomaly[]>()
  for (const anomaly of anomalies) {
    if (anomaly.scope === 'template') continue
    const known = wholes.get(anomaly.source)
    if (known === undefined) wholes.set(anomaly.source, [anomaly])
    else known.push(anomaly)
  }
  const leaders = new Map<string, string>()
  for (const part of anomalies.filter(isOfTrouble))
    for (const whole of wholes.get(part.source) ?? [])
      if (isWholeOf(whole, part) && leads(part, whole)) leaders.set(whole.id, part.id)
  const parts = anomalies.map((anomaly) => {
    const whole = (wholes.get(anomaly.source) ?? [])
      .filter((each) => isWholeOf(each, anomaly))
      .toSorted((a, b) => (a.scope === b.scope ? 0 : a.scope === 'severity' ? 1 : -1))[0]
    const id = whole?.id ?? anomaly.id
    const partOf = leaders.get(id) ?? id
    return partOf === anomaly.id ? anomaly : { ...anomaly, partOf }
  })
  return withFellows(parts)
}

/**
 * Templates of a source that go the same way at the same time, and are part of nothing wider, are one matter: that
 * of the gravest of them.
 */
function withFellows(anomalies: readonly InsightAnomaly[]): readonly InsightAnomaly[] {
  const leaders: InsightAnomaly[] = []
  const leaderOf = new Map<string, string>()
  const alone = anomalies.filter(({ scope, partOf }) => scope === 'template' && partOf === null)
  for (const each of alone.toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))) {
    const leader = leaders.find((other) => other.source === each.source && goTogether(other, each))
    if (leader === undefined) leaders.push(each)
    else leaderOf.set(each.id, leader.id)
  }
  return anomalies.map((each) => {
    const partOf = leaderOf.get(each.id)
    return partOf === undefined ? each : { ...each, partOf }
  })
}

/** The same way, and for most of the shorter one's time. */
function goTogether(a: InsightAnomaly, b: InsightAnomaly): boolean {
  if ((a.kind === 'spike') !== (b.kind === 'spike')) return false
  const common = Math.min(a.endedAtMs, b.endedAtMs) - Math.max(a.startedAtMs, b.startedAtMs)
  const shorter = Math.min(a.endedAtMs - a.startedAtMs, b.endedAtMs - b.startedAtMs)
  return common > shorter / 2
}

const isOfTrouble = ({ scope, severity }: InsightAnomaly): boolean =>
  scope === 'severity' && (severity === 'ERROR' || severity === 'CRITICAL')

const leads = (part: InsightAnomaly, whole: InsightAnomaly): boolean =>
  Math.abs(part.observed - part.expected) >= MOSTLY * Math.abs(whole.observed - whole.expected)

function isWholeOf(whole: InsightAnomaly, part: InsightAnomaly): boolean {
  if (part.scope !== 'severity' && part.scope !== 'template') return false
  if (whole.scope === 'severity' && (part.scope === 'severity' || whole.severity !== part.severity))
    return false
  const isSameWay = (whole.kind === 'spike') === (part.kind === 'spike')
  return isSameWay && whole.startedAtMs < part.endedAtMs && part.startedAtMs < whole.endedAtMs
}
