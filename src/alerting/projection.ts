import { createHash } from 'node:crypto'

import type { Alerts } from '../records/alerts.js'
import type { Incidents } from '../records/incidents.js'
import type { LoggedTransition } from './alert-log.js'
import { titleOf } from './transitions.js'

export interface ProjectionDeps {
  readonly alerts: Pick<Alerts, 'create' | 'resolve'>
  readonly incidents: Pick<Incidents, 'create'>
  readonly hasSource: (name: string) => boolean
  readonly onAlerts: () => Promise<void>
}

const ACTOR = 'alert rules'

/** Applies transitions to alerts and incidents. It is idempotent. */
export const createProjection =
  (deps: ProjectionDeps) =>
  async (transitions: readonly LoggedTransition[]): Promise<void> => {
    if (transitions.length === 0) return
    await Promise.all(transitions.map((one) => projectOne(deps, one)))
    await deps.onAlerts()
  }

async function projectOne(deps: ProjectionDeps, one: LoggedTransition): Promise<void> {
  const { alerts, hasSource } = deps
  const { alertId, status, group, groupBy } = one
  if (alertId === null) return
  if (status.state === 'inactive') {
    await alerts.resolve(alertId, one.atMs, one.value)
    return
  }
  const named = Object.fromEntries(groupBy.map((name, i) => [name, group[i] ?? '']))
  const source = named['source'] ?? ''
  const relatedSource = hasSource(source) ? source : null
  await alerts.create({
    id: alertId,
    title: titleOf(one),
    severity: one.severity,
    eventIds: [],
    relatedSource,
    rule: {
      ruleId: one.ruleId,
      group: named,
      state: 'firing',
      value: one.value,
      startedAtMs: status.firingSinceMs,
      resolvedAtMs: null,
    },
  })
  if (one.opens === 'incident') await openIncident(deps, { one, alertId, source: relatedSource })
}

const openIncident = (
  { incidents }: ProjectionDeps,
  opened: {
    readonly one: LoggedTransition
    readonly alertId: string
    readonly source: string | null
  },
): Promise<unknown> =>
  incidents.create(
    ACTOR,
    {
      title: titleOf(opened.one),
      description: `Opened by the alert rule "${opened.one.ruleName}".`,
      severity: opened.one.severity,
      applicationId: null,
      source: opened.source,
      assigneeId: null,
      alertIds: [opened.alertId],
      eventIds: [],
    },
    incidentIdOf(opened.alertId),
  )

/** The id of an alert's incident, a UUID of version 8 computed from the alert's id, so that it is opened once. */
export function incidentIdOf(alertId: string): string {
  const hex = createHash('sha256').update(`incident ${alertId}`).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
