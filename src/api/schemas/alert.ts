import { Type, type Static } from '@sinclair/typebox'

import { PrioritySchema } from '../../model/schemas.js'
import type { Alert } from '../../records/alerts.js'
import { Timestamp } from './event.js'
import { toIso, toIsoOrNull } from './record.js'
import { Uuid } from './source.js'

export const AlertState = Type.Union([Type.Literal('firing'), Type.Literal('resolved')])
const OptionalTimestamp = Type.Union([Timestamp, Type.Null()])

export const AlertSchema = Type.Object(
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

export const toAlertView = (alert: Alert): Static<typeof AlertSchema> => ({
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
