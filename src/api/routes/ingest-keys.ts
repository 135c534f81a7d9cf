import { Type, type Static } from '@sinclair/typebox'
import { nameOf } from '../../model/schemas.js'
import type { IngestKey } from '../auth/ingest-keys.js'
import { AppError } from '../../model/errors.js'
import type { Services } from '../services.js'
import { throwOnErrors } from '../validation.js'
import { pageOldestFirst } from '../../records/page.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { NewSourceName, Uuid } from '../schemas/source.js'

const FIELDS = {
  id: Uuid,
  name: Type.String(),
  prefix: Type.String({ description: 'the first characters of the key' }),
  sources: Type.Union([Type.Array(Type.String()), Type.Null()], { description: 'null = any' }),
  auto_register: Type.Boolean(),
  default_source: Type.Union([Type.String(), Type.Null()], {
    description: 'the source of records that name none; null = `default`',
  }),
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
  default_source: key.defaultSource,
  created_at: new Date(key.createdAtMs).toISOString(),
  last_used_at: key.lastUsedAtMs === null ? null : new Date(key.lastUsedAtMs).toISOString(),
})

/** Registers a source that a key names, so that its first message is accepted. */
async function ensureSource(name: string, { sources, announce }: Services): Promise<void> {
  if (sources.get(name) !== undefined) return
  const source = { name, type: 'push', connector: 'custom', applicationId: null } as const
  await sources.create(source).catch((error: unknown) => {
    // The first message registered the source meanwhile.
    if (!(error instanceof AppError) || error.code !== 'source_already_exists') throw error
  })
  announce()
}

export const ingestKeyRoutes = [
  route({
    id: 'listIngestKeys',
    method: 'get',
    path: '/api/ingest-keys',
    summary: 'Ingest keys, oldest first',
    role: 'admin',
    query: Type.Object(PageParameters),
    reply: PageSchema(KeySchema),
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
      'or absent: any), which are registered with it. With `auto_register`, events of unregistered sources register ' +
      'them. `default_source`, one of `sources` if these are given, is the source of records that name none; absent: ' +
      'the first of `sources`.',
    role: 'admin',
    bodyBytes: 256 * 1024,
    body: Type.Object({
      name: nameOf(120),
      sources: Type.Optional(
        Type.Union([Type.Array(NewSourceName, { minItems: 1, maxItems: 1_000 }), Type.Null()]),
      ),
      auto_register: Type.Optional(Type.Boolean({ default: true })),
      default_source: Type.Optional(Type.Union([NewSourceName, Type.Null()])),
    }),
    reply: Type.Object({ ...FIELDS, key: Type.String() }),
    status: 201,
    errors: ['overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, services) => {
      const { name, sources = null, auto_register: autoRegister = true } = body
      const defaultSource = body.default_source ?? sources?.[0] ?? null
      if (defaultSource !== null && sources?.includes(defaultSource) === false)
        throwOnErrors([{ in: 'body', path: 'default_source', message: 'must be one of sources' }])
      const named = sources ?? (defaultSource === null ? [] : [defaultSource])
      await Promise.all(named.map((source) => ensureSource(source, services)))
      const { stored, key } = await services.ingestKeys.create({
        name,
        sources,
        autoRegister,
        defaultSource,
        createdBy: principal.userId,
      })
      return { ...toView(stored), key }
    },
  }),
  route({
    id: 'deleteIngestKey',
    method: 'delete',
    path: '/api/ingest-keys/{id}',
    summary: 'Deletes an ingest key, which becomes invalid at once',
    role: 'admin',
    params: Type.Object({ id: Uuid }),
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { ingestKeys }) => {
      await ingestKeys.remove(params.id)
      return null
    },
  }),
]
