import {
  createWebSocketHub,
  type Authentication,
  type UpgradeHead,
  type WebSocketHub,
  type WebSocketOptions,
} from '../http/websocket.js'
import type { Connection } from '../http/connection.js'
import { AppError } from '../model/errors.js'
import { ACCESS_COOKIE, accessTokenOf } from './auth/credentials.js'
import type { Accounts } from './auth/accounts.js'
import { isApiToken } from './auth/api-tokens.js'
import type { MayUseCookies } from './auth/origin.js'
import type { Session } from './auth/sessions.js'

/** The user, or API token, of a WebSocket. */
export interface SocketUser extends Session {
  readonly isToken: boolean
  /** The sources that the user may read; null for all. */
  readonly sources: readonly string[] | null
}

interface Verified {
  readonly user: SocketUser
  readonly expiresAtMs: number
}

export interface UserSocketDeps {
  /**
   * @throws AppError unless the token is a valid access token, whether or not its session is, or an
   * API token
   */
  readonly verify: (token: string) => Verified
  /** Whether the session is valid, once changes of other instances are known. */
  readonly isAlive: (session: Session) => Promise<boolean>
  /** Counts a connection under `ws_limiter`. @throws AppError rate_limited */
  readonly consume: (address: string, user?: SocketUser) => Promise<void>
  /** Applied when the token is in the cookie, which browsers send with the sockets of any page. */
  readonly mayUseCookies: MayUseCookies
  /** Whether a token in the query is accepted. Proxies and browser histories store it there. */
  readonly mayUseQuery: boolean
  readonly maxOpen: number
  readonly maxOpenPerAddress: number
}

/**
 * Checks only the signature of a user's access token. The session is checked when the changes of
 * other instances are known.
 *
 * @throws AppError unauthorized, token_expired
 */
export function verifySocket(
  { tokens, apiTokens }: Pick<Accounts, 'tokens' | 'apiTokens'>,
  token: string,
): Verified {
  if (isApiToken(token)) {
    const { expiresAtMs, ...user } = apiTokens.authenticate(token)
    return { user, expiresAtMs }
  }
  const { sub: userId, family, exp } = tokens.verifyAccess(token)
  return { user: { userId, family, isToken: false, sources: null }, expiresAtMs: exp * 1000 }
}

const POLICY_VIOLATION = 1008
export const REVOKED = 'the API token was revoked'
const BEYOND = "this can't be limited to sources, as the API token is"

interface UserPath extends Omit<WebSocketOptions<SocketUser>, 'authenticate' | 'userId'> {
  /** Whether the socket accepts API tokens that are limited to sources, and enforces the limit. */
  readonly isLimited?: boolean
}

/** A WebSocket path for users: its functions are called for connections with a known user and a valid session. */
export function createUserSockets(
  deps: UserSocketDeps,
  { isLimited = false, ...path }: UserPath,
): WebSocketHub<SocketUser> {
  /** Whether a connection was accepted; texts that arrive before are read after. */
  const openings = new WeakMap<Connection<SocketUser>, Promise<boolean>>()
  const open = async (connection: Connection<SocketUser>): Promise<boolean> => {
    const isBeyond = !isLimited && connection.user.sources !== null
    const refusal = isBeyond ? BEYOND : await refusalFor(connection, deps)
    if (refusal !== null) connection.close(POLICY_VIOLATION, refusal)
    else await path.onOpen?.(connection)
    return refusal === null
  }
  return createWebSocketHub<SocketUser>({
    ...path,
    authenticate: (head) => authenticate(head, deps),
    userId: (user) => user.userId,
    limits: {
      ...path.limits,
      connections: deps.maxOpen,
      connectionsPerIp: deps.maxOpenPerAddress,
    },
    async onOpen(connection) {
      const opening = open(connection)
      openings.set(connection, opening)
      await opening
    },
    async onMessage(connection, text) {
      const isIn = await openings.get(connection)
      if (isIn === true && connection.isOpen) await path.onMessage?.(connection, text)
    },
  })
}

/** @returns why a connection is refused; null when it is not */
async function refusalFor(
  { ip, user }: Connection<SocketUser>,
  { consume, isAlive }: UserSocketDeps,
): Promise<string | null> {
  try {
    await consume(ip, user)
  } catch (error) {
    return refusalOf(error)
  }
  if (await isAlive(user)) return null
  return user.isToken ? REVOKED : 'the session has ended, or the user is inactive'
}

function authenticate(head: UpgradeHead, deps: UserSocketDeps): Authentication<SocketUser> {
  try {
    const { token, via } = tokenOf(head, deps.mayUseQuery)
    if (via === 'cookie' && !deps.mayUseCookies(head.headers))
      return { kind: 'refused', reason: 'origin not allowed' }
    return { kind: 'accepted', ...deps.verify(token) }
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
