import { Type, type Static } from '@sinclair/typebox'

import { readPage } from '../../records/page.js'
import type { Rule } from '../../alerting/rule.js'
import { RuleFields } from '../../alerting/rule-fields.js'
import { inOrder } from '../../alerting/rules.js'
import type { Delivery } from '../../alerting/delivery-log.js'
import { noticesOf } from '../../alerting/notices.js'
import { MAX_TRANSITIONS } from '../../alerting/backtest.js'
import type { EvaluationStatus } from '../../alerting/status.js'
import { isBehind } from '../../alerting/system-alert.js'
import type { LoggedTransition } from '../../alerting/alert-log.js'
import type { Notice } from '../../alerting/notices.js'
import { PrioritySchema } from '../../model/schemas.js'
import { crudRoutes, DocumentFields, IdParams, toDocumentFields } from '../crud.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { RECORD_BYTES, toIso, toIsoOrNull } from '../schemas/record.js'
import { Uuid } from '../schemas/source.js'
import type { Services } from '../services.js'

const RuleSchema = Type.Object(
  {
    ...DocumentFields,
    ...RuleFields.properties,
    state: Type.Union(
      ['disabled', 'unknown', 'firing', 'ok'].map((name) => Type.Literal(name)),
      {
        description: 'unknown: it cannot be evaluated now, so nothing fires and nothing resolves',
      },
    ),
    firing: Type.Integer({ minimum: 0, description: 'alerts of the rule that fire' }),
    evaluated_at: Type.Union([Timestamp, Type.Null()], {
      description:
        'messages that arrived before this time are evaluated; null when it is not known',
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
        id: Type.String({
          description:
            'the key by which receivers identify the alert: `Idempotency-Key` of a webhook; the end of an alert has that of its beginning',
        }),
        channel_id: Type.String(),
        outcome: Type.String({
          description:
            'waiting: not tried yet; failed: is tried again; held: a silence or maintenance window holds it back; sent; ' +
            'refused: is not tried again; silenced: its alert resolved while it was held; dropped: the queue was full',
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
  const firing = alerts.firingCount(rule.id)
  return {
    ...toDocumentFields(rule),
    ...rule.fields,
    state: stateOf(rule, status, firing),
    firing,
    evaluated_at: toIsoOrNull(status?.untilMs ?? null),
    problem: status?.problems[rule.id] ?? null,
  }
}

function stateOf({ id, fields }: Rule, status: EvaluationStatus | null, firing: number): string {
  if (fields.enabled === false) return 'disabled'
  const isKnown =
    status !== null && !isBehind(status.untilMs, Date.now()) && !status.unknown.includes(id)
  if (!isKnown) return 'unknown'
  return firing > 0 ? 'firing' : 'ok'
}

const NOT_TRIED = { outcome: 'waiting', attempts: 0, atMs: null, status: 0, error: '' }

function toNotice({ key, channelId }: Notice, delivery: Delivery | undefined) {
  const { outcome, attempts, atMs, status, error } = delivery ?? NOT_TRIED
  return {
    id: key,
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

const EXAMPLE: RuleFields = {
  name: 'Errors of the shop',
  severity: 'P2',
  q: 'source:shop severity>=error',
  kind: { type: 'threshold', window: '5m', op: '>', fire: 20, recover: 5 },
  group_by: ['host'],
}

const VersionSchema = Type.Object(
  {
    version: Type.Integer({ minimum: 1 }),
    updated_at: Timestamp,
    updated_by: Type.String({ description: 'id of a user; empty for the service' }),
    fields: RuleFields,
  },
  { title: 'AlertRuleVersion' },
)

const BacktestSchema = Type.Object(
  {
    from: Timestamp,
    until: Timestamp,
    is_complete: Type.Boolean(),
    every_s: Type.Integer({ description: 'seconds between two evaluations' }),
    firing: Type.Integer({ minimum: 0, description: 'how often a group began to fire' }),
    groups: Type.Integer({ minimum: 0, description: 'groups with transitions among those shown' }),
    left_out: Type.Integer({ minimum: 0, description: 'counts of groups beyond `max_groups`' }),
    transition_count: Type.Integer({ minimum: 0 }),
    transitions: Type.Array(
      Type.Object({
        at: Timestamp,
        from: State,
        to: State,
        group: Type.Array(Type.String(), { description: 'in the order of `group_by`' }),
        value: Type.Number(),
        is_flapping: Type.Boolean(),
      }),
      { maxItems: MAX_TRANSITIONS, description: `the first ${MAX_TRANSITIONS}, oldest first` },
    ),
  },
  { title: 'AlertRuleBacktest' },
)

export const alertRuleRoutes = [
  route({
    id: 'exportAlertRules',
    method: 'get',
    path: '/api/alert-rules/export',
    summary: 'All alert rules in the form that the import takes',
    role: 'viewer',
    reply: RuleExport,
    errors: [],
    handle: (_, { alertRules }) => ({
      rules: inOrder(alertRules.list()).map(({ fields }) => fields),
    }),
  }),
  route({
    id: 'importAlertRules',
    method: 'post',
    path: '/api/alert-rules/import',
    summary: 'Imports exported alert rules',
    description:
      'A rule with the name of an existing one replaces it. Of several rules with one name, the first replaces the oldest, ' +
      'and so on. When one of them is wrong, none is imported.',
    role: 'manager',
    bodyBytes: 8 * 1024 * 1024,
    body: RuleExport,
    examples: { body: { rules: [EXAMPLE] } },
    reply: Type.Object({ rules: Type.Array(RuleSchema) }),
    errors: ['overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, services) => {
      const rules = await services.alertRules.import(principal.userId, body.rules)
      return { rules: await Promise.all(rules.map((rule) => toView(rule, services))) }
    },
  }),
  route({
    id: 'alertRuleHistory',
    method: 'get',
    path: '/api/alert-rules/{id}/history',
    summary: 'The transitions of a rule, newest first',
    description:
      'Each has the query, the window and the value that it was decided on. Kept for 400 days, also of a rule that was ' +
      'deleted.',
    role: 'viewer',
    query: Type.Object(PageParameters),
    params: IdParams,
    reply: PageSchema(TransitionSchema),
    question: 'rollup',
    errors: ['not_found', 'invalid_cursor', 'dependency_unavailable'],
    handle: async ({ params: { id }, query: { limit, cursor } }, services) => {
      const { alertLog, alertRules, cursorKey, deliveriesOf } = services
      const page = await readPage(
        { limit, cursor, filters: { list: 'alert-history', id }, cursorKey },
        {
          isPosition: isHistoryPosition,
          read: async (before, most) => await alertLog.history(id, before, most),
          positionOf: (one) => [one.atMs, one.id] as const,
        },
      )
      // A deleted rule keeps its history.
      if (page.items.length === 0 && cursor === undefined) alertRules.get(id)
      const deliveries = await deliveriesOf(
        page.items.flatMap(noticesOf).map((notice) => notice.id),
      )
      return { ...page, items: page.items.map((one) => toTransition(one, deliveries)) }
    },
  }),
  route({
    id: 'alertRuleVersions',
    method: 'get',
    path: '/api/alert-rules/{id}/versions',
    summary: 'What a rule was, newest first',
    description:
      'The current version and the ten before it. To go back, replace the rule by `fields` of one.',
    role: 'viewer',
    params: IdParams,
    reply: Type.Object({ items: Type.Array(VersionSchema) }),
    errors: ['not_found'],
    handle: ({ params }, { alertRules }) => {
      const rule = alertRules.get(params.id)
      const items = [rule, ...(rule.earlier ?? [])].map(
        ({ version, updatedAtMs, updatedBy, fields }) => ({
          version,
          updated_at: toIso(updatedAtMs),
          updated_by: updatedBy,
          fields,
        }),
      )
      return { items }
    },
  }),
  route({
    id: 'backtestAlertRule',
    method: 'post',
    path: '/api/alert-rules/backtest',
    summary: 'What a rule would have done in the last days',
    description:
      'Evaluates the rule on stored events. A rule with a shorter interval than a minute is evaluated once a minute. It ' +
      'stops after 25 seconds: `is_complete` is false then, and `until` says how far it came.',
    role: 'viewer',
    bodyBytes: RECORD_BYTES,
    body: Type.Object(
      {
        rule: RuleFields,
        days: Type.Optional(Type.Integer({ minimum: 1, maximum: 30, description: 'default 7' })),
      },
      { additionalProperties: false },
    ),
    reply: BacktestSchema,
    question: 'search',
    handlerTimeoutMs: 60_000,
    errors: ['dependency_unavailable'],
    examples: { body: { rule: EXAMPLE, days: 7 } },
    handle: async ({ body: { rule, days = 7 }, signal }, { backtestRule }) => {
      const found = await backtestRule(rule, days, signal)
      return {
        from: toIso(found.fromMs),
        until: toIso(found.untilMs),
        is_complete: found.isComplete,
        every_s: found.everyMs / 1_000,
        firing: found.firing,
        groups: found.groups,
        left_out: found.leftOut,
        transition_count: found.transitionCount,
        transitions: found.transitions.map(({ group, transition, status, value }) => ({
          at: toIso(transition.atMs),
          from: transition.from,
          to: transition.to,
          group: [...group],
          value,
          is_flapping: status.isFlapping,
        })),
      }
    },
  }),
  ...crudRoutes({
    name: 'AlertRule',
    noun: 'alert rule',
    path: '/api/alert-rules',
    readers: 'viewer',
    fields: RuleFields,
    reply: RuleSchema,
    example: EXAMPLE,
    texts: {
      create:
        'A rule counts what arrives, by groups, and each group that crosses the threshold is an alert. It begins with what is ' +
        'stored already. [Alerts](/docs/alerts) has the kinds of rules.',
      replace:
        'Its version grows. Alerts go on firing unless `q`, `kind`, `group_by`, `max_age` or `time` changed, or the rule is disabled: then ' +
        'they resolve.',
      remove: 'Its alerts resolve and stay in the list.',
    },
    documents: ({ alertRules }) => alertRules,
    toGiven: (fields) => fields,
    toView,
  }),
]
