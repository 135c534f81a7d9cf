import { Type, type Static } from '@sinclair/typebox'
import { nameOf, RoleSchema } from '../../model/schemas.js'
import { pageOldestFirst } from '../../records/page.js'
import { MAX_API_TOKENS, type ApiToken } from '../auth/api-tokens.js'
import { parseQueryTime } from '../query-time.js'
import { RouteReply, route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { NewSourceName, Uuid } from '../schemas/source.js'

const FIELDS = {
  id: Uuid,
  name: Type.String(),
  prefix: Type.String({ description: 'the first characters of the token' }),
  role: RoleSchema,
  sources: Type.Union([Type.Array(Type.String()), Type.Null()], { description: 'null = all' }),
  expires_at: Type.Union([Timestamp, Type.Null()], { description: 'null = never' }),
  created_at: Timestamp,
  created_by: Type.String({ description: 'id of a user' }),
  last_used_at: Type.Union([Timestamp, Type.Null()], { description: 'to the minute' }),
}
const TokenSchema = Type.Object(FIELDS, { title: 'ApiToken' })

const toTime = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString()

const toView = (token: ApiToken): Static<typeof TokenSchema> => ({
  id: token.id,
  name: token.name,
  prefix: token.prefix,
  role: token.role,
  sources: token.sources === null ? null : [...token.sources],
  expires_at: toTime(token.expiresAtMs),
  created_at: new Date(token.createdAtMs).toISOString(),
  created_by: token.createdBy,
  last_used_at: toTime(token.lastUsedAtMs),
})

export const apiTokenRoutes = [
  route({
    id: 'listApiTokens',
    method: 'get',
    path: '/api/api-tokens',
    summary: 'API tokens, oldest first',
    role: 'admin',
    tokens: 'none',
    query: Type.Object(PageParameters),
    reply: PageSchema(TokenSchema),
    errors: ['invalid_cursor'],
    handle: ({ query: { limit, cursor } }, { apiTokens, cursorKey }) => {
      const filters = { list: 'api-tokens' }
      const page = pageOldestFirst(apiTokens.list(), { limit, cursor, filters, cursorKey })
      return { ...page, items: page.items.map(toView) }
    },
  }),
  route({
    id: 'createApiToken',
    method: 'post',
    path: '/api/api-tokens',
    summary: 'Creates an API token',
    description:
      'Only this reply shows the token, because only its hash is stored. An admin gives it the role viewer or manager, a ' +
      'superadmin any role. With `sources` it reads the events of these sources alone, needs the role viewer, and gets 403 ' +
      `wherever that can't be held. \`expires_at\` is absent or null for one without an end. At most ${MAX_API_TOKENS} tokens. ` +
      'The guide [Security](/docs/security#api-tokens) says more.',
    role: 'admin',
    tokens: 'none',
    bodyBytes: 256 * 1024,
    body: Type.Object({
      name: nameOf(120),
      role: Type.Optional(RoleSchema),
      sources: Type.Optional(
        Type.Union([Type.Array(NewSourceName, { minItems: 1, maxItems: 100 }), Type.Null()]),
      ),
      expires_at: Type.Optional(
        Type.Union([Type.String({ maxLength: 64 }), Type.Null()], {
          description: 'ISO 8601, or relative such as `now+90d`',
          examples: ['now+90d'],
        }),
      ),
    }),
    reply: Type.Object({ ...FIELDS, token: Type.String() }),
    status: 201,
    errors: ['overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, { apiTokens }) => {
      const { name, role = 'viewer', sources = null, expires_at: end = null } = body
      const expiresAtMs = end === null ? null : parseQueryTime(end, 'expires_at', 'body')
      const made = await apiTokens.create(principal, { name, role, sources, expiresAtMs })
      const reply = { ...toView(made.stored), token: made.key }
      return new RouteReply(reply, { headers: { 'Cache-Control': 'no-store' } })
    },
  }),
  route({
    id: 'deleteApiToken',
    method: 'delete',
    path: '/api/api-tokens/{id}',
    summary: 'Revokes an API token at once',
    description: 'Closes its WebSockets, and deletes the saved views that only it sees.',
    role: 'admin',
    tokens: 'none',
    params: Type.Object({ id: Uuid }),
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, principal }, { apiTokens, savedViews }) => {
      await apiTokens.remove(principal, params.id)
      await savedViews.removeOf(params.id)
      return null
    },
  }),
]
