/* Notification channels, the targets of notices. Their secrets are stored encrypted, and no reply contains them. */

import { isDeepStrictEqual } from 'node:util'

import { Type, type Static } from '@sinclair/typebox'

import { createDocuments, DocumentOf, type Document, type Documents } from '../records/documents.js'
import type { Records } from '../records/newest-first.js'
import { AppError } from '../model/errors.js'
import { nameOf } from '../model/schemas.js'
import type { Seal } from '../coordination/seal.js'
import { templateFault } from './template.js'

const AN_URL = 'an http or https URL without blanks and `@`'
const Url = Type.String({
  pattern: '^https?://[^\\s@]+$',
  maxLength: 2_000,
  description: AN_URL,
  examples: ['https://hooks.example.com/alerts'],
})
const Secret = Type.String({ minLength: 1, maxLength: 2_000, description: 'in no reply' })
/** The schema of a secret. A change of a channel may omit it when one is stored for the same host. */
const needed = (schema: typeof Secret, says: string) =>
  Type.Optional(Type.String({ ...schema, description: `${says}; in no reply` }))
const closed = { additionalProperties: false }

/** The settings of each kind of channel, its secret included. */
const GivenTarget = Type.Union([
  Type.Object(
    {
      type: Type.Literal('webhook'),
      url: Url,
      secret: Type.Optional(
        Type.String({ ...Secret, description: 'signs each request; in no reply' }),
      ),
      previous_secret: Type.Optional(
        Type.String({
          ...Secret,
          description: 'signs each request too, while receivers change to `secret`; in no reply',
        }),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('slack'),
      secret: needed(Url, 'the URL of an incoming webhook'),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('slack_bot'),
      secret: needed(Secret, 'a bot token with `chat:write`'),
      channel: Type.String({
        pattern: '^[#A-Za-z0-9_-]{1,80}$',
        maxLength: 80,
        description: 'the id of a channel, or its name with `#`',
        examples: ['C024BE91L'],
      }),
      url: Type.Optional(
        Type.String({ ...Url, description: `${AN_URL}; default https://slack.com/api` }),
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('email', { description: 'by the mail server of `SMTP_URL`' }),
      to: Type.Array(
        Type.String({
          pattern: '^[^\\s@<>(),;:"]{1,64}@[A-Za-z0-9.-]{1,190}$',
          maxLength: 254,
          description: 'an e-mail address',
          examples: ['oncall@example.com'],
        }),
        { minItems: 1, maxItems: 20, uniqueItems: true },
      ),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('alertmanager', {
        description:
          'the API v2 of Prometheus Alertmanager, to which firing alerts are sent again each minute',
      }),
      url: Type.String({
        ...Url,
        description: `${AN_URL}, and without \`/api/v2\``,
        examples: ['http://alertmanager:9093'],
      }),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('teams'),
      secret: needed(Url, 'the URL of a workflow'),
    },
    closed,
  ),
  Type.Object(
    {
      type: Type.Literal('pagerduty'),
      secret: needed(Secret, 'the routing key'),
      url: Type.Optional(
        Type.String({
          ...Url,
          description: `${AN_URL}; default https://events.pagerduty.com/v2/enqueue`,
        }),
      ),
    },
    closed,
  ),
])
type GivenTarget = Static<typeof GivenTarget>

/** A target as it is stored. Only a webhook may be without a secret. */
export type Target = Complete<GivenTarget>
type Complete<T extends GivenTarget> = T extends { type: 'webhook' | 'email' | 'alertmanager' }
  ? T
  : T & { readonly secret: string }

export const ChannelFields = Type.Object(
  {
    name: nameOf(120),
    enabled: Type.Optional(Type.Boolean({ description: 'default true' })),
    target: GivenTarget,
    fallback: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{8}-[0-9a-f-]{27}$',
        maxLength: 36,
        description: 'the id of the channel that gets the notices that this one cannot deliver',
      }),
    ),
    template: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4_000,
        description:
          'what a message about one alert says: Handlebars with `if` and `each`; the first line is the title. Default: what, ' +
          'where, how much, since when, what is usual, samples, links',
        examples: ['{{alert.name}} on {{group.host}}: {{value}}\n{{samples}}\n{{link}}'],
      }),
    ),
    max_per_minute: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600,
        description:
          'messages in a minute; what is due beyond them is one digest, where the channel has digests. Default: 20 there, ' +
          'and no limit elsewhere',
      }),
    ),
  },
  { ...closed, title: 'NotificationChannelFields' },
)
export type ChannelFields = Static<typeof ChannelFields>

const StoredFields = Type.Object({
  name: Type.String(),
  enabled: Type.Boolean(),
  /** The whole target as encrypted JSON, because a URL can be a secret too. */
  sealedTarget: Type.String(),
  fallback: Type.Optional(Type.String()),
  maxPerMinute: Type.Optional(Type.Integer()),
  template: Type.Optional(Type.String()),
})
type StoredFields = Static<typeof StoredFields>
export const ChannelDoc = DocumentOf(StoredFields)
export type Channel = Document<StoredFields>

interface ChannelDeps {
  readonly records: Records<Channel>
  readonly seal: Seal
  readonly nowMs?: () => number
}

export interface Channels extends Documents<ChannelFields, StoredFields> {
  /** @returns null when it was encrypted with another key */
  readonly targetOf: (channel: Channel) => Target | null
}

export const CHANNEL_BOUND = { most: 200, nouns: 'channels' }

/** Every change may reject with `dependency_unavailable`. */
export function createChannels({ seal, ...deps }: ChannelDeps): Channels {
  const open = (id: string, sealed: string): Target | null => {
    const text = seal.open(sealed, id)
    return text === null ? null : (JSON.parse(text) as Target) // was checked before it was sealed
  }
  const channels = createDocuments<ChannelFields, StoredFields>({
    ...deps,
    noun: 'channel',
    idName: 'channel_id',
    keeps: 0,
    toStored: (
      { name, enabled = true, target, fallback, max_per_minute: maxPerMinute, template },
      id,
      stored,
    ) => {
      checkFallback(fallback, id, deps.records)
      checkTemplate(template)
      checkUrls(target)
      const before = stored === null ? null : open(id, stored.sealedTarget)
      const kept = withSecret(target, before)
      // Encrypting the same target again gives another text, which would be logged as a change.
      const isSame = stored !== null && isDeepStrictEqual(kept, before)
      const sealedTarget = isSame ? stored.sealedTarget : seal.seal(JSON.stringify(kept), id)
      return {
        name,
        enabled,
        sealedTarget,
        ...(fallback === undefined ? {} : { fallback }),
        ...(maxPerMinute === undefined ? {} : { maxPerMinute }),
        ...(template === undefined ? {} : { template }),
      }
    },
  })
  // Every notice needs the target, so it is decrypted once.
  const opened = new WeakMap<Channel, Target | null>()
  const targetOf = (channel: Channel): Target | null => {
    const known = opened.get(channel)
    if (known !== undefined) return known
    const target = open(channel.id, channel.fields.sealedTarget)
    opened.set(channel, target)
    return target
  }
  return { ...channels, targetOf }
}

/** @throws AppError validation_error */
function checkTemplate(template: string | undefined): void {
  const fault = template === undefined ? null : templateFault(template)
  if (fault !== null) throw wrong('template', fault)
}

/** @throws AppError validation_error */
function checkFallback(
  fallback: string | undefined,
  id: string,
  records: Pick<Records<Channel>, 'get'>,
): void {
  if (fallback !== undefined && (fallback === id || records.get(fallback) === null))
    throw wrong('fallback', 'must be the id of another channel')
}

const wrong = (path: string, message: string): AppError =>
  new AppError('validation_error', `invalid: ${path}`, {
    details: { errors: [{ in: 'body', path, message }] },
  })

/**
 * When several alerts share a message of the channel. A webhook or PagerDuty message is about one
 * alert, and so is a Slack thread until the rate limit is reached.
 */
export const DIGESTS = {
  webhook: 'never',
  pagerduty: 'never',
  slack_bot: 'behind',
  slack: 'always',
  teams: 'always',
  email: 'always',
  alertmanager: 'always',
} as const satisfies Record<Target['type'], 'never' | 'behind' | 'always'>

/**
 * Keeps the stored secret when none is given, unless it would be sent to another host.
 *
 * @throws AppError validation_error
 */
function withSecret(target: GivenTarget, before: Target | null): Target {
  if (!('secret' in target) && before?.type === target.type) {
    const isElsewhere = originOf(before) !== originOf(target)
    if (isElsewhere && secretOf(before) !== undefined)
      throw wrong('target.secret', 'must be entered again, because the host of `url` changed')
    return complete({ ...before, ...target })
  }
  return complete(target)
}

/** @throws AppError validation_error */
function complete(target: GivenTarget): Target {
  if (isComplete(target)) return target
  throw wrong('target.secret', 'is needed')
}

const isComplete = (target: GivenTarget): target is Target =>
  target.type === 'webhook' ||
  target.type === 'email' ||
  target.type === 'alertmanager' ||
  target.secret !== undefined

const urlOf = (target: GivenTarget): string | undefined =>
  'url' in target ? target.url : undefined

/** The origin of a target's URL; '' for the service's default URL. */
function originOf(target: GivenTarget): string {
  const url = urlOf(target)
  return url === undefined ? '' : new URL(url).origin
}

/** @throws AppError validation_error */
function checkUrls(target: GivenTarget): void {
  const isSecretUrl = target.type === 'slack' || target.type === 'teams'
  const urls = { url: urlOf(target), secret: isSecretUrl ? target.secret : undefined }
  for (const [name, url] of Object.entries(urls))
    if (url !== undefined && !URL.canParse(url)) throw wrong(`target.${name}`, 'is not a URL')
}

export const secretOf = (target: Target | null): string | undefined =>
  target !== null && 'secret' in target ? target.secret : undefined
