import { Type, type Static } from '@sinclair/typebox'
import type { Alert } from '../../records/alerts.js'
import { ListParameter, PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { PrioritySchema } from '../../model/schemas.js'
import { EventIds, RECORD_BYTES, Title, toIso, toIsoOrNull } from '../schemas/record.js'
import { SourceName, Uuid } from '../schemas/source.js'

const AlertState = Type.Union([Type.Literal('firing'), Type.Literal('resolved')])
const OptionalTimestamp = Type.Union([Timestamp, Type.Null()])

const AlertSchema = Type.Object(
  {
    id: Uuid,
    title: Type.String(),
    severity: PrioritySchema,
    read: Type.Boolean(),
    created_at: Timestamp,
    event_ids: Type.Array(Type.Integer()),
    related_source: Type.Union([Type.String(), Type.Null()]),
    rule_id: Type.Union([Uuid, Type.Null()], {
      description:
        'the rule that raised it; the fields below but the last two are null without one',
    }),
    state: Type.Union([AlertState, Type.Null()]),
    group: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()], {
      description: 'the values of the fields that the rule groups by',
    }),
    value: Type.Union([Type.Number(), Type.Null()], {
      description: 'when it began to fire, or resolved',
    }),
    started_at: OptionalTimestamp,
    resolved_at: OptionalTimestamp,
    acknowledged_by: Type.Union([Type.String(), Type.Null()], { description: 'id of a user' }),
    acknowledged_at: OptionalTimestamp,
  },
  { title: 'Alert' },
)

const ruleOf = ({ rule }: Alert) => {
  if (rule === undefined) return WITHOUT_RULE
  return {
    rule_id: rule.ruleId,
    state: rule.state,
    group: rule.group,
    value: rule.value,
    started_at: toIso(rule.startedAtMs),
    resolved_at: toIsoOrNull(rule.resolvedAtMs),
  }
}
const WITHOUT_RULE = {
  rule_id: null,
  state: null,
  group: null,
  value: null,
  started_at: null,
  resolved_at: null,
}

const toView = (alert: Alert): Static<typeof AlertSchema> => ({
  id: alert.id,
  title: alert.title,
  severity: alert.severity,
  read: alert.read,
  created_at: toIso(alert.createdAtMs),
  event_ids: alert.eventIds,
  related_source: alert.relatedSource,
  ...ruleOf(alert),
  acknowledged_by: alert.acknowledgedBy ?? null,
  acknowledged_at: toIsoOrNull(alert.acknowledgedAtMs ?? null),
})

export const alertRoutes = [
  route({
    id: 'listAlerts',
    method: 'get',
    path: '/api/alerts',
    summary: 'Alerts, newest first',
    role: 'viewer',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({
      read: Type.Optional(
        Type.Boolean({ description: 'true: only read alerts, false: only unread ones' }),
      ),
      severity: ListParameter(PrioritySchema),
      rule_id: Type.Optional(Uuid),
      state: Type.Optional(AlertState),
      ...PageParameters,
    }),
    body: null,
    reply: PageSchema(AlertSchema),
    status: 200,
    errors: ['invalid_cursor'],
    handle: ({ query }, { alerts, cursorKey }) => {
      const { limit, cursor, read = null, severity: severities = [] } = query
      const filter = { read, severities, ruleId: query.rule_id ?? null, state: query.state ?? null }
      const filters = { list: 'alerts', ...filter }
      const page = alerts.page({ limit, cursor, filters, cursorKey }, filter)
      return { ...page, items: page.items.map(toView) }
    },
  }),
  route({
    id: 'createAlert',
    method: 'post',
    path: '/api/alerts',
    summary: 'Creates an alert',
    description:
      'The default of `related_source` is the source that all events of `event_ids` share, if there is one. An alert ' +
      'is deleted with its related source. At most 200,000 alerts are kept; above that the oldest are deleted, read ' +
      'ones first.',
    role: 'manager',
    limit: 'none',
    bodyBytes: RECORD_BYTES,
    query: Type.Object({}),
    body: Type.Object({
      title: Title,
      severity: PrioritySchema,
      event_ids: Type.Optional(EventIds),
      related_source: Type.Optional(Type.Union([SourceName, Type.Null()])),
    }),
    reply: AlertSchema,
    status: 201,
    errors: ['dependency_unavailable'],
    handle: async ({ body }, { alerts }) => {
      const { title, severity, event_ids: eventIds = [], related_source: source = null } = body
      return toView(await alerts.create({ title, severity, eventIds, relatedSource: source }))
    },
  }),
  route({
    id: 'readAlert',
    method: 'post',
    path: '/api/alerts/{alert_id}/read',
    summary: 'Marks an alert as read',
    role: 'manager',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    params: Type.Object({ alert_id: Uuid }),
    body: null,
    reply: AlertSchema,
    status: 200,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { alerts }) => toView(await alerts.read(params.alert_id)),
  }),
  route({
    id: 'acknowledgeAlert',
    method: 'post',
    path: '/api/alerts/{alert_id}/acknowledge',
    summary: 'Says that somebody takes care of an alert, and marks it as read',
    description: 'The first user who does it is the one that is shown.',
    role: 'manager',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    params: Type.Object({ alert_id: Uuid }),
    body: null,
    reply: AlertSchema,
    status: 200,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, principal }, { alerts }) =>
      toView(await alerts.acknowledge(params.alert_id, principal.userId)),
  }),
  route({
    id: 'readAllAlerts',
    method: 'post',
    path: '/api/alerts/read-all',
    summary: 'Marks every alert as read',
    role: 'manager',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    body: null,
    reply: Type.Object({
      updated: Type.Integer({ minimum: 0, description: 'number of alerts that were unread' }),
    }),
    status: 200,
    errors: ['dependency_unavailable'],
    handle: async (_, { alerts }) => ({ updated: await alerts.readAll() }),
  }),
]
