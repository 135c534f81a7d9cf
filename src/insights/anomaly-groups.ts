import { isRise, type InsightAnomaly } from '../model/insights.js'

/** From this share of a change on, a single contributor explains it. */
export const MOSTLY = 0.8

/** An anomaly, and its state at each of its hours. */
export interface FoundAnomaly {
  readonly anomaly: InsightAnomaly
  readonly course: readonly Course[]
}

type Course = Pick<InsightAnomaly, 'endedAtMs' | 'observed' | 'expected' | 'score' | 'gravity'>

/**
 * Groups anomalies of the same direction that overlap in time: each one's `partOf` becomes the id of its group's leader.
 *
 * An anomaly of a template or severity joins that of its source, a template's without one that of its severity.
 * Where ERROR or CRITICAL makes up most of what its source does, the severity's anomaly leads instead. Templates
 * that join neither are grouped with each other, led by the one with the highest score.
 *
 * The group of an anomaly is the one that was known at its end: like the anomaly itself it depends on nothing later.
 *
 * @param endedAfterMs anomalies that ended earlier are left out of the result
 */
export function groupAnomalies(
  found: readonly FoundAnomaly[],
  endedAfterMs = 0,
): readonly InsightAnomaly[] {
  const bySource = groupBy(found, ({ anomaly }) => anomaly.source)
  return [...bySource.values()].flatMap((own) => {
    const reported = own.filter(({ anomaly }) => anomaly.endedAtMs > endedAfterMs)
    const byEnd = groupBy(reported, ({ anomaly }) => anomaly.endedAtMs)
    return [...byEnd].flatMap(([endedAtMs, ended]) => {
      const ids = new Set(ended.map(({ anomaly }) => anomaly.id))
      return groupKnown(own.flatMap((each) => knownAt(each, endedAtMs))).filter(({ id }) =>
        ids.has(id),
      )
    })
  })
}

function groupBy<K>(
  found: readonly FoundAnomaly[],
  keyOf: (each: FoundAnomaly) => K,
): ReadonlyMap<K, readonly FoundAnomaly[]> {
  const groups = new Map<K, FoundAnomaly[]>()
  for (const each of found) {
    const group = groups.get(keyOf(each))
    if (group === undefined) groups.set(keyOf(each), [each])
    else group.push(each)
  }
  return groups
}

/** An anomaly as it was known at a time; nothing before it was detected. */
function knownAt({ anomaly, course }: FoundAnomaly, atMs: number): readonly InsightAnomaly[] {
  if (anomaly.endedAtMs <= atMs) return [anomaly]
  const then = course.findLast(({ endedAtMs }) => endedAtMs <= atMs)
  return then === undefined || anomaly.detectedAtMs > atMs ? [] : [{ ...anomaly, ...then }]
}

/** Groups the anomalies of one source. */
function groupKnown(anomalies: readonly InsightAnomaly[]): readonly InsightAnomaly[] {
  if (anomalies.length === 1) return anomalies
  const widest = anomalies.filter(({ scope }) => scope !== 'template')
  const leaders = new Map<string, string>()
  for (const errors of anomalies.filter(isOfErrors))
    for (const wider of widest)
      if (includes(wider, errors) && explainsMost(errors, wider)) leaders.set(wider.id, errors.id)
  const grouped = anomalies.map((anomaly) => {
    const wider = widest
      .filter((each) => includes(each, anomaly))
      .toSorted((a, b) => (a.scope === b.scope ? 0 : a.scope === 'severity' ? 1 : -1))[0]
    const id = wider?.id ?? anomaly.id
    const partOf = leaders.get(id) ?? id
    return partOf === anomaly.id ? anomaly : { ...anomaly, partOf }
  })
  return withGravity(groupTemplates(grouped))
}

/** Sets the gravity of each leader to the greatest one in its group. */
export function withGravity<A extends InsightAnomaly>(anomalies: readonly A[]): readonly A[] {
  const gravest = new Map<string, number>()
  for (const { partOf, gravity } of anomalies)
    if (partOf !== null) gravest.set(partOf, Math.max(gravity, gravest.get(partOf) ?? 0))
  return anomalies.map((each) => {
    const gravity = Math.max(each.gravity, gravest.get(each.id) ?? 0)
    return gravity === each.gravity ? each : { ...each, gravity }
  })
}

function groupTemplates(anomalies: readonly InsightAnomaly[]): readonly InsightAnomaly[] {
  const leaders: InsightAnomaly[] = []
  const leaderOf = new Map<string, string>()
  const ungrouped = anomalies.filter(({ scope, partOf }) => scope === 'template' && partOf === null)
  for (const each of ungrouped.toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))) {
    const leader = leaders.find((other) => other.source === each.source && coincide(other, each))
    if (leader === undefined) leaders.push(each)
    else leaderOf.set(each.id, leader.id)
  }
  return anomalies.map((each) => {
    const partOf = leaderOf.get(each.id)
    return partOf === undefined ? each : { ...each, partOf }
  })
}

const isSameDirection = (a: InsightAnomaly, b: InsightAnomaly): boolean =>
  isRise(a.kind) === isRise(b.kind)

/** Whether two anomalies have the same direction and overlap for more than half of the shorter one. */
function coincide(a: InsightAnomaly, b: InsightAnomaly): boolean {
  if (!isSameDirection(a, b)) return false
  const overlap = Math.min(a.endedAtMs, b.endedAtMs) - Math.max(a.startedAtMs, b.startedAtMs)
  const shorter = Math.min(a.endedAtMs - a.startedAtMs, b.endedAtMs - b.startedAtMs)
  return overlap > shorter / 2
}

const isOfErrors = ({ scope, severity }: InsightAnomaly): boolean =>
  scope === 'severity' && (severity === 'ERROR' || severity === 'CRITICAL')

const explainsMost = (part: InsightAnomaly, wider: InsightAnomaly): boolean =>
  Math.abs(part.observed - part.expected) >= MOSTLY * Math.abs(wider.observed - wider.expected)

/** @param wider of the same source */
function includes(wider: InsightAnomaly, part: InsightAnomaly): boolean {
  if (part.scope !== 'severity' && part.scope !== 'template') return false
  if (wider.scope === 'severity' && (part.scope === 'severity' || wider.severity !== part.severity))
    return false
  return (
    isSameDirection(wider, part) &&
    wider.startedAtMs < part.endedAtMs &&
    part.startedAtMs < wider.endedAtMs
  )
}
