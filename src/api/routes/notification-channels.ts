import { randomUUID } from 'node:crypto'

import { Type, type Static } from '@sinclair/typebox'

import { ChannelFields, secretOf, type Channel, type Target } from '../../alerting/channel.js'
import type { LoggedTransition } from '../../alerting/alert-log.js'
import { INACTIVE } from '../../alerting/machine.js'
import { shownRequest } from '../../alerting/send.js'
import { crudRoutes, DocumentFields, IdParams, toDocumentFields } from '../crud.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { toIso } from '../schemas/record.js'
import type { Services } from '../services.js'

const ChannelSchema = Type.Object(
  {
    ...DocumentFields,
    name: Type.String(),
    enabled: Type.Boolean(),
    type: Type.Union([Type.String(), Type.Null()], {
      description: 'null: it was encrypted with another key, and must be entered again',
    }),
    url: Type.Union([Type.String(), Type.Null()], { description: 'null where it is a secret' }),
    has_secret: Type.Boolean(),
    to: Type.Union([Type.Array(Type.String()), Type.Null()], { description: 'of `email`' }),
    channel: Type.Union([Type.String(), Type.Null()], { description: 'of `slack_bot`' }),
    fallback: Type.Union([Type.String(), Type.Null()]),
    max_per_minute: Type.Union([Type.Integer(), Type.Null()]),
    template: Type.Union([Type.String(), Type.Null()]),
    failing: Type.Union(
      [
        Type.Object({
          since: Timestamp,
          error: Type.String({ description: 'of the last attempt' }),
        }),
        Type.Null(),
      ],
      { description: 'since when it does not deliver; null while it does' },
    ),
  },
  { title: 'NotificationChannel' },
)

async function toView(
  channel: Channel,
  { channels, alertRuleStatus }: Pick<Services, 'channels' | 'alertRuleStatus'>,
): Promise<Static<typeof ChannelSchema>> {
  const { name, enabled, fallback = null, maxPerMinute = null, template = null } = channel.fields
  const failing = (await alertRuleStatus())?.failing[channel.id]
  return {
    ...toDocumentFields(channel),
    name,
    enabled,
    ...toShown(channels.targetOf(channel)),
    // A fallback channel that was deleted is left out.
    fallback: fallback === null || channels.find(fallback) === null ? null : fallback,
    max_per_minute: maxPerMinute,
    template,
    failing: failing === undefined ? null : { since: toIso(failing.sinceMs), error: failing.error },
  }
}

const toShown = (target: Target | null) => ({
  type: target?.type ?? null,
  url: target !== null && 'url' in target ? (target.url ?? null) : null,
  has_secret: secretOf(target) !== undefined,
  to: target?.type === 'email' ? target.to : null,
  channel: target?.type === 'slack_bot' ? target.channel : null,
})

/** A test notice that looks like that of a rule. */
function sample(): LoggedTransition {
  const atMs = Date.now()
  const id = randomUUID()
  return {
    id,
    ruleId: id,
    ruleVersion: 1,
    ruleName: 'Test of the channel',
    severity: 'P4',
    groupBy: ['source'],
    group: ['shop'],
    from: 'inactive',
    to: 'firing',
    atMs,
    alertId: id,
    value: 42,
    q: 'source:shop severity>=error',
    windowFromMs: atMs - 300_000,
    windowToMs: atMs,
    reason: 'somebody tests the channel',
    startedAtMs: atMs,
    status: { ...INACTIVE, state: 'firing', flips: [] },
  }
}

const SAMPLE_FACTS = {
  usual: 3,
  samples: ['2026-01-01T00:00:00.000Z ERROR shop web-1: order 17 was lost'],
  links: null,
}

export const notificationChannelRoutes = [
  route({
    id: 'testChannel',
    method: 'post',
    path: '/api/notification-channels/{id}/test',
    summary: 'Sends a sample by a notification channel, once',
    role: 'manager',
    params: IdParams,
    reply: Type.Object({
      outcome: Type.String({
        description: 'sent; refused: it would not be tried again; failed: it would',
      }),
      status: Type.Union([Type.Integer(), Type.Null()], { description: 'of the HTTP reply' }),
      latency_ms: Type.Integer({ minimum: 0 }),
      error: Type.Union([Type.String(), Type.Null()]),
      request: Type.Union([Type.String(), Type.Null()], {
        description: 'what was sent, without secrets',
      }),
    }),
    errors: ['not_found'],
    handle: async ({ params }, { channels, sendNotice }) => {
      const channel = channels.get(params.id)
      const target = channels.targetOf(channel)
      if (target === null)
        return {
          outcome: 'refused',
          status: null,
          latency_ms: 0,
          error: 'its secret must be entered again',
          request: null,
        }
      const transition = sample()
      const { id } = transition
      const kind = 'transition'
      const notice = { id, key: id, kind, channelId: channel.id, transition } as const
      const message = {
        notices: [notice],
        receipt: null,
        facts: SAMPLE_FACTS,
        template: channel.fields.template ?? null,
      }
      const { outcome, status, latencyMs, error } = await sendNotice(target, message)
      const request = shownRequest(target, message)
      return { outcome, status, latency_ms: latencyMs, error, request }
    },
  }),
  ...crudRoutes({
    name: 'Channel',
    noun: 'notification channel',
    path: '/api/notification-channels',
    readers: 'manager',
    fields: ChannelFields,
    reply: ChannelSchema,
    example: {
      name: 'on call',
      target: { type: 'webhook', url: 'https://hooks.example.com/alerts', secret: 'a long secret' },
    },
    texts: {
      list: 'Their secrets are in no reply.',
      create: '[Alerts](/docs/alerts#channels) says what each kind sends.',
      replace: 'A secret that is not given stays, as long as the type and the host of `url` do.',
      remove: 'Its waiting notices are not sent any more.',
    },
    documents: ({ channels }) => channels,
    toGiven: (fields) => fields,
    toView,
  }),
]
