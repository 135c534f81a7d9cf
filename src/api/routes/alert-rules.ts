import { Type, type Static } from '@sinclair/typebox'

import { decodeCursor, encodeCursor } from '../../records/cursor.js'
import { RuleFields, type Rule } from '../../alerting/rule.js'
import { noticesOf, type Delivery } from '../../alerting/delivery.js'
import type { LoggedTransition } from '../../alerting/log.js'
import type { Notice } from '../../alerting/notice.js'
import { PrioritySchema } from '../../model/schemas.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { RECORD_BYTES, toIso, toIsoOrNull } from '../schemas/record.js'
import { Uuid } from '../schemas/source.js'
import type { Services } from '../services.js'

const IdParams = Type.Object({ id: Uuid })

const RuleSchema = Type.Object(
  {
    id: Uuid,
    version: Type.Integer({ minimum: 1 }),
    created_at: Timestamp,
    updated_at: Timestamp,
    updated_by: Type.String({ description: 'id of a user' }),
    ...RuleFields.properties,
    firing: Type.Integer({ minimum: 0, description: 'alerts of the rule that fire' }),
    evaluated_at: Type.Union([Timestamp, Type.Null()], {
      description: 'what arrived before this time was judged; null when it is not known',
    }),
    problem: Type.Union([Type.String(), Type.Null()], {
      description: 'what keeps the rule, or some of its groups, from being evaluated',
    }),
  },
  { title: 'AlertRule' },
)

const RuleExport = Type.Object({
  rules: Type.Array(RuleFields, { maxItems: 2_000 }),
})

const State = Type.Union(
  ['inactive', 'pending', 'firing', 'recovering', 'resolved'].map((name) => Type.Literal(name)),
)

const TransitionSchema = Type.Object(
  {
    id: Type.String({ description: 'the same however often it was decided' }),
    at: Timestamp,
    from: State,
    to: State,
    group: Type.Record(Type.String(), Type.String()),
    value: Type.Union([Type.Number(), Type.Null()]),
    alert_id: Type.Union([Uuid, Type.Null()]),
    is_flapping: Type.Boolean(),
    rule_version: Type.Integer(),
    severity: PrioritySchema,
    q: Type.String(),
    window_from: Timestamp,
    window_to: Timestamp,
    reason: Type.Union([Type.String(), Type.Null()], {
      description: 'why, where it was not the counts',
    }),
    notices: Type.Array(
      Type.Object({
        id: Type.String(),
        channel_id: Type.String(),
        outcome: Type.String({
          description:
            'waiting: not tried yet; failed: is tried again; sent; refused: is not tried again',
        }),
        attempts: Type.Integer({ minimum: 0 }),
        last_attempt_at: Type.Union([Timestamp, Type.Null()]),
        status: Type.Union([Type.Integer(), Type.Null()], {
          description: 'of the last HTTP reply',
        }),
        error: Type.Union([Type.String(), Type.Null()]),
      }),
    ),
  },
  { title: 'AlertTransition' },
)

async function toView(
  rule: Rule,
  { alerts, alertRuleStatus }: Pick<Services, 'alerts' | 'alertRuleStatus'>,
): Promise<Static<typeof RuleSchema>> {
  const status = await alertRuleStatus()
  return {
    id: rule.id,
    version: rule.version,
    created_at: toIso(rule.createdAtMs),
    updated_at: toIso(rule.updatedAtMs),
    updated_by: rule.updatedBy,
    ...rule.fields,
    firing: alerts.firingCount(rule.id),
    evaluated_at: toIsoOrNull(status?.untilMs ?? null),
    problem: status?.problems[rule.id] ?? null,
  }
}

const NOT_TRIED = { outcome: 'waiting', attempts: 0, atMs: null, status: 0, error: '' }

function toNotice({ id, channelId }: Notice, delivery: Delivery | undefined) {
  const { outcome, attempts, atMs, status, error } = delivery ?? NOT_TRIED
  return {
    id,
    channel_id: channelId,
    outcome,
    attempts,
    last_attempt_at: toIsoOrNull(atMs),
    status: status === 0 ? null : status,
    error: error === '' ? null : error,
  }
}

const toTransition = (
  one: LoggedTransition,
  deliveries: ReadonlyMap<string, Delivery>,
): Static<typeof TransitionSchema> => ({
  notices: noticesOf(one).map((notice) => toNotice(notice, deliveries.get(notice.id))),
  id: one.id,
  at: toIso(one.atMs),
  from: one.from,
  to: one.to,
  group: Object.fromEntries(one.groupBy.map((name, i) => [name, one.group[i] ?? ''])),
  value: one.value,
  alert_id: one.alertId,
  is_flapping: one.status.isFlapping,
  rule_version: one.ruleVersion,
  severity: one.severity,
  q: one.q,
  window_from: toIso(one.windowFromMs),
  window_to: toIso(one.windowToMs),
  reason: one.reason,
})

const isHistoryPosition = (value: unknown): value is readonly [number, string] =>
  Array.isArray(value) && Number.isFinite(value[0]) && typeof value[1] === 'string'

export const alertRuleRoutes = [
  route({
    id: 'listAlertRules',
    method: 'get',
    path: '/api/alert-rules',
    summary: 'Alert rules, newest first',
    role: 'viewer',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object(PageParameters),
    body: null,
    reply: PageSchema(RuleSchema),
    status: 200,
    errors: ['invalid_cursor'],
    handle: async ({ query: { limit, cursor } }, services) => {
      const { alertRules, cursorKey } = services
      const filters = { list: 'alert-rules' }
      const page = alertRules.page({ limit, cursor, filters, cursorKey })
      return { ...page, items: await Promise.all(page.items.map((rule) => toView(rule, services))) }
    },
  }),
  route({
    id: 'createAlertRule',
    method: 'post',
    path: '/api/alert-rules',
    summary: 'Creates an alert rule',
    description:
      'A rule counts what arrives, by groups, and each group that crosses the line is an alert. It begins with what is ' +
      'stored already. [Alerts](/docs/alerts) has the kinds of rules.',
    role: 'manager',
    limit: 'none',
    bodyBytes: RECORD_BYTES,
    query: Type.Object({}),
    body: RuleFields,
    reply: RuleSchema,
    status: 201,
    errors: ['overloaded', 'dependency_unavailable'],
    examples: {
      body: {
        name: 'Errors of the shop',
        severity: 'P2',
        q: 'source:shop severity>=error',
        kind: { type: 'threshold', window: '5m', op: '>', fire: 20, recover: 5 },
        group_by: ['host'],
      },
    },
    handle: async ({ body, principal }, services) =>
      toView(await services.alertRules.create(principal.userId, body), services),
  }),
  route({
    id: 'exportAlertRules',
    method: 'get',
    path: '/api/alert-rules/export',
    summary: 'All alert rules in the form that the import takes',
    role: 'viewer',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    body: null,
    reply: RuleExport,
    status: 200,
    errors: [],
    handle: (_, { alertRules }) => ({
      rules: alertRules
        .list()
        .toSorted((a, b) => (a.fields.name < b.fields.name ? -1 : 1))
        .map(({ fields }) => fields),
    }),
  }),
  route({
    id: 'importAlertRules',
    method: 'post',
    path: '/api/alert-rules/import',
    summary: 'Takes over exported alert rules',
    description:
      'A rule with the name of an existing one replaces it. When one of them is wrong, none is taken over.',
    role: 'manager',
    limit: 'none',
    bodyBytes: 8 * 1024 * 1024,
    query: Type.Object({}),
    body: RuleExport,
    reply: Type.Object({ rules: Type.Array(RuleSchema) }),
    status: 200,
    errors: ['overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, services) => {
      const rules = await services.alertRules.import(principal.userId, body.rules)
      return { rules: await Promise.all(rules.map((rule) => toView(rule, services))) }
    },
  }),
  route({
    id: 'getAlertRule',
    method: 'get',
    path: '/api/alert-rules/{id}',
    summary: 'An alert rule',
    role: 'viewer',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    params: IdParams,
    body: null,
    reply: RuleSchema,
    status: 200,
    errors: ['not_found'],
    handle: ({ params }, services) => toView(services.alertRules.get(params.id), services),
  }),
  route({
    id: 'replaceAlertRule',
    method: 'put',
    path: '/api/alert-rules/{id}',
    summary: 'Replaces an alert rule',
    description:
      'Its version grows. Alerts go on firing unless `q`, `kind` or `group_by` changed, or the rule is disabled: then they ' +
      'resolve.',
    role: 'manager',
    limit: 'none',
    bodyBytes: RECORD_BYTES,
    query: Type.Object({}),
    params: IdParams,
    body: RuleFields,
    reply: RuleSchema,
    status: 200,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, services) =>
      toView(await services.alertRules.replace(principal.userId, params.id, body), services),
  }),
  route({
    id: 'deleteAlertRule',
    method: 'delete',
    path: '/api/alert-rules/{id}',
    summary: 'Deletes an alert rule',
    description: 'Its alerts resolve and stay in the list.',
    role: 'manager',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    params: IdParams,
    body: null,
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { alertRules }) => {
      await alertRules.remove(params.id)
      return null
    },
  }),
  route({
    id: 'alertRuleHistory',
    method: 'get',
    path: '/api/alert-rules/{id}/history',
    summary: 'The transitions of a rule, newest first',
    description:
      'Each has the query, the window and the value that it was decided on. Kept for 400 days.',
    role: 'viewer',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object(PageParameters),
    params: IdParams,
    body: null,
    reply: PageSchema(TransitionSchema),
    status: 200,
    question: 'rollup',
    errors: ['invalid_cursor', 'dependency_unavailable'],
    handle: async ({ params: { id }, query: { limit, cursor } }, services) => {
      const { alertLog, cursorKey, deliveriesOf } = services
      const filters = { list: 'alert-history', id }
      const before =
        cursor === undefined ? null : decodeCursor(cursorKey, filters, cursor, isHistoryPosition)
      const found = await alertLog.history(id, before, limit + 1)
      const shown = found.slice(0, limit)
      const last = shown.at(-1)
      const deliveries = await deliveriesOf(shown.flatMap(noticesOf).map((notice) => notice.id))
      const hasMore = found.length > limit && last !== undefined
      return {
        items: shown.map((one) => toTransition(one, deliveries)),
        next_cursor: hasMore ? encodeCursor(cursorKey, filters, [last.atMs, last.id]) : null,
        has_more: hasMore,
      }
    },
  }),
]
