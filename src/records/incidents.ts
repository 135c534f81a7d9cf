import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import type { Priority } from '../model/event.js'
import { INCIDENT_STATUSES, OPENED, advance, type IncidentStatus } from './incident-states.js'
import type { Page } from './keyset.js'
import { NewestFirst, type PageQuery } from './newest-first.js'
import type { Records } from './records.js'
import { createReferences, type ReferenceParts } from './references.js'
import { PrioritySchema } from '../model/schemas.js'
import { TimelineEntryDoc, appendEntry, type TimelineEntry } from './timeline.js'

const OptionalText = Type.Union([Type.String(), Type.Null()])
const OptionalMs = Type.Union([Type.Integer(), Type.Null()])

/** An incident as it is stored. */
export const IncidentDoc = Type.Object({
  id: Type.String(),
  seq: Type.Integer(),
  createdAtMs: Type.Integer(),
  updatedAtMs: Type.Integer(),
  createdBy: Type.String(),
  title: Type.String(),
  description: Type.String(),
  severity: PrioritySchema,
  applicationId: OptionalText,
  source: OptionalText,
  assigneeId: OptionalText,
  alertIds: Type.Array(Type.String()),
  eventIds: Type.Array(Type.Integer()),
  status: Type.Union(INCIDENT_STATUSES.map((status) => Type.Literal(status))),
  acknowledgedAtMs: OptionalMs,
  resolvedAtMs: OptionalMs,
  closedAtMs: OptionalMs,
  timeline: Type.Array(TimelineEntryDoc),
})
export type Incident = Readonly<Static<typeof IncidentDoc>>

/** What a person sets. */
export interface IncidentFields {
  readonly title: string
  readonly description: string
  readonly severity: Priority
  readonly applicationId: string | null
  readonly source: string | null
  readonly assigneeId: string | null
  readonly alertIds: string[]
  readonly eventIds: number[]
}

interface IncidentFilter {
  /** each empty = any */
  readonly statuses: readonly string[]
  readonly severities: readonly string[]
  readonly assigneeIds: readonly string[]
  readonly applicationIds: readonly string[]
  readonly sources: readonly string[]
}

export interface IncidentParts extends Pick<ReferenceParts, 'hasUser' | 'hasApplication'> {
  readonly records: Records<Incident>
  readonly nowMs?: () => number
  readonly maxIncidents?: number
}

/**
 * Incidents in memory, written through. Changes of one incident follow one another, each on the
 * basis of the one before; every one may reject with dependency_unavailable.
 */
export interface Incidents {
  page(query: PageQuery, filter: IncidentFilter): Page<Incident>
  has(id: string): boolean
  /** @throws AppError not_found */
  get(id: string): Incident
  /**
   * @param id for one that may be opened again: the second time is as if it were not
   * @throws AppError validation_error for a user or application that does not exist; overloaded
   */
  create(actorId: string, fields: IncidentFields, id?: string): Promise<Incident>
  /** @throws AppError not_found, validation_error */
  change(actorId: string, id: string, fields: Partial<IncidentFields>): Promise<Incident>
  /** @throws AppError not_found, invalid_transition */
  transition(actorId: string, id: string, move: Move): Promise<Incident>
  /** @throws AppError not_found */
  addNote(actorId: string, id: string, text: string): Promise<Incident>
  /** @throws AppError not_found */
  remove(id: string): Promise<void>
  clear(): Promise<number>
}

interface Move {
  readonly to: IncidentStatus
  /** '' = none */
  readonly note: string
}

const MAX_INCIDENTS = 100_000

export function createIncidents(parts: IncidentParts): Incidents {
  const { records } = parts
  const index = new NewestFirst(records)
  return {
    page: (query, filter) => index.page(query, (incident) => matches(incident, filter)),
    has: (id) => records.get(id) !== null,
    get: (id) => records.get(id) ?? refuseMissing(id),
    ...createEdits(parts, index),
    async remove(id) {
      if (!(await records.remove(id))) refuseMissing(id)
    },
    clear: () => records.clear(),
  }
}

type Edits = Pick<Incidents, 'create' | 'change' | 'transition' | 'addNote'>

function createEdits(parts: IncidentParts, index: NewestFirst<Incident>): Edits {
  const { records, nowMs = Date.now, maxIncidents = MAX_INCIDENTS } = parts
  const references = createReferences(parts)
  const update = createUpdate(records, nowMs)
  return {
    async create(actorId, fields, id = randomUUID()) {
      references.check(fields)
      if (records.size >= maxIncidents) throw tooMany(maxIncidents)
      const createdAtMs = nowMs()
      const seq = index.nextSeq(createdAtMs)
      const timeline = [entry(createdAtMs, actorId, 'created', '')]
      const moments = { createdAtMs, updatedAtMs: createdAtMs }
      const facts = { id, seq, ...moments, createdBy: actorId }
      const incident: Incident = { ...facts, ...fields, ...OPENED, timeline }
      return (await records.update(id, (current) => current ?? incident)) ?? incident
    },
    async change(actorId, id, fields) {
      if (records.get(id) === null) refuseMissing(id)
      references.check(fields)
      return update(id, (current, atMs) => {
        const changed = changedNames(current, fields)
        if (changed.length === 0) return current
        const note = entry(atMs, actorId, 'changed', changed.map(toSnakeCase).join(', '))
        return { ...current, ...fields, timeline: appendEntry(current.timeline, note) }
      })
    },
    transition: (actorId, id, { to, note }) =>
      update(id, (current, atMs) => {
        const progress = advance(current, to, atMs)
        const text = `${current.status} → ${to}${note === '' ? '' : `: ${note}`}`
        const done = entry(atMs, actorId, 'transition', text)
        return { ...current, ...progress, timeline: appendEntry(current.timeline, done) }
      }),
    addNote: (actorId, id, text) =>
      update(id, (current, atMs) => {
        const note = entry(atMs, actorId, 'note', text)
        return { ...current, timeline: appendEntry(current.timeline, note) }
      }),
  }
}

const createUpdate =
  (records: Records<Incident>, nowMs: () => number) =>
  async (id: string, change: (current: Incident, atMs: number) => Incident): Promise<Incident> => {
    const changed = await records.update(id, (current) => {
      if (current === null) return null
      // a clock that is set back must not turn the timeline round
      const atMs = Math.max(nowMs(), current.updatedAtMs)
      const next = change(current, atMs)
      return next === current ? current : { ...next, updatedAtMs: atMs }
    })
    return changed ?? refuseMissing(id)
  }

const entry = (
  atMs: number,
  actorId: string,
  kind: TimelineEntry['kind'],
  text: string,
): TimelineEntry => ({ atMs, actorId, kind, text })

function matches(incident: Incident, filter: IncidentFilter): boolean {
  const { statuses, severities, assigneeIds, applicationIds, sources } = filter
  return (
    isAmong(statuses, incident.status) &&
    isAmong(severities, incident.severity) &&
    isAmong(assigneeIds, incident.assigneeId) &&
    isAmong(applicationIds, incident.applicationId) &&
    isAmong(sources, incident.source)
  )
}

const isAmong = (wanted: readonly string[], value: string | null): boolean =>
  wanted.length === 0 || (value !== null && wanted.includes(value))

const FIELD_NAMES = [
  'title',
  'description',
  'severity',
  'applicationId',
  'source',
  'assigneeId',
  'alertIds',
  'eventIds',
] as const satisfies readonly (keyof IncidentFields)[]

const changedNames = (current: Incident, fields: Partial<IncidentFields>): readonly string[] =>
  FIELD_NAMES.filter((name) => {
    const wanted = fields[name]
    return wanted !== undefined && JSON.stringify(wanted) !== JSON.stringify(current[name])
  })

const toSnakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function refuseMissing(id: string): never {
  throw new AppError('not_found', 'there is no such incident', { details: { incident_id: id } })
}

const tooMany = (max: number): AppError =>
  new AppError('overloaded', `there are ${max} incidents already; delete some first`)
