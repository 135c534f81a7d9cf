import { Type } from '@sinclair/typebox'

import {
  createWebSocketHub,
  type Authentication,
  type UpgradeHead,
  type WebSocketHub,
} from '../../http/websocket.js'
import { AppError } from '../../model/errors.js'
import { ACCESS_COOKIE, accessTokenOf } from '../auth/credentials.js'
import type { MayUseCookies } from '../auth/origin.js'
import type { Session } from '../auth/sessions.js'
import type { Tokens } from '../auth/tokens.js'
import { JsonText, route } from '../route.js'
import { KpiSnapshotSchema } from '../schemas/kpi.js'

export const kpiRoutes = [
  route({
    id: 'kpis',
    method: 'get',
    path: '/api/kpis',
    summary: 'The KPI snapshot',
    description:
      'Cached for 30 seconds, but corrections and deletions show at once. Totals cover everything stored; windows end ' +
      'now and are exact to the second.',
    role: 'viewer',
    limit: 'none',
    bodyBytes: 0,
    query: Type.Object({}),
    body: null,
    reply: KpiSnapshotSchema,
    status: 200,
    errors: ['dependency_unavailable'],
    handle: async (_, { kpis }) => new JsonText(await kpis.get()),
  }),
]

export interface KpiSocketDeps {
  /** @throws AppError unless the token is a valid access token, of whichever session */
  readonly verify: Tokens['verifyAccess']
  /** Whether the session goes on; waits for what other instances know of it. */
  readonly isAlive: (session: Session) => Promise<boolean>
  /** Counts a connection under `ws_limiter`. @throws AppError rate_limited */
  readonly consume: (address: string) => Promise<void>
  /** Checked when the token is in the cookie, which browsers send with a socket of any page. */
  readonly mayUseCookies: MayUseCookies
  /** Sends the first snapshot. */
  readonly greet: (client: { send(text: string): boolean }) => Promise<void>
  /** Whether a token may be in the query, where proxies and histories keep it. */
  readonly mayUseQuery: boolean
  readonly maxOpen: number
  readonly maxOpenPerAddress: number
}

const POLICY_VIOLATION = 1008

export function createKpiSockets(deps: KpiSocketDeps): WebSocketHub<Session> {
  return createWebSocketHub<Session>({
    path: '/ws/kpis',
    authenticate: (head) => authenticate(head, deps),
    userId: (user) => user.userId,
    limits: { connections: deps.maxOpen, connectionsPerIp: deps.maxOpenPerAddress },
    async onOpen(connection) {
      const refusal = await deps.consume(connection.ip).then(
        async () =>
          (await deps.isAlive(connection.user))
            ? null
            : 'the session has ended, or the user is inactive',
        (error: unknown) => refusalOf(error),
      )
      if (refusal !== null) {
        connection.close(POLICY_VIOLATION, refusal)
        return
      }
      await deps.greet(connection)
    },
  })
}

function authenticate(head: UpgradeHead, deps: KpiSocketDeps): Authentication<Session> {
  try {
    const { token, via } = tokenOf(head, deps.mayUseQuery)
    if (via === 'cookie' && !deps.mayUseCookies(head.headers))
      return { kind: 'refused', reason: 'origin not allowed' }
    const { sub: userId, family, exp } = deps.verify(token)
    return { kind: 'accepted', user: { userId, family }, expiresAtMs: exp * 1000 }
  } catch (error) {
    // Failed attempts count against the limit as well.
    void deps.consume(head.ip).catch(() => undefined)
    return { kind: 'refused', reason: refusalOf(error) }
  }
}

/** @throws the error unless it is an AppError */
function refusalOf(error: unknown): string {
  if (error instanceof AppError) return error.message
  throw error
}

interface SocketToken {
  readonly token: string
  readonly via: 'bearer' | 'protocol' | 'cookie' | 'query'
}

const PROTOCOL_PREFIX = 'jwt.'

/**
 * The first token counts, in the order Authorization, Sec-WebSocket-Protocol, cookie, query.
 *
 * @throws AppError unauthorized without a token and for a malformed bearer header
 */
function tokenOf(
  { headers, protocols, cookies, query }: UpgradeHead,
  mayUseQuery: boolean,
): SocketToken {
  const authorization = headers.first('authorization') ?? ''
  const cookie = cookies.get(ACCESS_COOKIE) ?? ''
  const protocol = protocols.find((offer) => offer.startsWith(PROTOCOL_PREFIX))
  if (/^bearer(?:\s|$)/i.test(authorization))
    return accessTokenOf({ authorization, cookie: () => '' })
  if (protocol !== undefined)
    return { token: protocol.slice(PROTOCOL_PREFIX.length), via: 'protocol' }
  if (cookie !== '') return { token: cookie, via: 'cookie' }
  const token = query.get('token') ?? ''
  if (token !== '' && mayUseQuery) return { token, via: 'query' }
  throw new AppError('unauthorized', 'an access token is required')
}
