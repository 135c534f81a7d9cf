import { Type } from '@sinclair/typebox'
import { AlertSchema, AlertState, toAlertView } from '../schemas/alert.js'
import { ListParameter, PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { PrioritySchema } from '../../model/schemas.js'
import { EventIds, RECORD_BYTES, Title } from '../schemas/record.js'
import { SourceName, Uuid } from '../schemas/source.js'

export const alertRoutes = [
  route({
    id: 'listAlerts',
    method: 'get',
    path: '/api/alerts',
    summary: 'Alerts, newest first',
    role: 'viewer',
    query: Type.Object({
      read: Type.Optional(
        Type.Boolean({ description: '`true`: only read alerts, `false`: only unread ones' }),
      ),
      severity: ListParameter(PrioritySchema),
      rule_id: Type.Optional(Uuid),
      state: Type.Optional(AlertState),
      ...PageParameters,
    }),
    reply: PageSchema(AlertSchema),
    errors: ['invalid_cursor'],
    handle: ({ query }, { alerts, cursorKey }) => {
      const { limit, cursor, read = null, severity: severities = [] } = query
      const filter = { read, severities, ruleId: query.rule_id ?? null, state: query.state ?? null }
      const filters = { list: 'alerts', ...filter }
      const page = alerts.page({ limit, cursor, filters, cursorKey }, filter)
      return { ...page, items: page.items.map(toAlertView) }
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
    bodyBytes: RECORD_BYTES,
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
      return toAlertView(await alerts.create({ title, severity, eventIds, relatedSource: source }))
    },
  }),
  route({
    id: 'readAlert',
    method: 'post',
    path: '/api/alerts/{alert_id}/read',
    summary: 'Marks an alert as read',
    role: 'manager',
    params: Type.Object({ alert_id: Uuid }),
    reply: AlertSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { alerts, announce }) => {
      const read = await alerts.read(params.alert_id)
      announce()
      return toAlertView(read)
    },
  }),
  route({
    id: 'acknowledgeAlert',
    method: 'post',
    path: '/api/alerts/{alert_id}/acknowledge',
    summary: 'Says that somebody takes care of an alert, and marks it as read',
    description: 'The first user who does it is the one that is shown.',
    role: 'manager',
    params: Type.Object({ alert_id: Uuid }),
    reply: AlertSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, principal }, { alerts, announce }) => {
      const acknowledged = await alerts.acknowledge(params.alert_id, principal.userId)
      announce()
      return toAlertView(acknowledged)
    },
  }),
  route({
    id: 'readAllAlerts',
    method: 'post',
    path: '/api/alerts/read-all',
    summary: 'Marks every alert as read',
    role: 'manager',
    reply: Type.Object({
      updated: Type.Integer({ minimum: 0, description: 'number of alerts that were unread' }),
    }),
    errors: ['dependency_unavailable'],
    handle: async (_, { alerts, announce }) => {
      const updated = await alerts.readAll()
      announce()
      return { updated }
    },
  }),
]
