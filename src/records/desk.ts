import { AlertDoc, AlertWatermarkDoc, createAlerts, type Alert, type Alerts } from './alerts.js'
import type { Applications } from './applications.js'
import { createIncidents, IncidentDoc, type Incident, type Incidents } from './incidents.js'
import { createTasks, TaskDoc, type Task, type Tasks } from './tasks.js'
import type { Entities } from '../coordination/entities.js'

/** What people work on: alerts, incidents, tasks. */
export interface Desk {
  readonly alerts: Alerts
  readonly incidents: Incidents
  readonly tasks: Tasks
}

export interface DeskParts {
  readonly entities: Entities
  readonly sourcesOfEvents: (ids: readonly number[]) => Promise<readonly string[]>
  readonly hasSource: (name: string) => boolean
  readonly hasUser: (id: string) => boolean
  readonly hasApplication: (id: string) => boolean
}

export function createDesk(parts: DeskParts): Desk {
  const { entities, hasUser } = parts
  const incidents = createIncidents({
    records: entities.collection<Incident>('incident', IncidentDoc),
    hasUser,
    hasApplication: parts.hasApplication,
  })
  return {
    alerts: createAlerts({
      records: entities.collection<Alert>('alert', AlertDoc),
      watermarks: entities.collection('alert_mark', AlertWatermarkDoc),
      sourcesOfEvents: parts.sourcesOfEvents,
      hasSource: parts.hasSource,
    }),
    incidents,
    tasks: createTasks({
      records: entities.collection<Task>('task', TaskDoc),
      hasUser,
      hasIncident: (id) => incidents.has(id),
    }),
  }
}

/** Clear-all's part of it. @returns how many of each went */
export async function clearDesk(
  { alerts, incidents, tasks }: Desk,
  applications: Applications,
): Promise<Readonly<Record<'alerts' | 'incidents' | 'tasks' | 'applications', number>>> {
  return {
    alerts: await alerts.clear(),
    incidents: await incidents.clear(),
    tasks: await tasks.clear(),
    applications: await applications.clear(),
  }
}
