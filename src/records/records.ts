import type { Instance } from '../coordination/instance.js'
import {
  AlertDoc,
  AlertWatermarkDoc,
  createAlerts,
  type Alert,
  type AlertWatermark,
} from './alerts.js'
import type { Applications } from './applications.js'
import { createIncidents, IncidentDoc, MAX_INCIDENTS, type Incident } from './incidents.js'
import { createSavedViews, MAX_SAVED_VIEWS, SavedViewDoc, type SavedView } from './saved-views.js'
import {
  createTemplateNotes,
  TemplateNotesDoc,
  type TemplateNotesRecord,
} from './template-notes.js'
import type { Sources } from './sources.js'
import { createTasks, MAX_TASKS, TaskDoc, type Task } from './tasks.js'

export type WorkRecords = ReturnType<typeof createRecords>

interface RecordsDeps extends Pick<Instance, 'entities'> {
  readonly sources: Sources
  readonly applications: Applications
  readonly events: {
    /** The distinct sources of those events that exist. */
    sourcesOf(ids: readonly number[]): Promise<readonly string[]>
  }
  readonly users: { get(id: string): object | null }
}

/**
 * Opens the records that people work on: alerts, incidents and tasks. Each kind is a collection of
 * the entities table: all records are in memory, a change resolves when it is on disk, and other
 * instances read it from there. Lists are paged by an index in the order of creation
 * (`newest-first.ts`, `page.ts`).
 */
export function createRecords({ entities, sources, applications, events, users }: RecordsDeps) {
  const hasUser = (id: string): boolean => users.get(id) !== null
  const incidents = createIncidents({
    records: entities.collection<Incident>('incident', IncidentDoc, {
      most: MAX_INCIDENTS,
      nouns: 'incidents',
    }),
    hasUser,
    hasApplication: applications.has,
  })
  return {
    alerts: createAlerts({
      records: entities.collection<Alert>('alert', AlertDoc),
      watermarks: entities.collection<AlertWatermark>('alert_watermark', AlertWatermarkDoc),
      sourcesOfEvents: (ids) => events.sourcesOf(ids),
      hasSource: (name) => sources.get(name) !== undefined,
    }),
    incidents,
    savedViews: createSavedViews(
      entities.collection<SavedView>('saved_view', SavedViewDoc, {
        most: MAX_SAVED_VIEWS,
        nouns: 'views of yours',
        ownerOf: ({ ownerId }) => ownerId,
      }),
    ),
    templateNotes: createTemplateNotes(
      entities.collection<TemplateNotesRecord>('template_notes', TemplateNotesDoc),
    ),
    tasks: createTasks({
      records: entities.collection<Task>('task', TaskDoc, { most: MAX_TASKS, nouns: 'tasks' }),
      hasUser,
      hasIncident: incidents.has,
    }),
  }
}

/** Deletes every record of each kind. @returns their number */
export async function clearRecords(
  { alerts, incidents, tasks, templateNotes }: WorkRecords,
  applications: Applications,
): Promise<Readonly<Record<'alerts' | 'incidents' | 'tasks' | 'applications', number>>> {
  await templateNotes.clear()
  return {
    alerts: await alerts.clear(),
    incidents: await incidents.clear(),
    tasks: await tasks.clear(),
    applications: await applications.clear(),
  }
}
