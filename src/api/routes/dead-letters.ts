import { Type } from '@sinclair/typebox'
import { decodeCursor, encodeCursor } from '../../records/cursor.js'
import { readPage } from '../../records/page.js'
import type { DeadLetter, DeadLetterPosition } from '../../model/dead-letter.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { MAX_REPLAYED } from '../../records/replay.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'

const LetterId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const Names = Type.Array(Type.String({ maxLength: 120 }), { maxItems: 100 })
const Cursor = Type.Union([Type.String(), Type.Null()])

const LetterSchema = Type.Object(
  {
    id: LetterId,
    received_at: Timestamp,
    protocol: Type.String({ examples: ['ingest', 'upload', 'webhook', 'replay'] }),
    source: Type.String({ description: 'empty when the record names none' }),
    key_id: Type.Union([Type.String(), Type.Null()], {
      description:
        'the ingest key that sent it; null for uploads, webhooks and what ClickHouse refused',
    }),
    reason: Type.String({ examples: ['invalid_event', 'unknown_source'] }),
    detail: Type.String(),
    line: Type.Integer({ description: 'position in the body it came in, from 1' }),
    raw: Type.Union([Type.String(), Type.Null()], {
      description: 'the record, truncated at 64 KiB; null for rows of uploaded files',
    }),
  },
  { title: 'DeadLetter' },
)

const toView = ({ id, receivedAtMs, raw, ...letter }: DeadLetter) => ({
  id,
  received_at: new Date(receivedAtMs).toISOString(),
  protocol: letter.protocol,
  source: letter.source,
  key_id: letter.keyId === '' ? null : letter.keyId,
  reason: letter.reason,
  detail: letter.detail,
  line: letter.line,
  raw: raw === '' ? null : raw,
})

const isPosition = (value: unknown): value is DeadLetterPosition =>
  typeof value === 'object' &&
  value !== null &&
  'receivedAtMs' in value &&
  'id' in value &&
  Number.isSafeInteger(value.receivedAtMs) &&
  Number.isSafeInteger(value.id)

export const deadLetterRoutes = [
  route({
    id: 'listDeadLetters',
    method: 'get',
    path: '/api/monitoring/dead-letters',
    summary: 'Messages that could not be stored, newest first',
    role: 'admin',
    question: 'rollup',
    query: Type.Object({
      reason: Type.Optional(Names),
      source: Type.Optional(Names),
      ...PageParameters,
    }),
    reply: PageSchema(LetterSchema),
    errors: ['invalid_cursor', 'dependency_unavailable'],
    handle: async ({ query, signal }, { deadLetters, cursorKey }) => {
      const { limit, cursor, reason: reasons = [], source: sources = [] } = query
      const filters = { list: 'dead-letters', reasons, sources }
      const page = await readPage(
        { limit, cursor, filters, cursorKey },
        {
          isPosition,
          read: async (after, most) =>
            await deadLetters.page({ reasons, sources, after, limit: most }, signal),
          positionOf: ({ receivedAtMs, id }) => ({ receivedAtMs, id }),
        },
      )
      return { ...page, items: page.items.map(toView) }
    },
  }),
  route({
    id: 'replayDeadLetters',
    method: 'post',
    path: '/api/monitoring/dead-letters/replay',
    summary: 'Ingests dead letters again',
    description:
      'Replays those of `ids` and `edits`, else all (or those of the given reasons and sources), newest first, at most ' +
      `${MAX_REPLAYED.toLocaleString('en')} a call and for up to a minute; \`next_cursor\` then continues. \`replayed\` ones ` +
      'became events. `failed` ones were refused again and are listed anew with the current reason. `skipped` ones ' +
      'stay: their raw record is missing, truncated or no JSON object (where the protocol has no lines of text), their source ' +
      'is disabled, their sender may not write it, or they do not exist. A record has the rights that its ingest key has now (`sources`, `auto_register`); one without a key, or ' +
      'whose key was deleted, may be of the source that is listed, which is registered. A repeat after a failure loses nothing and counts nothing twice.',
    role: 'admin',
    bodyBytes: 512 * 1024,
    body: Type.Optional(
      Type.Object({
        edits: Type.Optional(
          Type.Array(
            Type.Object({
              id: LetterId,
              raw: Type.String({ maxLength: 65_000, description: 'a JSON object' }),
            }),
            { maxItems: 100, description: 'dead letters to replay with another record' },
          ),
        ),
        ids: Type.Optional(Type.Array(LetterId, { maxItems: MAX_REPLAYED })),
        reason: Type.Optional(Names),
        source: Type.Optional(Names),
        cursor: Type.Optional(Type.String({ maxLength: 2_048 })),
      }),
    ),
    reply: Type.Object({
      replayed: Type.Integer({ minimum: 0 }),
      failed: Type.Integer({ minimum: 0 }),
      skipped: Type.Integer({ minimum: 0 }),
      has_more: Type.Boolean({ description: 'whether dead letters remain that were not examined' }),
      next_cursor: Cursor,
    }),
    errors: ['invalid_cursor', 'overloaded', 'dependency_unavailable'],
    examples: { body: { reason: ['unknown_source'] } },
    handlerTimeoutMs: 120_000,
    handle: async ({ body, signal }, { replay, cursorKey }) => {
      const { ids, edits = [], reason: reasons = [], source: sources = [], cursor } = body ?? {}
      const filters = { list: 'dead-letter-replay', reasons, sources }
      const after =
        cursor === undefined ? null : decodeCursor(cursorKey, filters, cursor, isPosition)
      const { position, ...counts } = await replay.run(
        ids === undefined && edits.length === 0
          ? { kind: 'all', query: { reasons, sources, after } }
          : {
              kind: 'ids',
              ids: [...(ids ?? []), ...edits.map(({ id }) => id)],
              ...(edits.length > 0 && { edits: new Map(edits.map(({ id, raw }) => [id, raw])) }),
            },
        signal,
      )
      return {
        ...counts,
        has_more: position !== null,
        next_cursor: position === null ? null : encodeCursor(cursorKey, filters, position),
      }
    },
  }),
]
