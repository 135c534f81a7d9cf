import { Type, type Static } from '@sinclair/typebox'
import type { IngestKey } from '../auth/ingest-keys.js'
import { pageOldestFirst } from '../../records/page.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { notBlank } from '../schemas/record.js'
import { SourceName, Uuid } from '../schemas/source.js'

const FIELDS = {
  id: Uuid,
  name: Type.String(),
  prefix: Type.String({ description: 'the first characters of the key' }),
  sources: Type.Union([Type.Array(Type.String()), Type.Null()], { description: 'null = any' }),
  auto_register: Type.Boolean(),
  created_at: Timestamp,
  last_used_at: Type.Union([Timestamp, Type.Null()], { description: 'to the minute' }),
}
const KeySchema = Type.Object(FIELDS, { title: 'IngestKey' })

const toView = (key: IngestKey): Static<typeof KeySchema> => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  sources: key.sources === null ? null : [...key.sources],
  auto_register: key.autoRegister,
  created_at: new Date(key.createdAtMs).toISOString(),
  last_used_at: key.lastUsedAtMs === null ? null : new Date(key.lastUsedAtMs).toISOString(),
})

export const ingestKeyRoutes = [
  route({
    id: 'listIngestKeys',
    method: 'get',
    path: '/api/ingest-keys',
    summary: 'Ingest keys, oldest first',
    role: 'admin',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object(PageParameters),
    body: null,
    reply: PageSchema(KeySchema),
    status: 200,
    errors: ['invalid_cursor'],
    handle: ({ query: { limit, cursor } }, { ingestKeys, cursorKey }) => {
      const filters = { list: 'ingest-keys' }
      const page = pageOldestFirst(ingestKeys.list(), { limit, cursor, filters, cursorKey })
      return { ...page, items: page.items.map(toView) }
    },
  }),
  route({
    id: 'createIngestKey',
    method: 'post',
    path: '/api/ingest-keys',
    summary: 'Creates an ingest key',
    description:
      'Only this reply shows the key, because only its hash is stored. `sources` restricts it to these sources (null ' +
      'or absent: any); with `auto_register`, events of unregistered sources register them.',
    role: 'admin',
    limit: 'none',
    bodyBytes: 256 * 1024,
    query: Type.Object({}),
    body: Type.Object({
      name: notBlank(120),
      sources: Type.Optional(
        Type.Union([Type.Array(SourceName, { minItems: 1, maxItems: 1_000 }), Type.Null()]),
      ),
      auto_register: Type.Optional(Type.Boolean({ default: false })),
    }),
    reply: Type.Object({ ...FIELDS, key: Type.String() }),
    status: 201,
    errors: ['dependency_unavailable'],
    handle: async ({ body }, { ingestKeys }) => {
      const { name, sources = null, auto_register: autoRegister = false } = body
      const { stored, key } = await ingestKeys.create({ name, sources, autoRegister })
      return { ...toView(stored), key }
    },
  }),
  route({
    id: 'deleteIngestKey',
    method: 'delete',
    path: '/api/ingest-keys/{id}',
    summary: 'Deletes an ingest key, which becomes invalid at once',
    role: 'admin',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    params: Type.Object({ id: Uuid }),
    body: null,
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { ingestKeys }) => {
      await ingestKeys.remove(params.id)
      return null
    },
  }),
]
