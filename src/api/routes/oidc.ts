import { Type } from '@sinclair/typebox'
import { AppError } from '../../model/errors.js'
import type { Cookie } from '../../http/cookies.js'
import type { RequestHead } from '../../http/request.js'
import { authCookies } from '../auth/credentials.js'
import { TRANSACTION_S } from '../auth/oidc.js'
import { RouteReply, route } from '../route.js'
import type { Services } from '../services.js'
import { toClient } from './auth.js'

const ProviderParams = Type.Object({ provider: Type.String({ minLength: 1, maxLength: 32 }) })

const COOKIE = 'OIDC_LOGIN'

/** The cookie is `Lax`, because the browser sends it on the redirect from the provider's page. */
const cookieOf = (value: string, { cookies }: Pick<Services, 'cookies'>): Cookie => ({
  name: COOKIE,
  value,
  path: '/api/auth/oidc',
  maxAgeS: value === '' ? 0 : TRANSACTION_S,
  httpOnly: true,
  secure: cookies.secure,
  sameSite: 'Lax',
})

const toPage = (location: string, cookies: readonly Cookie[], actorId?: string) =>
  new RouteReply(null, {
    headers: { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' },
    cookies,
    ...(actorId === undefined ? {} : { actorId }),
  })

/** Redirects the browser to the page, which shows the error; the audit trail has the outcome. */
function toLogin(error: unknown, services: Services) {
  if (!(error instanceof AppError)) throw error
  const { headers, cookies } = toPage(`${services.oidc.pageUrl}?login_error=${error.code}`, [
    cookieOf('', services),
  ])
  return new RouteReply(null, { headers, cookies, outcome: error.code })
}

async function finish(name: string, head: RequestHead, services: Services) {
  const { oidc, outsideUsers, sessions } = services
  const transaction = head.cookies.get(COOKIE) ?? ''
  try {
    const identity = await oidc.finish(name, head.queryText, transaction)
    const user = await outsideUsers.admit(identity)
    const seconds = identity.provider.sessionHours * 3_600
    const grant = await sessions.begin(user, { client: toClient(head), seconds })
    const cookies = [...authCookies(grant, services.cookies), cookieOf('', services)]
    return toPage(oidc.pageUrl, cookies, user.id)
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') throw error
    return toLogin(error, services)
  }
}

/** Logging in at a provider of OpenID Connect. */
export const oidcRoutes = [
  route({
    id: 'listProviders',
    method: 'get',
    path: '/api/auth/providers',
    summary: 'How users log in',
    role: 'public',
    isInstanceLocal: true,
    reply: Type.Object(
      {
        password: Type.Boolean({
          description: 'whether all local users may log in with a password',
        }),
        providers: Type.Array(
          Type.Object({
            name: Type.String(),
            title: Type.String(),
            login_url: Type.String({ description: 'where a browser goes to log in' }),
          }),
        ),
      },
      { title: 'LoginProviders' },
    ),
    errors: [],
    handle: (_, { oidc, hasPasswordLogin }) => ({
      password: hasPasswordLogin,
      providers: oidc.providers.map(({ name, title }) => ({
        name,
        title,
        // The provider sends the browser back to this host, which needs the cookie.
        login_url: `${oidc.pageUrl}api/auth/oidc/${name}`,
      })),
    }),
  }),
  route({
    id: 'beginOidc',
    method: 'get',
    path: '/api/auth/oidc/{provider}',
    summary: 'Sends the browser to a provider, to log in',
    role: 'public',
    limit: 'login_limit',
    onLimited: toLogin,
    params: ProviderParams,
    reply: Type.Null(),
    status: 302,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, services) => {
      try {
        const { url, transaction } = await services.oidc.begin(params.provider)
        return toPage(url, [cookieOf(transaction, services)])
      } catch (error) {
        if (error instanceof AppError && error.code === 'not_found') throw error
        return toLogin(error, services)
      }
    },
  }),
  route({
    id: 'finishOidc',
    method: 'get',
    path: '/api/auth/oidc/{provider}/callback',
    summary: 'Takes the answer of a provider, and sends the browser to the page',
    description:
      'The redirect URI that the provider has to know: `PUBLIC_URL/api/auth/oidc/{provider}/callback`. Sets the cookies of a ' +
      'login. In case of an error the page gets its code as `login_error`.',
    role: 'public',
    limit: 'login_limit',
    onLimited: toLogin,
    // Providers add parameters of their own.
    query: Type.Object({}, { additionalProperties: true }),
    params: ProviderParams,
    reply: Type.Null(),
    status: 302,
    errors: ['not_found', 'dependency_unavailable'],
    handle: ({ params, head }, services) => finish(params.provider, head, services),
  }),
]
