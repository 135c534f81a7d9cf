/* Notification channels: where notices of rules go. Their secrets are stored sealed, and are in no reply. */

import { randomUUID } from 'node:crypto'

import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import type { Records } from '../records/newest-first.js'
import { pageNewestFirst, type PageQuery } from '../records/page.js'
import type { Seal } from '../lib/seal.js'

const Url = Type.String({
  pattern: '^https?://[^\\s@]+$',
  maxLength: 2_000,
  examples: ['https://hooks.example.com/alerts'],
})
const Secret = Type.String({ minLength: 1, maxLength: 2_000, description: 'in no reply' })
const closed = { additionalProperties: false }

/** The settings of each kind of channel, and which of them is its secret. */
const Target = Type.Union([
  Type.Object(
    {
      type: Type.Literal('webhook'),
      url: Url,
      secret: Type.Optional(
        Type.String({ ...Secret, description: 'signs each request; in no reply' }),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('slack'),
      secret: Type.String({ ...Url, description: 'the URL of an incoming webhook; in no reply' }),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('teams'),
      secret: Type.String({ ...Url, description: 'the URL of a workflow; in no reply' }),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('pagerduty'),
      secret: Type.String({ ...Secret, description: 'the routing key; in no reply' }),
      url: Type.Optional(
        Type.String({ ...Url, description: 'default https://events.pagerduty.com/v2/enqueue' }),
      ),
    },
    closed,
  ),
])
export type Target = Static<typeof Target>

export const ChannelFields = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 120, pattern: '\\S' }),
    enabled: Type.Optional(Type.Boolean({ description: 'default true' })),
    target: Target,
  },
  { ...closed, title: 'NotificationChannelFields' },
)
export type ChannelFields = Static<typeof ChannelFields>

export const ChannelDoc = Type.Object({
  id: Type.String(),
  createdAtMs: Type.Integer(),
  updatedAtMs: Type.Integer(),
  name: Type.String(),
  enabled: Type.Boolean(),
  /** The whole target as JSON: a URL may be a secret too. */
  sealedTarget: Type.String(),
})
export type Channel = Readonly<Static<typeof ChannelDoc>>

interface ChannelDeps {
  readonly records: Records<Channel>
  readonly seal: Seal
  readonly nowMs?: () => number
}

export type Channels = ReturnType<typeof createChannels>

const MAX_CHANNELS = 200

/** Every change may reject with `dependency_unavailable`. */
export function createChannels({ records, seal, nowMs = Date.now }: ChannelDeps) {
  const refuseMissing = (id: string): never => {
    throw new AppError('not_found', 'there is no such channel', { details: { channel_id: id } })
  }
  const targetOf = ({ id, sealedTarget }: Channel): Target | null => {
    const text = seal.open(sealedTarget, id)
    return text === null ? null : (JSON.parse(text) as Target) // was checked before it was sealed
  }
  return {
    find: (id: string): Channel | null => records.get(id),
    page: (query: PageQuery) => pageNewestFirst(records.list(), query),
    /** @throws AppError not_found */
    get: (id: string): Channel => records.get(id) ?? refuseMissing(id),
    /** @returns null where it was sealed with another key */
    targetOf,
    async create({ name, enabled = true, target }: ChannelFields): Promise<Channel> {
      if (records.size >= MAX_CHANNELS)
        throw new AppError('overloaded', `there are ${MAX_CHANNELS} channels, which is the most`)
      const atMs = nowMs()
      const facts = { id: randomUUID(), createdAtMs: atMs, updatedAtMs: atMs, name, enabled }
      const channel = { ...facts, sealedTarget: seal.seal(JSON.stringify(target), facts.id) }
      return (await records.update(channel.id, () => channel)) ?? channel
    },
    /** @throws AppError not_found */
    async replace(id: string, { name, enabled = true, target }: ChannelFields): Promise<Channel> {
      const channel = await records.update(id, (current) => {
        if (current === null) return null
        // A secret that is not given stays.
        const before = targetOf(current)
        const kept =
          before?.type === target.type && before.secret !== undefined && target.secret === undefined
            ? { ...target, secret: before.secret }
            : target
        const sealedTarget = seal.seal(JSON.stringify(kept), id)
        return { ...current, updatedAtMs: nowMs(), name, enabled, sealedTarget }
      })
      return channel ?? refuseMissing(id)
    },
    /** @throws AppError not_found */
    async remove(id: string): Promise<void> {
      if (!(await records.remove(id))) refuseMissing(id)
    },
  }
}
