import { randomUUID } from 'node:crypto'

import { Type, type Static } from '@sinclair/typebox'

import { ChannelFields, type Channel } from '../../alerting/channel.js'
import type { LoggedTransition } from '../../alerting/log.js'
import { INACTIVE } from '../../alerting/machine.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { toIso } from '../schemas/record.js'
import { Uuid } from '../schemas/source.js'
import type { Services } from '../services.js'

const IdParams = Type.Object({ id: Uuid })
const CHANNEL_BYTES = 64 * 1024

const ChannelSchema = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    enabled: Type.Boolean(),
    type: Type.Union([Type.String(), Type.Null()], {
      description: 'null: it was sealed with another key, and has to be entered anew',
    }),
    url: Type.Union([Type.String(), Type.Null()], { description: 'null where it is a secret' }),
    has_secret: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'NotificationChannel' },
)

function toView(
  channel: Channel,
  { channels }: Pick<Services, 'channels'>,
): Static<typeof ChannelSchema> {
  const target = channels.targetOf(channel)
  return {
    id: channel.id,
    name: channel.name,
    enabled: channel.enabled,
    type: target?.type ?? null,
    url: target !== null && 'url' in target ? (target.url ?? null) : null,
    has_secret: target?.secret !== undefined,
    created_at: toIso(channel.createdAtMs),
    updated_at: toIso(channel.updatedAtMs),
  }
}

/** A notice that looks like that of a rule. */
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

export const notificationChannelRoutes = [
  route({
    id: 'listChannels',
    method: 'get',
    path: '/api/notification-channels',
    summary: 'Notification channels, newest first, without their secrets',
    role: 'manager',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object(PageParameters),
    body: null,
    reply: PageSchema(ChannelSchema),
    status: 200,
    errors: ['invalid_cursor'],
    handle: ({ query: { limit, cursor } }, services) => {
      const { channels, cursorKey } = services
      const page = channels.page({ limit, cursor, filters: { list: 'channels' }, cursorKey })
      return { ...page, items: page.items.map((channel) => toView(channel, services)) }
    },
  }),
  route({
    id: 'createChannel',
    method: 'post',
    path: '/api/notification-channels',
    summary: 'Creates a notification channel',
    description: '[Alerts](/docs/alerts#channels) says what each kind sends.',
    role: 'manager',
    limit: 'none',
    bodyBytes: CHANNEL_BYTES,
    query: Type.Object({}),
    body: ChannelFields,
    reply: ChannelSchema,
    status: 201,
    errors: ['overloaded', 'dependency_unavailable'],
    handle: async ({ body }, services) => toView(await services.channels.create(body), services),
  }),
  route({
    id: 'replaceChannel',
    method: 'put',
    path: '/api/notification-channels/{id}',
    summary: 'Replaces a notification channel',
    description: 'An optional secret that is not given stays, as long as the type does.',
    role: 'manager',
    limit: 'none',
    bodyBytes: CHANNEL_BYTES,
    query: Type.Object({}),
    params: IdParams,
    body: ChannelFields,
    reply: ChannelSchema,
    status: 200,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, body }, services) =>
      toView(await services.channels.replace(params.id, body), services),
  }),
  route({
    id: 'deleteChannel',
    method: 'delete',
    path: '/api/notification-channels/{id}',
    summary: 'Deletes a notification channel',
    description: 'Its waiting notices are not sent any more.',
    role: 'manager',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    params: IdParams,
    body: null,
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { channels }) => {
      await channels.remove(params.id)
      return null
    },
  }),
  route({
    id: 'testChannel',
    method: 'post',
    path: '/api/notification-channels/{id}/test',
    summary: 'Sends a sample by a notification channel, once',
    role: 'manager',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    params: IdParams,
    body: null,
    reply: Type.Object({
      outcome: Type.String({
        description: 'sent; refused: it would not be tried again; failed: it would',
      }),
      status: Type.Union([Type.Integer(), Type.Null()], { description: 'of the HTTP reply' }),
      latency_ms: Type.Integer({ minimum: 0 }),
      error: Type.Union([Type.String(), Type.Null()]),
    }),
    status: 200,
    errors: ['not_found'],
    handle: async ({ params }, { channels, sendNotice }) => {
      const channel = channels.get(params.id)
      const target = channels.targetOf(channel)
      if (target === null)
        return {
          outcome: 'refused',
          status: null,
          latency_ms: 0,
          error: 'its secret has to be entered anew',
        }
      const transition = sample()
      const notice = { id: transition.id, channelId: channel.id, transition }
      const { outcome, status, latencyMs, error } = await sendNotice(target, notice)
      return { outcome, status, latency_ms: latencyMs, error }
    },
  }),
]
