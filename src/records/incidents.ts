import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import { PrioritySchema } from '../model/schemas.js'
import { NewestFirst, type Records } from './newest-first.js'
import type { PageQuery } from './page.js'
import { checkReferences } from './references.js'

export const INCIDENT_STATUSES = [
  'open',
  'acknowledged',
  'investigating',
  'resolved',
  'closed',
] as const
export type IncidentStatus = (typeof INCIDENT_STATUSES)[number]

export const TIMELINE_KINDS = ['created', 'changed', 'transition', 'note'] as const

const TimelineEntryDoc = Type.Object({
  atMs: Type.Integer(),
  actorId: Type.String(),
  kind: Type.Union(TIMELINE_KINDS.map((kind) => Type.Literal(kind))),
  text: Type.String(),
})
type TimelineEntry = Readonly<Static<typeof TimelineEntryDoc>>

/** The result of a search that a user added to an incident: the query, and the result at that time. */
const EvidenceDoc = Type.Object({
  q: Type.String(),
  fromMs: Type.Integer(),
  /** Exclusive. */
  toMs: Type.Integer(),
  count: Type.Integer(),
})

const OptionalText = Type.Union([Type.String(), Type.Null()])
const OptionalMs = Type.Union([Type.Integer(), Type.Null()])

/** An incident as it is stored; times in ms since 1970. */
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
  /** Missing in older records. */
  evidence: Type.Optional(Type.Array(EvidenceDoc)),
  status: Type.Union(INCIDENT_STATUSES.map((status) => Type.Literal(status))),
  /** The time of the last change from `open`; a reopening keeps it. */
  acknowledgedAtMs: OptionalMs,
  /** Set in `resolved` and `closed` only. */
  resolvedAtMs: OptionalMs,
  /** Set in `closed` only. */
  closedAtMs: OptionalMs,
  timeline: Type.Array(TimelineEntryDoc),
})
export type Incident = Readonly<Static<typeof IncidentDoc>>

const FIELD_NAMES = [
  'title',
  'description',
  'severity',
  'applicationId',
  'source',
  'assigneeId',
  'alertIds',
  'eventIds',
  'evidence',
] as const satisfies readonly (keyof Incident)[]

/** The fields that a person sets. */
export type IncidentFields = Pick<Incident, (typeof FIELD_NAMES)[number]>

export type IncidentProgress = Pick<
  Incident,
  'status' | 'acknowledgedAtMs' | 'resolvedAtMs' | 'closedAtMs'
>

/** An empty list matches any value. */
interface IncidentFilter {
  readonly statuses: readonly string[]
  readonly severities: readonly string[]
  readonly assigneeIds: readonly string[]
  readonly applicationIds: readonly string[]
  readonly sources: readonly string[]
}

interface IncidentDeps {
  readonly records: Records<Incident>
  readonly hasUser: (id: string) => boolean
  readonly hasApplication: (id: string) => boolean
  readonly nowMs?: () => number
}

interface Transition {
  readonly to: IncidentStatus
  /** '' for none. */
  readonly note: string
}

export type Incidents = ReturnType<typeof createIncidents>

export const MAX_INCIDENTS = 100_000
/** The most entries of a timeline, which keep it well below the size limit of a record even when every character is escaped. */
export const MAX_TIMELINE_ENTRIES = 1_000
const MAX_TIMELINE_CHARS = 400_000

/**
 * The incidents, held in memory and written through. Changes of one incident are serialised. Every
 * change may reject with `dependency_unavailable`.
 */
export function createIncidents(deps: IncidentDeps) {
  const { records } = deps
  const index = new NewestFirst(records)
  return {
    page: (query: PageQuery, filter: IncidentFilter) =>
      index.page(query, (incident) => matches(incident, filter)),
    has: (id: string) => records.get(id) !== null,
    /** @throws AppError not_found */
    get: (id: string): Incident => records.get(id) ?? refuseMissing(id),
    ...createEdits(deps, index),
    /** @throws AppError not_found */
    async remove(id: string): Promise<void> {
      if (!(await records.remove(id))) refuseMissing(id)
    },
    /** @returns the number of deleted incidents */
    clear: () => records.clear(),
  }
}

function createEdits(deps: IncidentDeps, index: NewestFirst<Incident>) {
  const { records, nowMs = Date.now } = deps
  const update = createUpdate(records, nowMs)
  return {
    /**
     * @param id set for an incident that may be opened again, which then has no effect
     * @throws AppError validation_error for a user or application that does not exist; overloaded
     */
    async create(actorId: string, fields: IncidentFields, id: string = randomUUID()) {
      checkFields(deps, fields)
      const createdAtMs = nowMs()
      const seq = index.nextSeq(createdAtMs)
      const timeline = [entry(createdAtMs, actorId, 'created', '')]
      const facts = { id, seq, createdAtMs, updatedAtMs: createdAtMs, createdBy: actorId }
      const incident: Incident = { ...facts, ...fields, ...OPENED, timeline }
      return (await records.update(id, (current) => current ?? incident)) ?? incident
    },
    /** @throws AppError not_found, validation_error */
    async change(actorId: string, id: string, fields: Partial<IncidentFields>) {
      if (records.get(id) === null) refuseMissing(id)
      checkFields(deps, fields)
      return update(id, (current, atMs) => {
        const changed = changedNames(current, fields)
        if (changed.length === 0) return current
        const note = entry(atMs, actorId, 'changed', changed.map(toSnakeCase).join(', '))
        return { ...current, ...fields, timeline: withEntry(current.timeline, note) }
      })
    },
    /** @throws AppError not_found, invalid_transition */
    transition: (actorId: string, id: string, { to, note }: Transition) =>
      update(id, (current, atMs) => {
        const progress = advance(current, to, atMs)
        const text = `${current.status} → ${to}${note === '' ? '' : `: ${note}`}`
        const done = entry(atMs, actorId, 'transition', text)
        return { ...current, ...progress, timeline: withEntry(current.timeline, done) }
      }),
    /** @throws AppError not_found */
    addNote: (actorId: string, id: string, text: string) =>
      update(id, (current, atMs) => {
        const note = entry(atMs, actorId, 'note', text)
        return { ...current, timeline: withEntry(current.timeline, note) }
      }),
  }
}

const createUpdate =
  (records: Records<Incident>, nowMs: () => number) =>
  async (id: string, change: (current: Incident, atMs: number) => Incident): Promise<Incident> => {
    const changed = await records.update(id, (current) => {
      if (current === null) return null
      // A clock that is set back must not reverse the timeline.
      const atMs = Math.max(nowMs(), current.updatedAtMs)
      const next = change(current, atMs)
      return next === current ? current : { ...next, updatedAtMs: atMs }
    })
    return changed ?? refuseMissing(id)
  }

const checkFields = (
  { hasUser, hasApplication }: IncidentDeps,
  { assigneeId, applicationId }: Partial<IncidentFields>,
): void =>
  checkReferences([
    { path: 'assignee_id', id: assigneeId, noun: 'user', exists: hasUser },
    { path: 'application_id', id: applicationId, noun: 'application', exists: hasApplication },
  ])

/**
 * open ──▶ acknowledged ──▶ investigating ──▶ resolved ──▶ closed
 * Forward skips up to resolved; resolved and closed ─▶ open is a reopen.
 */
const NEXT = {
  open: ['acknowledged', 'investigating', 'resolved'],
  acknowledged: ['investigating', 'resolved'],
  investigating: ['resolved'],
  resolved: ['closed', 'open'],
  closed: ['open'],
} as const satisfies Record<IncidentStatus, readonly IncidentStatus[]>

export const OPENED: IncidentProgress = {
  status: 'open',
  acknowledgedAtMs: null,
  resolvedAtMs: null,
  closedAtMs: null,
}

/** @throws AppError invalid_transition */
export function advance(
  { status: from, acknowledgedAtMs, resolvedAtMs }: IncidentProgress,
  to: IncidentStatus,
  atMs: number,
): IncidentProgress {
  const allowed: readonly IncidentStatus[] = NEXT[from]
  if (!allowed.includes(to)) {
    throw new AppError('invalid_transition', `an incident that is ${from} cannot become ${to}`, {
      details: { from, to, allowed },
    })
  }
  if (to === 'open') return { ...OPENED, acknowledgedAtMs }
  return {
    status: to,
    acknowledgedAtMs: from === 'open' ? atMs : acknowledgedAtMs,
    resolvedAtMs: to === 'resolved' ? atMs : resolvedAtMs,
    closedAtMs: to === 'closed' ? atMs : null,
  }
}

const entry = (
  atMs: number,
  actorId: string,
  kind: TimelineEntry['kind'],
  text: string,
): TimelineEntry => ({ atMs, actorId, kind, text })

/** Adds an entry. When there are too many entries or they are too long, the oldest are dropped, except the first. */
function withEntry(timeline: readonly TimelineEntry[], added: TimelineEntry): TimelineEntry[] {
  const [first, ...rest] = [...timeline, added]
  if (first === undefined) return []
  let chars = rest.reduce((sum, { text }) => sum + text.length, first.text.length)
  let from = Math.max(0, rest.length - (MAX_TIMELINE_ENTRIES - 1))
  for (let i = 0; i < from; i++) chars -= rest[i]?.text.length ?? 0
  while (chars > MAX_TIMELINE_CHARS && from < rest.length - 1) {
    chars -= rest[from]?.text.length ?? 0
    from++
  }
  return [first, ...rest.slice(from)]
}

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
