import type { Count } from '../../src/alerting/count.js'
import { countFindings } from '../../src/alerting/finding-counts.js'
import { Analysis } from '../../src/insights/analysis.js'
import { trackAnomalies } from '../../src/insights/anomaly-tracking.js'
import { findingsOf, type Finding } from '../../src/insights/findings.js'
import { frameEndingAt } from '../../src/insights/frame.js'
import type { StoredAnomaly } from '../../src/insights/store.js'
import { SEVERITIES } from '../../src/model/event.js'
import { DAY_MS, HOUR_MS } from '../../src/model/time.js'
import { EVERYTHING, type Query } from '../../src/query/ast.js'
import type { Source } from '../../src/records/sources.js'
import type { SimulatedSource } from './simulate.js'

/** Hours since 1970 of index 0, a Monday. */
const START = 96 + 168 * 2500
const KNOWN_MS = 12 * DAY_MS
/** The counter of the default rule _Anomalies_. */
const RULE = { kind: 'findings', query: EVERYTHING, leastGravity: 10, kinds: [] } as const
const KEEP_FIRING_MS = 6 * HOUR_MS

/** Hours are indexes of the counts. */
export interface Told {
  readonly source: string
  readonly scope: string
  readonly kind: string
  readonly name: string
  readonly from: number
  readonly to: number
  readonly observed: number
  readonly expected: number
  readonly score: number
  readonly gravity: number
  /** The hour at whose end it was first found, or the alert was raised. */
  readonly at: number
}

export interface Operated {
  /** Anomalies that lead their group. */
  readonly anomalies: readonly Told[]
  readonly alerts: readonly Told[]
}

/** Runs every hour from one on over simulated sources, with everything but the database, as the service does. */
export async function operate(
  sources: readonly SimulatedSource[],
  from: number,
): Promise<Operated> {
  const all = sources.map(({ name, templates }) => ({
    name,
    templates,
    severities: SEVERITIES.map((severity) =>
      sumOf(templates.filter((each) => each.severity === severity)),
    ),
  }))
  const length = sources[0]?.templates[0]?.counts.length ?? 0
  const known = new Map<string, StoredAnomaly>()
  const firstTold = new Map<string, number>()
  /** By series. */
  const firedAtMs = new Map<string, number>()
  const alerts: Told[] = []
  for (let hour = from; hour <= length; hour++) {
    const frame = frameEndingAt(START + hour)
    const offset = frame.startHour - START
    const cut = (counts: Float64Array): Float64Array => {
      const own = new Float64Array(frame.hours)
      own.set(counts.subarray(Math.max(0, offset), hour), Math.max(0, -offset))
      return own
    }
    const analysis = new Analysis(frame, frame.hours)
    for (const { name, severities } of all) {
      analysis.addSource({ source: name, severities: severities.map(cut) })
    }
    for (const { name, templates } of all)
      for (const [i, { severity, counts }] of templates.entries()) {
        const first = counts.findIndex((count) => count > 0)
        if (first === -1 || first >= hour) continue
        analysis.addTemplate({
          templateId: `${name}/${i}`,
          source: name,
          severity,
          counts: cut(counts),
          firstSeenMs: (START + first) * HOUR_MS,
          lastSeenMs: 0,
          routine: 0,
          routineEvents: 0,
          unsureEvents: 0,
        })
      }
    const nowMs = (START + hour) * HOUR_MS
    const stored = [...known.values()].filter(({ startedAtMs }) => startedAtMs > nowMs - KNOWN_MS)
    const tracked = trackAnomalies(analysis.group(), stored)
    for (const { anomaly } of tracked) {
      known.set(anomaly.id, anomaly)
      if (!firstTold.has(anomaly.id)) firstTold.set(anomaly.id, hour)
    }
    const recent = [...known.values()].filter((each) => each.startedAtMs > nowMs - KNOWN_MS)
    for (const { group, finding } of await alertsAt(recent, nowMs)) {
      if (finding === undefined) throw new Error('bug: a count of anomalies without one')
      const series = group.join('\0')
      const firedMs = firedAtMs.get(series) ?? nowMs - DAY_MS
      if (finding.isOver && finding.endedAtMs <= firedMs) continue
      const anomaly = recent.find((each) => isOf(finding, each))
      if (anomaly === undefined) throw new Error('bug: a finding of no anomaly')
      if (nowMs > firedMs + KEEP_FIRING_MS) alerts.push(toTold(anomaly, hour))
      firedAtMs.set(series, nowMs)
    }
  }
  const anomalies = [...known.values()]
    .filter(({ partOf }) => partOf === null)
    .map((each) => toTold(each, firstTold.get(each.id) ?? 0))
  return { anomalies, alerts }
}

/** The counts of the rule at the end of an hour. */
function alertsAt(known: readonly StoredAnomaly[], nowMs: number): Promise<readonly Count[]> {
  const registered: Source = {
    name: '',
    type: 'push',
    connector: '',
    enabled: true,
    applicationId: null,
    createdAtMs: 0,
  }
  const sources = { list: () => [registered], get: () => registered }
  const findings = findingsOf(known, { sources, textOf: () => null })
  const deps = { findings: () => Promise.resolve(findings), resolve: (query: Query) => query }
  const asked = { fromMs: nowMs - HOUR_MS, toMs: nowMs, isPast: false, everyMs: HOUR_MS }
  return countFindings(deps, RULE, asked)
}

const isOf = (finding: Finding, anomaly: StoredAnomaly): boolean =>
  finding.source === anomaly.source &&
  finding.scope === anomaly.scope &&
  finding.kind === anomaly.kind &&
  finding.severity === (anomaly.severity ?? '') &&
  finding.templateId === (anomaly.templateId ?? '') &&
  finding.startedAtMs === anomaly.startedAtMs

const toTold = (
  each: Pick<
    StoredAnomaly,
    | 'source'
    | 'scope'
    | 'kind'
    | 'severity'
    | 'templateId'
    | 'observed'
    | 'expected'
    | 'score'
    | 'gravity'
    | 'startedAtMs'
    | 'endedAtMs'
  >,
  at: number,
): Told => ({
  source: each.source,
  scope: each.scope,
  kind: each.kind,
  name: each.templateId ?? each.severity ?? '',
  from: each.startedAtMs / HOUR_MS - START,
  to: each.endedAtMs / HOUR_MS - START,
  observed: each.observed,
  expected: each.expected,
  score: each.score,
  gravity: each.gravity,
  at,
})

function sumOf(all: readonly { readonly counts: Float64Array }[]): Float64Array {
  const sum = new Float64Array(all[0]?.counts.length ?? 0)
  for (const { counts } of all)
    for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (counts[i] ?? 0)
  return sum
}
