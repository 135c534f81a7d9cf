import { Type, type Static } from '@sinclair/typebox'
import {
  INCIDENT_STATUSES,
  MAX_TIMELINE_ENTRIES,
  TIMELINE_KINDS,
  type Incident,
  type IncidentFields,
} from '../../records/incidents.js'
import { MAX_LINE } from '../../query/parser.js'
import { ListParameter, PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { PrioritySchema } from '../../model/schemas.js'
import {
  Description,
  EventIds,
  RECORD_BYTES,
  Title,
  notBlank,
  toIso,
  toIsoOrNull,
} from '../schemas/record.js'
import { SourceName, Uuid } from '../schemas/source.js'

const MAX_EVIDENCE = 50

const EvidenceSchema = Type.Object({
  q: Type.String({ maxLength: MAX_LINE, description: 'a line of the query language' }),
  from: Type.String({ ...Timestamp, maxLength: 40 }),
  to: Type.String({ format: 'date-time', maxLength: 40, description: 'exclusive' }),
  count: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'occurrences, as they were when it became evidence',
  }),
})

const StatusSchema = Type.Union(INCIDENT_STATUSES.map((status) => Type.Literal(status)))
const NoteText = { ...notBlank(10_000), examples: ['The provider is informed.'] }
const OptionalTimestamp = Type.Union([Timestamp, Type.Null()])
const IdParams = Type.Object({ id: Uuid })

const INCIDENT_FIELDS = {
  id: Uuid,
  title: Type.String(),
  description: Type.String(),
  severity: PrioritySchema,
  status: StatusSchema,
  application_id: Type.Union([Type.String(), Type.Null()]),
  source: Type.Union([Type.String(), Type.Null()]),
  assignee_id: Type.Union([Type.String(), Type.Null()]),
  alert_ids: Type.Array(Type.String()),
  event_ids: Type.Array(Type.Integer()),
  evidence: Type.Array(EvidenceSchema, {
    description: 'what searches found when they were added',
  }),
  created_by: Type.String({ description: 'id of a user' }),
  created_at: Timestamp,
  updated_at: Timestamp,
  acknowledged_at: Type.Union([Timestamp, Type.Null()], {
    description: 'when it last left the status `open`',
  }),
  resolved_at: OptionalTimestamp,
  closed_at: OptionalTimestamp,
}

const IncidentSchema = Type.Object(
  {
    ...INCIDENT_FIELDS,
    timeline: Type.Array(
      Type.Object({
        at: Timestamp,
        actor_id: Type.String(),
        kind: Type.Union(TIMELINE_KINDS.map((kind) => Type.Literal(kind))),
        text: Type.String({
          description: 'the note; of a transition `from → to` and its note; of a change its fields',
        }),
      }),
      {
        description:
          `Oldest first. At most ${MAX_TIMELINE_ENTRIES} entries and 400,000 characters: beyond, ` +
          'the oldest but the first are deleted.',
      },
    ),
  },
  { title: 'Incident' },
)

const ListedIncidentSchema = Type.Object(
  {
    ...INCIDENT_FIELDS,
    timeline_entries: Type.Integer({ minimum: 0, description: 'length of its timeline' }),
  },
  { title: 'ListedIncident' },
)

const OPTIONAL_FIELDS = {
  description: Type.Optional(Description),
  application_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
  source: Type.Optional(Type.Union([SourceName, Type.Null()])),
  assignee_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
  alert_ids: Type.Optional(Type.Array(Uuid, { maxItems: 1_000 })),
  event_ids: Type.Optional(EventIds),
  evidence: Type.Optional(Type.Array(EvidenceSchema, { maxItems: MAX_EVIDENCE })),
}
const NewIncident = Type.Object({ title: Title, severity: PrioritySchema, ...OPTIONAL_FIELDS })
const IncidentPatch = Type.Partial(NewIncident)

const toFacts = (incident: Incident) => ({
  id: incident.id,
  title: incident.title,
  description: incident.description,
  severity: incident.severity,
  status: incident.status,
  application_id: incident.applicationId,
  source: incident.source,
  assignee_id: incident.assigneeId,
  alert_ids: incident.alertIds,
  event_ids: incident.eventIds,
  evidence: (incident.evidence ?? []).map(({ q, fromMs, toMs, count }) => {
    return { q, from: toIso(fromMs), to: toIso(toMs), count }
  }),
  created_by: incident.createdBy,
  created_at: toIso(incident.createdAtMs),
  updated_at: toIso(incident.updatedAtMs),
  acknowledged_at: toIsoOrNull(incident.acknowledgedAtMs),
  resolved_at: toIsoOrNull(incident.resolvedAtMs),
  closed_at: toIsoOrNull(incident.closedAtMs),
})

const toListed = (incident: Incident): Static<typeof ListedIncidentSchema> => ({
  ...toFacts(incident),
  timeline_entries: incident.timeline.length,
})

const toView = (incident: Incident): Static<typeof IncidentSchema> => ({
  ...toFacts(incident),
  timeline: incident.timeline.map(({ atMs, actorId, kind, text }) => {
    return { at: toIso(atMs), actor_id: actorId, kind, text }
  }),
})

const toEvidence = (all: readonly Static<typeof EvidenceSchema>[]) =>
  all.map(({ q, from, to, count }) => {
    return { q, fromMs: Date.parse(from), toMs: Date.parse(to), count }
  })

const toFields = (body: Static<typeof NewIncident>): IncidentFields => ({
  title: body.title,
  description: body.description ?? '',
  severity: body.severity,
  applicationId: body.application_id ?? null,
  source: body.source ?? null,
  assigneeId: body.assignee_id ?? null,
  alertIds: body.alert_ids ?? [],
  eventIds: body.event_ids ?? [],
  evidence: toEvidence(body.evidence ?? []),
})

const toPatch = (body: Static<typeof IncidentPatch>): Partial<IncidentFields> => ({
  ...(body.title !== undefined && { title: body.title }),
  ...(body.description !== undefined && { description: body.description }),
  ...(body.severity !== undefined && { severity: body.severity }),
  ...(body.application_id !== undefined && { applicationId: body.application_id }),
  ...(body.source !== undefined && { source: body.source }),
  ...(body.assignee_id !== undefined && { assigneeId: body.assignee_id }),
  ...(body.alert_ids !== undefined && { alertIds: body.alert_ids }),
  ...(body.event_ids !== undefined && { eventIds: body.event_ids }),
  ...(body.evidence !== undefined && { evidence: toEvidence(body.evidence) }),
})

const reads = [
  route({
    id: 'listIncidents',
    method: 'get',
    path: '/api/incidents',
    summary: 'Incidents, newest first',
    description: 'Without their timelines, which an incident itself has.',
    role: 'viewer',
    query: Type.Object({
      status: ListParameter(StatusSchema),
      severity: ListParameter(PrioritySchema),
      assignee_id: ListParameter(Uuid),
      application_id: ListParameter(Uuid),
      source: ListParameter(SourceName),
      ...PageParameters,
    }),
    reply: PageSchema(ListedIncidentSchema),
    errors: ['invalid_cursor'],
    handle: ({ query }, { incidents, cursorKey }) => {
      const { limit, cursor } = query
      const filter = {
        statuses: query.status ?? [],
        severities: query.severity ?? [],
        assigneeIds: query.assignee_id ?? [],
        applicationIds: query.application_id ?? [],
        sources: query.source ?? [],
      }
      const filters = { list: 'incidents', ...filter }
      const page = incidents.page({ limit, cursor, filters, cursorKey }, filter)
      return { ...page, items: page.items.map(toListed) }
    },
  }),
  route({
    id: 'getIncident',
    method: 'get',
    path: '/api/incidents/{id}',
    summary: 'One incident',
    role: 'viewer',
    params: IdParams,
    reply: IncidentSchema,
    errors: ['not_found'],
    handle: ({ params }, { incidents }) => toView(incidents.get(params.id)),
  }),
]

const edits = [
  route({
    id: 'createIncident',
    method: 'post',
    path: '/api/incidents',
    summary: 'Opens an incident',
    description: '`assignee_id` and `application_id` must exist. At most 100,000 incidents.',
    role: 'manager',
    bodyBytes: RECORD_BYTES,
    body: NewIncident,
    reply: IncidentSchema,
    status: 201,
    errors: ['overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, { incidents }) =>
      toView(await incidents.create(principal.userId, toFields(body))),
  }),
  route({
    id: 'changeIncident',
    method: 'patch',
    path: '/api/incidents/{id}',
    summary: 'Changes the fields of an incident that the body names',
    description: 'The status changes only through transitions.',
    role: 'manager',
    bodyBytes: RECORD_BYTES,
    params: IdParams,
    body: IncidentPatch,
    reply: IncidentSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { incidents }) =>
      toView(await incidents.change(principal.userId, params.id, toPatch(body))),
  }),
  route({
    id: 'deleteIncident',
    method: 'delete',
    path: '/api/incidents/{id}',
    summary: 'Deletes an incident',
    role: 'admin',
    params: IdParams,
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { incidents }) => {
      await incidents.remove(params.id)
      return null
    },
  }),
]

const moves = [
  route({
    id: 'transitionIncident',
    method: 'post',
    path: '/api/incidents/{id}/transition',
    summary: 'Moves an incident to another status',
    description:
      'open → acknowledged → investigating → resolved → closed; steps up to resolved may be skipped, ' +
      'and resolved or closed → open is a reopen, which clears `resolved_at` and `closed_at`. ' +
      'Anything else is `invalid_transition`, whose details name what is allowed.',
    role: 'manager',
    bodyBytes: RECORD_BYTES,
    params: IdParams,
    body: Type.Object({ to: StatusSchema, note: Type.Optional(NoteText) }),
    examples: { body: { to: 'acknowledged', note: 'I look at the payment provider.' } },
    reply: IncidentSchema,
    errors: ['not_found', 'invalid_transition', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { incidents }) => {
      const { to, note = '' } = body
      return toView(await incidents.transition(principal.userId, params.id, { to, note }))
    },
  }),
  route({
    id: 'addIncidentNote',
    method: 'post',
    path: '/api/incidents/{id}/notes',
    summary: 'Adds a note to the timeline',
    description: 'Answers with the incident; the note is the last entry of its timeline.',
    role: 'manager',
    bodyBytes: RECORD_BYTES,
    params: IdParams,
    body: Type.Object({ text: NoteText }),
    reply: IncidentSchema,
    status: 201,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { incidents }) =>
      toView(await incidents.addNote(principal.userId, params.id, body.text)),
  }),
]

export const incidentRoutes = [...reads, ...edits, ...moves]
