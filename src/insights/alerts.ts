import { createHash } from 'node:crypto'

import type { Config } from '../config.js'
import type { Priority } from '../model/event.js'
import { isRise, type InsightAnomaly } from '../model/insights.js'
import { DAY_MS } from '../model/time.js'
import type { Alerts } from '../records/alerts.js'
import type { Incidents } from '../records/incidents.js'
import type { Sources } from '../records/sources.js'
import type { Log } from '../telemetry/log.js'
import { seriesOf } from './anomaly-tracking.js'
import type { StoredAnomaly } from './store.js'

export interface AnomalyAlertDeps {
  readonly config: Config
  readonly sources: Sources
  readonly alerts: Alerts
  readonly incidents: Incidents
  readonly textOf: TextOf
  readonly log: Log
}

export interface AlertRules {
  readonly leastGravity: number
  readonly holdDownMs: number
  readonly nowMs: number
}

export interface AnomalyAlert {
  readonly anomaly: InsightAnomaly
  readonly severity: Priority
  readonly title: string
}

type TextOf = (templateId: string) => string | null

const ACTOR = 'insights'
/** More alerts at once would have one cause; the gravest are raised. */
const MAX_ALERTS = 20
const MAX_TITLE = 300
const MAX_TEXT = 120

/**
 * Raises the alerts that are due. An alert's id is derived from its anomaly's, so one that was raised but not
 * recorded is raised again without a duplicate.
 *
 * @param all the anomalies of the last days
 * @returns ids of the anomalies whose alerts exist; the next run tries those that failed again
 */
export async function raiseAlerts(
  deps: AnomalyAlertDeps,
  all: readonly StoredAnomaly[],
  nowMs: number,
): Promise<ReadonlySet<string>> {
  const { config, textOf, log } = deps
  const raised = new Set<string>()
  if (!config.insightsAlerts) return raised
  const rules = {
    leastGravity: config.insightsAlertScore,
    holdDownMs: config.insightsHoldDownSeconds * 1000,
    nowMs,
  }
  const live = all.filter((anomaly) => isOfLiveSource(deps.sources, anomaly))
  for (const alert of dueAlerts(live, rules, textOf)) {
    try {
      await raise(deps, alert)
      raised.add(alert.anomaly.id)
    } catch (error) {
      log.warn({ err: error, anomaly: alert.anomaly.id }, 'no alert could be raised for an anomaly')
    }
  }
  return raised
}

/**
 * The alerts that are due, of anomalies that are grave, ended less than a day ago, lead their group and have none
 * yet. A series has one alert per hold-down.
 */
export function dueAlerts(
  all: readonly StoredAnomaly[],
  { leastGravity, holdDownMs, nowMs }: AlertRules,
  textOf: TextOf,
): readonly AnomalyAlert[] {
  const heldDown = new Set(
    all.filter(({ alertedAtMs }) => alertedAtMs > nowMs - holdDownMs).map(seriesOf),
  )
  const due: StoredAnomaly[] = []
  for (const anomaly of all.toSorted((a, b) => b.gravity - a.gravity || (a.id < b.id ? -1 : 1))) {
    const { partOf, gravity, alertedAtMs, endedAtMs } = anomaly
    if (partOf !== null || gravity < leastGravity || alertedAtMs > 0) continue
    if (endedAtMs < nowMs - DAY_MS || heldDown.has(seriesOf(anomaly))) continue
    heldDown.add(seriesOf(anomaly))
    due.push(anomaly)
  }
  return due.slice(0, MAX_ALERTS).map((anomaly) => ({
    anomaly,
    severity: priorityOf(anomaly),
    title: titleOf(anomaly, textOf),
  }))
}

/** An anomaly that began before its source was registered is of an uploaded past and raises no alert. */
function isOfLiveSource(sources: Sources, { source, startedAtMs }: StoredAnomaly): boolean {
  const known = source === '' ? sources.list() : [sources.get(source)]
  return known.some((each) => each !== undefined && each.createdAtMs <= startedAtMs)
}

/** P1: a spike of CRITICAL, or a silent source. P2: a spike of ERROR, or a source that dropped. */
function priorityOf({ kind, severity, scope }: InsightAnomaly): Priority {
  const isWhole = scope === 'all' || scope === 'source'
  if (isRise(kind)) return severity === 'CRITICAL' ? 'P1' : severity === 'ERROR' ? 'P2' : 'P3'
  if (kind === 'silence') return isWhole ? 'P1' : 'P3'
  return isWhole ? 'P2' : 'P3'
}

const KIND_WORDS = {
  spike: 'Spike',
  drop: 'Drop',
  silence: 'Silence',
  new: 'First occurrence',
} as const

function titleOf(anomaly: InsightAnomaly, textOf: TextOf): string {
  const { kind, source, startedAtMs, observed, expectedLeast, expectedMost } = anomaly
  const since = new Date(startedAtMs).toISOString().slice(0, 16)
  return (
    `${KIND_WORDS[kind]} ${subjectOf(anomaly, textOf)}${source === '' ? '' : ` in ${source}`}: ` +
    `${observed} occurrences since ${since}Z, ${expectedLeast} to ${expectedMost} were expected`
  )
}

function subjectOf({ scope, severity, templateId }: InsightAnomaly, textOf: TextOf): string {
  if (scope === 'severity') return `of ${severity ?? ''}`
  if (scope === 'template')
    return `of "${(textOf(templateId ?? '') ?? templateId ?? '').slice(0, MAX_TEXT)}"`
  return scope === 'all' ? 'over all sources' : 'of all messages'
}

async function raise(
  { config, alerts, incidents }: AnomalyAlertDeps,
  { anomaly, severity, title }: AnomalyAlert,
): Promise<void> {
  const relatedSource = anomaly.source === '' ? null : anomaly.source
  const alert = await alerts.create({
    id: uuidOf('alert', anomaly.id),
    title: title.slice(0, MAX_TITLE),
    severity,
    eventIds: [],
    relatedSource,
  })
  if (severity !== 'P1' || !config.insightsIncidents) return
  await incidents.create(
    ACTOR,
    {
      title: alert.title,
      description: `Opened by the insight engine for anomaly ${anomaly.id}.`,
      severity,
      applicationId: null,
      source: relatedSource,
      assigneeId: null,
      alertIds: [alert.id],
      eventIds: [],
    },
    uuidOf('incident', anomaly.id),
  )
}

/** A UUID of version 8 that is a hash of the anomaly's id. */
function uuidOf(kind: 'alert' | 'incident', anomalyId: string): string {
  const hex = createHash('sha256').update(`${kind} ${anomalyId}`).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
