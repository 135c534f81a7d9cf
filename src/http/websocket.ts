import { whileAny, type WhileAny } from '../lib/while-any.js'
import { AppError } from '../model/errors.js'
import { formatAddress } from './address.js'
import type { ClientAddress } from './address.js'
import { LiveConnection, cutReason } from './connection.js'
import type { Connection } from './connection.js'
import { parseCookies } from './cookies.js'
import type { Exchange } from './exchange.js'
import { toErrorReply } from './reply.js'
import { HeaderBag, readFraming } from './request.js'
import type { ServerLog } from './request.js'
import type { UwsApp, UwsRequest, UwsResponse, UwsSocket, UwsWebSocketBehavior } from './uws.js'

/** A copy of the upgrade request. */
export interface UpgradeHead {
  readonly headers: HeaderBag
  readonly query: URLSearchParams
  readonly cookies: ReadonlyMap<string, string>
  readonly ip: string
  /** The protocols of Sec-WebSocket-Protocol, in order. */
  readonly protocols: readonly string[]
}

export type Authentication<User> =
  | {
      readonly kind: 'accepted'
      readonly user: User
      /** The connection is closed with 1008 at this time, ms since 1970. */
      readonly expiresAtMs?: number
    }
  /** The upgrade completes, then the connection is closed with 1008 and this text. */
  | { readonly kind: 'refused'; readonly reason: string }

interface WebSocketLimits {
  /** A connection without traffic for this long gets the text `ping`. */
  readonly keepaliveMs: number
  /** A client that answers no protocol ping is disconnected after this; 0 or 8..960 seconds. */
  readonly idleTimeoutS: number
  /** Largest message of a client; a larger one closes the connection. */
  readonly messageBytes: number
  /**
   * A client that sends more, pings and pongs included, is disconnected: uWebSockets.js would read
   * only this connection, as long as each read fills its buffer of 512 KiB.
   */
  readonly messagesPerSecond: number
  /** Limit of a connection's unsent bytes; above it texts are dropped, and a slow client is disconnected. */
  readonly backpressureBytes: number
  /** Whether a slow client stays connected and misses texts. */
  readonly keepsSlow: boolean
  readonly connections: number
  readonly connectionsPerIp: number
}

export interface WebSocketOptions<User> {
  readonly path: string
  /** Synchronous, because uWebSockets.js can lose the connection of an upgrade that waits. */
  readonly authenticate: (head: UpgradeHead) => Authentication<User>
  readonly userId: (user: User) => string
  /** Published texts reach the connection after it has resolved. */
  readonly onOpen?: (connection: Connection<User>) => void | Promise<void>
  /** Called for texts other than ping and pong. */
  readonly onMessage?: (connection: Connection<User>, text: string) => void | Promise<void>
  /** Called when a slow client has received some of what was sent to it. */
  readonly onDrain?: (connection: Connection<User>) => void
  readonly onClose?: (connection: Connection<User>, code: number) => void
  readonly limits?: Partial<WebSocketLimits>
}

/** A WebSocket path, as the server mounts it. */
export interface WebSocketRoute {
  readonly path: string
  readonly mount: (app: UwsApp, server: WebSocketServer) => MountedWebSocket
}

export interface MountedWebSocket {
  /** Closes every connection with 1001. */
  close(): void
}

export interface WebSocketServer {
  readonly log: ServerLog
  readonly clientAddress: ClientAddress
  readonly begin: (res: UwsResponse) => Exchange
  readonly isDraining: () => boolean
  readonly headBytes: number
  /** Called at the end of every connection, refused ones included. */
  readonly onClosed: () => void
}

/** The connections of one path. */
export interface WebSocketHub<User> {
  readonly route: WebSocketRoute
  /** Sends a text to every open connection; a slow one misses it or is disconnected. */
  publish(text: string): void
  readonly size: number
  openOf(userId: string): number
  /** @returns the number of closed connections */
  closeUser(userId: string, code: number, reason: string): number
  closeWhere(isMeant: (user: User) => boolean, code: number, reason: string): number
}

const DEFAULT_LIMITS: WebSocketLimits = {
  keepaliveMs: 30_000,
  idleTimeoutS: 60,
  messageBytes: 4096,
  messagesPerSecond: 100,
  backpressureBytes: 262_144,
  keepsSlow: false,
  connections: 10_000,
  connectionsPerIp: 50,
}

/** Close codes of RFC 6455. */
const GOING_AWAY = 1001
const UNSUPPORTED_DATA = 1003
const POLICY_VIOLATION = 1008
const INTERNAL_ERROR = 1011

interface Hub<User> {
  readonly options: WebSocketOptions<User>
  readonly limits: WebSocketLimits
  readonly connections: Set<LiveConnection<User>>
  readonly byUser: Map<string, Set<LiveConnection<User>>>
  readonly byIp: Map<string, number>
  readonly keepalive: WhileAny
  app: UwsApp | null
  lastPublishMs: number
}

type Upgraded<User> =
  | { readonly kind: 'accepted'; readonly connection: LiveConnection<User> }
  | { readonly kind: 'refused'; readonly code: number; readonly reason: string }

/** @throws RangeError on an idle timeout with which uWebSockets.js ends the process */
export function createWebSocketHub<User>(options: WebSocketOptions<User>): WebSocketHub<User> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  checkIdleTimeout(limits.idleTimeoutS)
  const hub: Hub<User> = {
    options,
    limits,
    connections: new Set(),
    byUser: new Map(),
    byIp: new Map(),
    keepalive: whileAny({
      everyMs: Math.min(Math.max(limits.keepaliveMs / 8, 20), 1000),
      any: () => hub.connections.size > 0,
      work: () => {
        for (const connection of hub.connections) keepAlive(hub, connection)
      },
    }),
    app: null,
    lastPublishMs: 0,
  }
  return {
    route: { path: options.path, mount: (app, server) => mount(hub, app, server) },
    publish(text) {
      hub.lastPublishMs = performance.now()
      hub.app?.publish(options.path, text, false)
    },
    get size() {
      return hub.connections.size
    },
    openOf: (userId) => hub.byUser.get(userId)?.size ?? 0,
    closeUser: (userId, code, reason) => closeAll(hub.byUser.get(userId) ?? [], code, reason),
    closeWhere(isMeant, code, reason) {
      const meant = [...hub.connections].filter(({ user }) => isMeant(user))
      return closeAll(meant, code, reason)
    },
  }
}

function checkIdleTimeout(seconds: number): void {
  const isKnown = Number.isInteger(seconds) && (seconds === 0 || (seconds >= 8 && seconds <= 960))
  if (!isKnown) throw new RangeError(`idle timeout of ${seconds} s is neither 0 nor in 8..960`)
}

function closeAll<User>(
  connections: Iterable<LiveConnection<User>>,
  code: number,
  reason: string,
): number {
  // Closing removes the connection from the set, so a copy is iterated.
  const list = [...connections]
  for (const connection of list) connection.close(code, reason)
  return list.length
}

function mount<User>(hub: Hub<User>, app: UwsApp, server: WebSocketServer): MountedWebSocket {
  hub.app = app
  app.ws<Upgraded<User>>(hub.options.path, toBehavior(hub, server))
  return {
    close() {
      hub.keepalive.end()
      hub.app = null
      closeAll(hub.connections, GOING_AWAY, 'server is stopping')
    },
  }
}

function toBehavior<User>(
  hub: Hub<User>,
  server: WebSocketServer,
): UwsWebSocketBehavior<Upgraded<User>> {
  const { limits, options } = hub
  const counted = (socket: UwsSocket<Upgraded<User>>): void => {
    const upgraded = socket.getUserData()
    if (upgraded.kind === 'accepted') refuseFlood(limits, upgraded.connection)
  }
  return {
    compression: 0,
    maxPayloadLength: limits.messageBytes,
    idleTimeout: limits.idleTimeoutS,
    maxBackpressure: limits.backpressureBytes,
    closeOnBackpressureLimit: !limits.keepsSlow,
    sendPingsAutomatically: true,
    upgrade(res, req, context) {
      try {
        const { key, protocol, upgraded } = toUpgrade(hub, server, res, req)
        res.upgrade(upgraded, key, protocol, '', context)
      } catch (error) {
        refuseUpgrade(server.begin(res), error)
      }
    },
    open(socket) {
      const upgraded = socket.getUserData()
      if (upgraded.kind === 'refused') {
        socket.end(upgraded.code, upgraded.reason)
        return
      }
      const { connection } = upgraded
      connection.attach(socket)
      enrol(hub, connection)
      guard(hub, server.log, connection, async () => {
        await options.onOpen?.(connection)
        connection.subscribe(options.path)
      })
    },
    message(socket, message, isBinary) {
      const upgraded = socket.getUserData()
      if (upgraded.kind === 'accepted')
        received(hub, server.log, upgraded.connection, isBinary ? null : toText(message))
    },
    ping: counted,
    pong: counted,
    drain(socket) {
      const upgraded = socket.getUserData()
      if (upgraded.kind === 'accepted')
        notify(hub, server.log, () => options.onDrain?.(upgraded.connection))
    },
    close(socket, code) {
      server.onClosed()
      const upgraded = socket.getUserData()
      if (upgraded.kind === 'refused') return
      upgraded.connection.detach()
      strike(hub, upgraded.connection)
      notify(hub, server.log, () => options.onClose?.(upgraded.connection, code))
    },
  }
}

const toText = (message: ArrayBuffer): string => Buffer.from(message).toString('utf8')

/** @param text null for a binary message */
function received<User>(
  hub: Hub<User>,
  log: ServerLog,
  connection: LiveConnection<User>,
  text: string | null,
): void {
  connection.received()
  if (refuseFlood(hub.limits, connection)) return
  if (text === null) {
    connection.close(UNSUPPORTED_DATA, 'text messages only')
    return
  }
  if (text === 'ping') connection.send('pong')
  if (text === 'ping' || text === 'pong') return
  guard(hub, log, connection, async () => hub.options.onMessage?.(connection, text))
}

/** Closes a connection whose client sends too many messages. */
function refuseFlood<User>(
  { messagesPerSecond: limit }: WebSocketLimits,
  connection: LiveConnection<User>,
): boolean {
  const isFlood = connection.count() > limit
  if (isFlood) connection.close(POLICY_VIOLATION, `more than ${limit} messages in a second`)
  return isFlood
}

interface UpgradePlan<User> {
  readonly key: string
  /** '' when the client offered none. */
  readonly protocol: string
  readonly upgraded: Upgraded<User>
}

/** @throws AppError when the request is no valid upgrade; it is answered over HTTP */
function toUpgrade<User>(
  hub: Hub<User>,
  server: WebSocketServer,
  res: UwsResponse,
  req: UwsRequest,
): UpgradePlan<User> {
  const headers = HeaderBag.from(req)
  const queryText = req.getQuery() ?? ''
  if (headers.bytes + queryText.length > server.headBytes) {
    throw new AppError('headers_too_large', `request head exceeds ${server.headBytes} bytes`)
  }
  checkHandshake(headers)
  const protocols = splitList(headers.all('sec-websocket-protocol'))
  const socketAddress = formatAddress(new Uint8Array(res.getRemoteAddress()))
  const upgraded = decide(hub, server, {
    headers,
    query: new URLSearchParams(queryText),
    cookies: parseCookies(headers.all('cookie').join('; ')),
    ip: server.clientAddress(socketAddress, headers.all('x-forwarded-for')),
    protocols,
  })
  const key = headers.first('sec-websocket-key') ?? ''
  return { key, protocol: chooseProtocol(protocols), upgraded }
}

/** Without the token `upgrade` uWebSockets.js opens a socket whose end it never reports. */
function checkHandshake(headers: HeaderBag): void {
  const framing = readFraming(headers)
  if (framing.kind === 'invalid') throw new AppError('bad_request', framing.reason)
  const connection = splitList(headers.all('connection')).map((token) => token.toLowerCase())
  const isUpgrade =
    framing.kind === 'none' &&
    connection.includes('upgrade') &&
    headers.first('upgrade')?.toLowerCase() === 'websocket' &&
    headers.first('sec-websocket-version') === '13'
  if (!isUpgrade) throw new AppError('upgrade_required', 'this path speaks WebSocket 13 only')
}

const splitList = (values: readonly string[]): string[] =>
  values
    .join(',')
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '')

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/**
 * Chooses one of the offered protocols, as browsers require. Any but the one with the token is
 * preferred, which keeps the token out of replies and logs.
 */
export function chooseProtocol(offered: readonly string[]): string {
  const usable = offered.filter((protocol) => TOKEN.test(protocol))
  return usable.find((protocol) => !protocol.startsWith('jwt.')) ?? usable[0] ?? ''
}

function decide<User>(hub: Hub<User>, server: WebSocketServer, head: UpgradeHead): Upgraded<User> {
  const { options, limits } = hub
  const refuse = (code: number, reason: string): Upgraded<User> => ({
    kind: 'refused',
    code,
    reason: cutReason(reason),
  })
  if (server.isDraining()) return refuse(GOING_AWAY, 'server is stopping')
  try {
    const verdict = options.authenticate(head)
    if (verdict.kind === 'refused') return refuse(POLICY_VIOLATION, verdict.reason)
    const isFull =
      hub.connections.size >= limits.connections ||
      (hub.byIp.get(head.ip) ?? 0) >= limits.connectionsPerIp
    if (isFull) return refuse(POLICY_VIOLATION, 'too many connections')
    const { user, expiresAtMs = null } = verdict
    return { kind: 'accepted', connection: new LiveConnection(user, head, expiresAtMs) }
  } catch (error) {
    server.log.error({ err: error, path: options.path }, 'WebSocket authentication failed')
    return refuse(INTERNAL_ERROR, 'internal error')
  }
}

function refuseUpgrade(exchange: Exchange, error: unknown): void {
  if (!(error instanceof AppError)) {
    exchange.fail(error)
    return
  }
  const headers = { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' }
  const isHandshake = error.code === 'upgrade_required'
  exchange.reply({ ...toErrorReply(error), close: true, ...(isHandshake ? { headers } : {}) })
}

function enrol<User>(hub: Hub<User>, connection: LiveConnection<User>): void {
  const userId = hub.options.userId(connection.user)
  const own = hub.byUser.get(userId) ?? new Set()
  hub.byUser.set(userId, own.add(connection))
  hub.byIp.set(connection.ip, (hub.byIp.get(connection.ip) ?? 0) + 1)
  hub.connections.add(connection)
  hub.keepalive.begin()
}

function strike<User>(hub: Hub<User>, connection: LiveConnection<User>): void {
  if (!hub.connections.delete(connection)) return
  const userId = hub.options.userId(connection.user)
  const own = hub.byUser.get(userId)
  own?.delete(connection)
  if (own?.size === 0) hub.byUser.delete(userId)
  const open = (hub.byIp.get(connection.ip) ?? 1) - 1
  if (open === 0) hub.byIp.delete(connection.ip)
  else hub.byIp.set(connection.ip, open)
}

/** A hook that throws closes its own connection and affects nothing else. */
function guard<User>(
  hub: Hub<User>,
  log: ServerLog,
  connection: LiveConnection<User>,
  hook: () => Promise<void>,
): void {
  hook().catch((error: unknown) => {
    log.error({ err: error, path: hub.options.path }, 'WebSocket hook failed')
    connection.close(INTERNAL_ERROR, 'internal error')
  })
}

function notify<User>(hub: Hub<User>, log: ServerLog, hook: () => void): void {
  try {
    hook()
  } catch (error) {
    log.error({ err: error, path: hub.options.path }, 'WebSocket hook failed')
  }
}

function keepAlive<User>(hub: Hub<User>, connection: LiveConnection<User>): void {
  const { expiresAtMs } = connection
  if (expiresAtMs !== null && Date.now() >= expiresAtMs) {
    connection.close(POLICY_VIOLATION, 'token expired')
    return
  }
  const silentMs = performance.now() - Math.max(connection.activeMs, hub.lastPublishMs)
  if (silentMs >= hub.limits.keepaliveMs) connection.send('ping')
}
