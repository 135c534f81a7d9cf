import { Type } from '@sinclair/typebox'

import { labelsOfAlert, Matchers, matchesAll } from '../../alerting/matchers.js'
import { isOpen, silenceState, WindowFields } from '../../alerting/suppression.js'
import { DAY_MS } from '../../model/time.js'
import { crudRoutes, DocumentFields, toDocumentFields } from '../crud.js'
import { parseQueryTime } from '../query-time.js'
import { route } from '../route.js'
import { AlertSchema, toAlertView } from '../schemas/alert.js'
import { Timestamp } from '../schemas/event.js'
import { notBlank, RECORD_BYTES, toIso } from '../schemas/record.js'

const Time = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'ISO 8601, or relative such as `now+2h`',
})

const SilenceFields = Type.Object(
  {
    matchers: Matchers,
    reason: notBlank(500),
    starts_at: Type.Optional(Type.String({ ...Time, description: 'default: now' })),
    ends_at: Time,
  },
  { additionalProperties: false, title: 'SilenceFields' },
)

const SilenceSchema = Type.Object(
  {
    ...DocumentFields,
    matchers: Matchers,
    reason: Type.String(),
    starts_at: Timestamp,
    ends_at: Timestamp,
    state: Type.Union([Type.Literal('pending'), Type.Literal('active'), Type.Literal('expired')]),
  },
  { title: 'Silence' },
)

const WindowSchema = Type.Object(
  {
    ...DocumentFields,
    ...WindowFields.properties,
    is_open: Type.Boolean({ description: 'whether it holds notices back now' }),
  },
  { title: 'MaintenanceWindow' },
)

const MAX_SHOWN = 50

export const quietRoutes = [
  route({
    id: 'previewSilence',
    method: 'post',
    path: '/api/silences/preview',
    summary: 'The alerts whose notices matchers would hold back',
    role: 'viewer',
    bodyBytes: RECORD_BYTES,
    body: Type.Object({ matchers: Matchers }, { additionalProperties: false }),
    reply: Type.Object({
      firing: Type.Integer({ minimum: 0, description: 'alerts that fire now' }),
      last_day: Type.Integer({ minimum: 0, description: 'alerts that began within 24 hours' }),
      alerts: Type.Array(AlertSchema, {
        maxItems: MAX_SHOWN,
        description: `the newest ${MAX_SHOWN} of those that fire`,
      }),
    }),
    errors: [],
    examples: { body: { matchers: [{ field: 'host', value: 'web-*' }] } },
    handle: ({ body: { matchers } }, { alerts, alertRules }) => {
      const recent = alerts.sinceOrFiring(Date.now() - DAY_MS).filter((alert) => {
        const name = alertRules.find(alert.rule?.ruleId ?? '')?.fields.name ?? ''
        return matchesAll(matchers, labelsOfAlert(alert, name))
      })
      const firing = recent.filter(({ rule }) => rule?.state === 'firing')
      return {
        firing: firing.length,
        last_day: recent.filter((one) => one.createdAtMs > Date.now() - DAY_MS).length,
        alerts: firing.slice(0, MAX_SHOWN).map(toAlertView),
      }
    },
  }),
  ...crudRoutes({
    name: 'Silence',
    noun: 'silence',
    path: '/api/silences',
    readers: 'viewer',
    fields: SilenceFields,
    reply: SilenceSchema,
    example: {
      matchers: [
        { field: 'rule_id', value: '3f1c9a52-7f0e-4a51-9a7e-2f6f0b8f4c11' },
        { field: 'host', value: 'web-*' },
      ],
      reason: 'the shop moves to another rack',
      ends_at: 'now+2h',
    },
    texts: {
      list: 'Those that ended more than 30 days ago are deleted.',
      create:
        'Alerts that match go on firing and resolving, but no channel is notified. What still fires when it ends is sent ' +
        'then. To mute a rule, match its `rule_id`; to mute a group or a template, its fields too.',
    },
    documents: ({ silences }) => silences,
    toGiven: ({ matchers, reason, starts_at: starts = 'now', ends_at: ends }) => ({
      matchers,
      reason,
      startsAtMs: parseQueryTime(starts, 'starts_at', 'body'),
      endsAtMs: parseQueryTime(ends, 'ends_at', 'body'),
    }),
    toView: (silence) => ({
      ...toDocumentFields(silence),
      matchers: silence.fields.matchers,
      reason: silence.fields.reason,
      starts_at: toIso(silence.fields.startsAtMs),
      ends_at: toIso(silence.fields.endsAtMs),
      state: silenceState(silence.fields, Date.now()),
    }),
  }),
  ...crudRoutes({
    name: 'MaintenanceWindow',
    noun: 'maintenance window',
    path: '/api/maintenance-windows',
    readers: 'viewer',
    fields: WindowFields,
    reply: WindowSchema,
    example: {
      name: 'Backups of the shop',
      reason: 'the database is slow while it is copied',
      matchers: [{ field: 'source', value: 'shop' }],
      time_zone: 'Europe/Berlin',
      days: ['sat', 'sun'],
      from: '22:00',
      to: '02:00',
    },
    texts: {
      create:
        'It holds notices back like a silence, each week, from `from` to `to` by the clock of its zone.',
    },
    documents: ({ maintenanceWindows }) => maintenanceWindows,
    toGiven: (fields) => fields,
    toView: (window) => ({
      ...toDocumentFields(window),
      ...window.fields,
      is_open: isOpen(window.fields, Date.now()),
    }),
  }),
]
