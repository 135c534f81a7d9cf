import { Type } from '@sinclair/typebox'
import type { RequestHead } from '../../http/request.js'
import { AppError } from '../../model/errors.js'
import { ACCESS_COOKIE, REFRESH_COOKIE, accessTokenOf, authCookies } from '../auth/credentials.js'
import type { ApiToken } from '../auth/api-tokens.js'
import type { Client } from '../auth/families.js'
import type { Grant } from '../auth/sessions.js'
import { withinGuesses } from '../guessing.js'
import { RouteReply, route } from '../route.js'
import type { Services } from '../services.js'
import { RoleSchema } from '../../model/schemas.js'
import { Code, GivenPassword } from '../schemas/user.js'
import { Timestamp } from '../schemas/event.js'
import { Uuid } from '../schemas/source.js'

const Tokens = Type.Object(
  {
    access_token: Type.String({ description: 'also set as the cookie ACCESS_TOKEN' }),
    refresh_token: Type.String({ description: 'also set as the cookie REFRESH_TOKEN' }),
  },
  { title: 'Tokens' },
)
const MaybeRefreshToken = Type.Optional(
  Type.Object({ refresh_token: Type.Optional(Type.String({ maxLength: 4_096 })) }),
)

const replyWith = (grant: Grant, { cookies }: Services) =>
  new RouteReply(
    { access_token: grant.accessToken, refresh_token: grant.refreshToken },
    {
      cookies: authCookies(grant, cookies),
      headers: { 'Cache-Control': 'no-store' },
      actorId: grant.userId,
    },
  )

const MAX_AGENT_CHARACTERS = 200

/** A lone surrogate becomes U+FFFD, because the table takes only UTF-8. */
export const toClient = ({ ip, headers }: RequestHead): Client => ({
  address: ip,
  agent: Buffer.from((headers.first('user-agent') ?? '').slice(0, MAX_AGENT_CHARACTERS)).toString(),
})

/** All tokens of a request, valid or not. */
function tokensOf(head: RequestHead, refreshToken: string | undefined): readonly string[] {
  const cookies = [REFRESH_COOKIE, ACCESS_COOKIE].map((name) => head.cookies.get(name) ?? '')
  const authorization = head.headers.first('authorization') ?? ''
  const all = [refreshToken ?? '', ...cookies]
  if (authorization !== '') {
    try {
      all.push(accessTokenOf({ authorization, cookie: () => '' }).token)
    } catch {
      // The header holds no token.
    }
  }
  return all.filter((token) => token !== '')
}

const ofToken = ({ id, role, name, sources, expiresAtMs }: ApiToken) => ({
  id,
  email: '',
  role,
  is_active: true,
  api_token: {
    name,
    sources: sources === null ? null : [...sources],
    expires_at: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
  },
})

export const authRoutes = [
  route({
    id: 'login',
    method: 'post',
    path: '/api/auth/login',
    summary: 'Exchanges e-mail and password for an access and a refresh token',
    description:
      'A user with a second factor gets 401 `second_factor_required` for a right password without `code`: ask for it, and ' +
      'log in again with it. It is a code of the app, which is good once, or a recovery code.',
    role: 'public',
    limit: 'login_limit',
    bodyBytes: 16 * 1024,
    body: Type.Object({
      email: Type.String({ minLength: 1, maxLength: 320 }),
      password: GivenPassword,
      code: Type.Optional(Code),
    }),
    examples: { body: { email: 'ann@example.com', password: 'a password of ann' } },
    reply: Tokens,
    errors: [
      'invalid_credentials',
      'second_factor_required',
      'invalid_code',
      'code_reused',
      'account_disabled',
      'password_login_off',
      'password_expired',
      'overloaded',
      'dependency_unavailable',
    ],
    handle: async ({ body: { email, password, code }, head }, services) => {
      const work = () => services.sessions.login(email, password, { client: toClient(head), code })
      return replyWith(await withinGuesses(services, head, { email, work }), services)
    },
  }),
  route({
    id: 'refresh',
    method: 'post',
    path: '/api/auth/refresh',
    summary: 'Exchanges a refresh token for new tokens',
    description:
      'The refresh token is in the body or in the cookie REFRESH_TOKEN; the body wins. It is valid once: using it ' +
      'again invalidates all refresh tokens of the same login.',
    role: 'public',
    limit: 'refresh_limit',
    bodyBytes: 16 * 1024,
    body: MaybeRefreshToken,
    reply: Tokens,
    errors: ['invalid_refresh_token', 'invalid_user', 'dependency_unavailable'],
    handle: async ({ body, head }, services) => {
      const token = body?.refresh_token ?? head.cookies.get(REFRESH_COOKIE) ?? ''
      const onReuse = (actorId: string): void =>
        services.intrusions.note('refresh_token', { address: head.ip, actorId })
      const how = { client: toClient(head), onReuse }
      return replyWith(await services.sessions.refresh(token, how), services)
    },
  }),
  route({
    id: 'logout',
    method: 'post',
    path: '/api/auth/logout',
    summary: 'Ends the login and deletes both cookies',
    description:
      'Invalidates the access and refresh tokens of every login that a token of the request belongs to, and closes ' +
      'its WebSockets.',
    role: 'public',
    bodyBytes: 16 * 1024,
    body: MaybeRefreshToken,
    reply: Type.Null(),
    status: 204,
    errors: ['dependency_unavailable'],
    handle: async ({ body, head }, { sessions, cookies }) => {
      await sessions.logout(tokensOf(head, body?.refresh_token))
      return new RouteReply(null, { cookies: authCookies(null, cookies) })
    },
  }),
  route({
    id: 'me',
    method: 'get',
    path: '/api/auth/me',
    summary: 'The user, or the API token, that makes the request',
    description:
      '`role` is the one the access token was issued with. For an API token `api_token` is there, and `email` empty.',
    role: 'viewer',
    isOpenBeforeRequiredAction: true,
    reply: Type.Object({
      id: Uuid,
      email: Type.String(),
      role: RoleSchema,
      is_active: Type.Boolean(),
      api_token: Type.Optional(
        Type.Object(
          {
            name: Type.String(),
            sources: Type.Union([Type.Array(Type.String()), Type.Null()]),
            expires_at: Type.Union([Timestamp, Type.Null()]),
          },
          { description: 'only for an API token, which has no e-mail' },
        ),
      ),
    }),
    errors: [],
    tokens: 'limited',
    handle: ({ principal }, { users, apiTokens }) => {
      const token = principal.isToken ? apiTokens.get(principal.userId) : null
      if (token !== null) return ofToken(token)
      const user = users.get(principal.userId)
      if (user === null) throw new AppError('unauthorized', 'the user is missing or inactive')
      return { id: user.id, email: user.email, role: principal.tokenRole, is_active: user.isActive }
    },
  }),
]
