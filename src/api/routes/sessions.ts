import { Type, type Static } from '@sinclair/typebox'
import type { Family } from '../auth/families.js'
import { pageNewestFirst } from '../../records/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { Uuid } from '../schemas/source.js'

const SessionSchema = Type.Object(
  {
    id: Uuid,
    created_at: Type.Union([Timestamp, Type.Null()], { description: 'the login' }),
    last_refreshed_at: Type.Union([Timestamp, Type.Null()]),
    expires_at: Timestamp,
    address: Type.Union([Type.String(), Type.Null()], {
      description: 'of the login or the last refresh, as is the user agent',
    }),
    user_agent: Type.Union([Type.String(), Type.Null()]),
    is_current: Type.Boolean({ description: 'whether this request belongs to it' }),
  },
  { title: 'Session' },
)

const toTime = (ms: number | undefined): string | null =>
  ms === undefined ? null : new Date(ms).toISOString()

const toView = (family: Family, current: string): Static<typeof SessionSchema> => ({
  id: family.id,
  created_at: toTime(family.createdAtMs),
  last_refreshed_at: toTime(family.refreshedAtMs),
  expires_at: new Date(family.expiresAtMs).toISOString(),
  address: family.client?.address ?? null,
  user_agent: family.client?.agent ?? null,
  is_current: family.id === current,
})

/** The routes for the sessions of the calling user. */
export const sessionRoutes = [
  route({
    id: 'listSessions',
    method: 'get',
    path: '/api/auth/sessions',
    summary: 'Your sessions, newest first',
    description:
      'Each login begins a session, which ends at `expires_at` unless its tokens are refreshed before.',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    query: Type.Object(PageParameters),
    reply: PageSchema(SessionSchema),
    errors: ['invalid_cursor'],
    handle: ({ query: { limit, cursor }, principal }, { sessions, cursorKey }) => {
      const own = sessions
        .list(principal.userId)
        .map((family) => ({ ...family, createdAtMs: family.createdAtMs ?? 0, family }))
      const filters = { list: 'sessions', user: principal.userId }
      const page = pageNewestFirst(own, { limit, cursor, filters, cursorKey })
      return { ...page, items: page.items.map(({ family }) => toView(family, principal.family)) }
    },
  }),
  route({
    id: 'endSession',
    method: 'delete',
    path: '/api/auth/sessions/{id}',
    summary: 'Ends one of your sessions',
    description: 'Its tokens become invalid and its WebSockets are closed.',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    params: Type.Object({ id: Uuid }),
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, principal }, { sessions }) => {
      await sessions.end(principal.userId, params.id)
      return null
    },
  }),
  route({
    id: 'endOtherSessions',
    method: 'delete',
    path: '/api/auth/sessions',
    summary: 'Ends all your sessions but this one',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    reply: Type.Object({ ended: Type.Integer({ minimum: 0 }) }),
    errors: ['dependency_unavailable'],
    handle: async ({ principal }, { sessions }) => ({ ended: await sessions.endOthers(principal) }),
  }),
]
