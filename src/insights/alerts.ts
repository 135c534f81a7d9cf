import { createHash } from 'node:crypto'

import type { Alerts } from '../records/alerts.js'
import type { Incidents } from '../records/incidents.js'
import type { Config } from '../config.js'
import { alertsFor, type AnomalyAlert } from './alert-of.js'
import type { KeptAnomaly } from './store.js'
import type { Log } from '../telemetry/log.js'
import type { Sources } from '../records/sources.js'

export interface AnomalyAlertParts {
  readonly config: Config
  readonly sources: Sources
  readonly alerts: Pick<Alerts, 'create'>
  readonly incidents: Pick<Incidents, 'create'>
  readonly textOf: (templateId: string) => string | null
  readonly log: Log
}

const ACTOR = 'insights'

/**
 * Raises the alerts that are due among anomalies, those of the last days included. An alert has an id that follows
 * from its anomaly's: when it was not written down that it was raised, it is raised again without being doubled.
 *
 * @returns ids of the anomalies whose alerts are there; what failed is due again at the next look
 */
export async function raiseAlerts(
  parts: AnomalyAlertParts,
  all: readonly KeptAnomaly[],
  nowMs: number,
): Promise<ReadonlySet<string>> {
  const { config, textOf, log } = parts
  const raised = new Set<string>()
  if (!config.insightsAlerts) return raised
  const rules = {
    leastScore: config.insightsAlertScore,
    holdDownMs: config.insightsHoldDownSeconds * 1000,
    nowMs,
  }
  const watched = all.filter((anomaly) => isOnWatch(parts, anomaly))
  for (const alert of alertsFor(watched, rules, textOf)) {
    try {
      await raise(parts, alert)
      raised.add(alert.anomaly.id)
    } catch (error) {
      log.warn({ err: error, anomaly: alert.anomaly.id }, 'no alert could be raised for an anomaly')
    }
  }
  return raised
}

/** What began before its source was registered came with a file of the past: nobody is called for that. */
function isOnWatch({ sources }: AnomalyAlertParts, { source, startedAtMs }: KeptAnomaly): boolean {
  const known = source === '' ? sources.list() : [sources.get(source)]
  return known.some((each) => each !== undefined && each.createdAtMs <= startedAtMs)
}

async function raise(
  { config, alerts, incidents }: AnomalyAlertParts,
  { anomaly, severity, title }: AnomalyAlert,
): Promise<void> {
  const relatedSource = anomaly.source === '' ? null : anomaly.source
  const alert = await alerts.create({
    id: uuidOf('alert', anomaly.id),
    title: title.slice(0, 300),
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

/** A UUID of version 8, always the same for an anomaly. */
function uuidOf(kind: 'alert' | 'incident', anomalyId: string): string {
  const hex = createHash('sha256').update(`${kind} ${anomalyId}`).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
