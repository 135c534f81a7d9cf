import { randomBytes } from 'node:crypto'
import { AppError } from '../model/errors.js'
import { createClientAddress, createRanges, formatAddress, networkOf } from './address.js'
import type { ClientAddress } from './address.js'
import { BufferPool } from '../lib/buffer-pool.js'
import { ByteShares } from '../lib/byte-shares.js'
import { countConnections, createAddressShares, type ConnectionPool } from './connection-limits.js'
import { BodyStream, NO_CHUNKS } from './body-stream.js'
import { BodyReader, BodySlab, budgetOf, createBodyBudget, toBodyError } from './body.js'
import type { BodyMemory } from './body.js'
import { createCors, type Cors, type CorsOptions } from './cors.js'
import { createDefaultHeaders } from './default-headers.js'
import { Exchange, ExchangeList, TurnRequests, type ExchangeHost } from './exchange.js'
import type { RequestOutcome } from '../telemetry/metrics.js'
import { toErrorReply, type Reply } from './reply.js'
import { HeaderBag, Request, readFraming } from './request.js'
import type { ServerLog } from './request.js'
import { createRouter, type Router } from './router.js'
import type { Admission, HttpRoute } from './routes.js'
import { UnreadReplies } from './unread-replies.js'
import type { Uws, UwsApp, UwsListenSocket, UwsRequest, UwsResponse } from './uws.js'
import type { MountedWebSocket, WebSocketRoute, WebSocketServer } from './websocket.js'
import { MINUTE_MS } from '../model/time.js'

interface ServerLimits {
  /** Request line and headers; above it 431. At most 128 KiB, the limit of uWebSockets.js. */
  readonly headBytes: number
  /** Open connections, WebSockets included; further ones are closed at once. */
  readonly connections: number
  /** Bodies of all requests in flight; open routes have a quarter of it in addition. Above it 429 `overloaded`. */
  readonly maxBodyBytesInFlight: number
  /** Time for the body to arrive, then 408. uWebSockets.js itself closes connections slower than 16 KB/s. */
  readonly bodyTimeoutMs: number
  /** Time for the handler, then 503. */
  readonly handlerTimeoutMs: number
  /**
   * A client that reads nothing of a large reply for this long is disconnected. The kernel reports progress
   * only after about a third of the socket's buffer (1 to 2 MB), which a slow client must manage in this time.
   */
  readonly stallTimeoutMs: number
  /**
   * The most bytes of large replies that clients have not read, all together; above it the slowest
   * of these clients is disconnected.
   */
  readonly maxUnreadBytes: number
}

const DEFAULT_LIMITS: ServerLimits = {
  headBytes: 16_384,
  connections: 10_000,
  maxBodyBytesInFlight: 268_435_456,
  bodyTimeoutMs: 120_000,
  handlerTimeoutMs: 30_000,
  stallTimeoutMs: MINUTE_MS,
  maxUnreadBytes: 134_217_728,
}

export interface ServerOptions {
  readonly uws: Uws
  readonly host: string
  /** The port; 0 for any free one. */
  readonly port: number
  /** Name of the port's setting, for the error when the port is taken. */
  readonly portSetting: string
  readonly routes: readonly HttpRoute[]
  readonly webSockets?: readonly WebSocketRoute[]
  readonly log: ServerLog
  readonly cors?: CorsOptions
  /** Addresses and CIDR ranges whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[]
  /** Whether browsers use HTTPS, by way of a proxy; they are then told to use nothing else. Default false. */
  readonly https?: boolean
  /** Called once per finished request. */
  readonly observe?: (outcome: RequestOutcome) => void
  readonly limits?: Partial<ServerLimits>
  /** Shared by the servers of the process. Without it only `limits.connections` applies. */
  readonly pool?: ConnectionPool
  /** Pool of buffers for bodies. Without it each body gets a new buffer. */
  readonly buffers?: BufferPool
}

export interface HttpServer {
  /**
   * Starts to accept connections.
   *
   * @returns the port
   * @throws Error naming address and setting when the port is taken
   */
  listen(): number
  /**
   * Stops accepting connections, waits for the requests in flight, closes WebSockets with 1001,
   * then closes the rest.
   *
   * @param deadlineMs for the requests in flight, which are aborted after it
   */
  close(options: { readonly deadlineMs: number }): Promise<void>
}

interface Server {
  readonly app: UwsApp
  readonly router: Router<HttpRoute>
  readonly webSocketPaths: ReadonlySet<string>
  readonly exchanges: ExchangeHost
  readonly cors: Cors
  readonly clientAddress: ClientAddress
  readonly bodies: BodyMemory
  /** The budget of bodies that need no authentication, of which each network has a share. */
  readonly unauthenticated: ByteShares
  readonly limits: ServerLimits
  readonly connections: ConnectionPool
  readonly nextRequestId: () => string
  /** The port; 0 before the server listens. */
  port: number
}

/** Builds a server that does not listen yet. @throws RangeError or Error when an option is invalid */
export function createServer(options: ServerOptions): HttpServer {
  const { addon } = options.uws
  const server = assemble(options, addon.App())
  const mounted = mountAll(server, options)
  let listening: UwsListenSocket | null = null
  return {
    listen() {
      listening = listenOn(server.app, options)
      server.port = addon.us_socket_local_port(listening)
      return server.port
    },
    async close({ deadlineMs }) {
      server.exchanges.isDraining = true
      if (listening !== null) addon.us_listen_socket_close(listening)
      listening = null
      for (const socket of mounted) socket.close()
      await drained(server, deadlineMs)
      server.exchanges.inFlight.close()
      server.app.close()
    },
  }
}

function assemble(options: ServerOptions, app: UwsApp): Server {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const { bodyTimeoutMs, handlerTimeoutMs, stallTimeoutMs, maxBodyBytesInFlight } = limits
  const shortestMs = Math.min(bodyTimeoutMs, handlerTimeoutMs, stallTimeoutMs)
  const memory = { buffers: options.buffers ?? new BufferPool(0), slab: new BodySlab() }
  return {
    app,
    router: createRouter(options.routes),
    webSocketPaths: new Set(options.webSockets?.map(({ path }) => path)),
    cors: createCors(options.cors ?? { origins: [] }),
    clientAddress: createClientAddress(options.trustedProxies ?? []),
    bodies: { ...memory, budget: createBodyBudget(maxBodyBytesInFlight) },
    unauthenticated: new ByteShares(maxBodyBytesInFlight / 4),
    limits,
    connections: { limit: limits.connections, open: 0 },
    nextRequestId: createRequestIds(),
    port: 0,
    exchanges: {
      log: options.log,
      inFlight: new ExchangeList(Math.min(Math.max(shortestMs / 4, 20), 1000)),
      headers: createDefaultHeaders(options.https ?? false),
      bodyTimeoutMs,
      handlerTimeoutMs,
      stallTimeoutMs,
      observe: options.observe ?? null,
      isDraining: false,
      turn: new TurnRequests(),
      unread: new UnreadReplies(limits.maxUnreadBytes),
    },
  }
}

function mountAll(server: Server, options: ServerOptions): MountedWebSocket[] {
  const { app, limits, exchanges, clientAddress } = server
  const pools = [server.connections, ...(options.pool === undefined ? [] : [options.pool])]
  const count = countConnections(pools)
  const isProxy = createRanges(options.trustedProxies ?? [])
  const mayOpen = createAddressShares(pools, () => server.port)
  app.filter((res, change) => {
    const hasRoom = count(change)
    if (change < 0 || (hasRoom && mayOpen(() => addressOf(res), isProxy))) return
    res.close()
  })
  const begin = (res: UwsResponse): Exchange => new Exchange(res, exchanges, server.nextRequestId())
  const shared: WebSocketServer = {
    log: options.log,
    clientAddress,
    begin,
    isDraining: () => exchanges.isDraining,
    headBytes: limits.headBytes,
    // uWebSockets.js does not report the end of a connection that became a WebSocket.
    onClosed: () => count(-1),
  }
  const mounted = (options.webSockets ?? []).map((route) => route.mount(app, shared))
  app.any('/*', (res, req) => {
    const exchange = begin(res)
    try {
      serve(server, exchange, { res, req })
    } catch (error) {
      exchange.fail(error)
    }
  })
  return mounted
}

/** Each process has a random prefix, so that the ids of two instances differ. */
function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString('hex')
  let count = 0
  return () => `${prefix}-${(++count).toString(36)}`
}

const addressOf = (res: UwsResponse): string =>
  formatAddress(new Uint8Array(res.getRemoteAddress()))

interface Head {
  readonly method: string
  readonly path: string
  readonly queryText: string
  readonly headers: HeaderBag
}

interface FoundRoute {
  readonly route: HttpRoute
  readonly params: Readonly<Record<string, string>>
}

/** Copies what is needed of `req`, which is valid only during this call; `res` passes to the exchange. */
function serve(server: Server, exchange: Exchange, { res, req }: Incoming): void {
  const head: Head = {
    method: req.getMethod().toUpperCase(),
    path: req.getUrl(),
    queryText: req.getQuery() ?? '',
    headers: HeaderBag.from(req),
  }
  exchange.method = head.method
  exchange.extraHeaders = server.cors.replyHeaders(head.headers)
  const framing = readFraming(head.headers)
  if (framing.kind === 'invalid') {
    exchange.refuse(new AppError('bad_request', framing.reason))
    return
  }
  checkHeadSize(head, server.limits.headBytes)
  const found = findRoute(server, exchange, head)
  if (found === null) return
  exchange.routeId = found.route.id
  exchange.handlerTimeoutMs = found.route.handlerTimeoutMs ?? exchange.handlerTimeoutMs
  const request = toRequest(server, exchange, { head, found, res })
  const { toErrorReply: write } = found.route
  if (write !== undefined) exchange.toErrorReply = (error) => write(error, request)
  if (framing.kind === 'none') {
    exchange.startHandling()
  } else {
    const { bodyBytes, isAuthenticatedByBody: isOpen = false } = found.route
    const memory = isOpen
      ? { ...server.bodies, budget: budgetOf(server.unauthenticated, networkOf(request.ip)) }
      : server.bodies
    exchange.reader =
      found.route.isStreamed?.(head.headers) === true
        ? new BodyStream(res, framing, {
            budget: memory.budget,
            onProgress: () => exchange.progressed(),
          })
        : new BodyReader(res, framing, bodyBytes, memory)
  }
  admit(exchange, found.route, request)
}

interface Incoming {
  readonly res: UwsResponse
  readonly req: UwsRequest
}

function toRequest(
  server: Server,
  exchange: Exchange,
  {
    head,
    found: { route, params },
    res,
  }: {
    readonly head: Head
    readonly found: FoundRoute
    readonly res: UwsResponse
  },
): Request {
  const { method, path, queryText, headers } = head
  // The address can be read only while the connection is open.
  const socketAddress = route.isAddressless === true ? null : res.getRemoteAddress()
  return new Request({
    method,
    path,
    queryText,
    headers,
    params,
    ip: () => {
      if (socketAddress === null && !exchange.isOpen) return ''
      const address =
        socketAddress === null ? addressOf(res) : formatAddress(new Uint8Array(socketAddress))
      return server.clientAddress(address, headers.all('x-forwarded-for'))
    },
    requestId: exchange.requestId,
    log: server.exchanges.log,
    signal: () => exchange.signal,
    isOver: () => !exchange.isOpen,
  })
}

function checkHeadSize({ headers, path, queryText }: Head, limitBytes: number): void {
  const bytes = headers.bytes + path.length + queryText.length
  if (bytes <= limitBytes) return
  const message = `request line and headers of ${bytes} bytes exceed ${limitBytes}`
  throw new AppError('headers_too_large', message)
}

/** @returns null when the request has been answered */
function findRoute(server: Server, exchange: Exchange, head: Head): FoundRoute | null {
  const { method, path } = head
  const match = server.router.match(method, path)
  if (match.kind === 'route') return match
  if (method === 'OPTIONS') {
    replyOptions(server, exchange, head)
    return null
  }
  if (match.kind === 'not_found') {
    exchange.reply(toUnknown(server, path))
    return null
  }
  const error = new AppError('method_not_allowed', `${method} is not allowed here`)
  exchange.reply({ ...toErrorReply(error), headers: { Allow: match.allow } })
  return null
}

function toUnknown(server: Server, path: string): Reply {
  if (!server.webSocketPaths.has(path)) {
    return toErrorReply(new AppError('route_not_found', 'no such path'))
  }
  const reply = toErrorReply(new AppError('upgrade_required', 'this path speaks WebSocket only'))
  return { ...reply, headers: { ...reply.headers, Upgrade: 'websocket' } }
}

function replyOptions(server: Server, exchange: Exchange, { path, headers }: Head): void {
  const allow = server.router.allow(path)
  if (allow === '') {
    exchange.reply(toUnknown(server, path))
    return
  }
  const preflight = server.cors.preflightHeaders(headers, allow)
  exchange.extraHeaders = [...exchange.extraHeaders, ...preflight]
  exchange.reply({ status: 204, headers: { Allow: allow } })
}

function admit(exchange: Exchange, route: HttpRoute, request: Request): void {
  const admission = route.admit(request)
  if (admission instanceof Promise) {
    admission.then(
      (late) => proceed(exchange, late, { route, request }),
      (error: unknown) => exchange.fail(error),
    )
    return
  }
  proceed(exchange, admission, { route, request })
}

interface Routed {
  readonly route: HttpRoute
  readonly request: Request
}

function proceed(exchange: Exchange, admission: Admission, { route, request }: Routed): void {
  if (!exchange.isOpen) return
  if (admission.kind === 'refused') {
    exchange.reply(admission.reply)
    return
  }
  const { reader } = exchange
  if (admission.kind === 'streamed') {
    const body = reader instanceof BodyStream ? reader : NO_CHUNKS
    send(exchange, () => admission.handle(request, body))
    return
  }
  const { handle } = admission
  if (!(reader instanceof BodyReader)) {
    run(exchange, handle, request)
    return
  }
  reader.whenSettled((outcome) => {
    if (outcome.kind !== 'complete') {
      const reply = exchange.toErrorReply(toBodyError(outcome, route.oversizeCode))
      const isLost = outcome.kind === 'broken' || outcome.kind === 'tiny_chunks'
      exchange.reply(isLost ? { ...reply, close: true } : reply)
      return
    }
    request.body = outcome.body
    run(exchange, handle, request)
  })
}

function run(
  exchange: Exchange,
  handle: (request: Request) => Reply | Promise<Reply>,
  request: Request,
): void {
  exchange.startHandling()
  send(exchange, () => handle(request))
}

/** Sends what `handle` returns or throws, synchronously or not. */
function send(exchange: Exchange, handle: () => Reply | Promise<Reply>): void {
  const replied = (reply: Reply): void => {
    exchange.handled()
    exchange.reply(reply)
  }
  const failed = (error: unknown): void => {
    exchange.handled()
    exchange.fail(error)
  }
  try {
    const reply = handle()
    if (reply instanceof Promise) reply.then(replied, failed)
    else replied(reply)
  } catch (error) {
    failed(error)
  }
}

function listenOn(app: UwsApp, { uws, host, port, portSetting }: ServerOptions): UwsListenSocket {
  const bound: { socket: UwsListenSocket | false } = { socket: false }
  // Exclusive, because by default two processes can listen on one port and share its connections.
  app.listen(host, port, uws.addon.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
    bound.socket = socket
  })
  if (bound.socket !== false) return bound.socket
  throw new Error(
    `cannot listen on ${host}:${port} (${portSetting}): the port is in use, or the address is not of this machine`,
  )
}

const DRAIN_POLL_MS = 20
/** Every reply closes its connection while stopping, so one without a request for this long is idle. */
const QUIET_MS = 250

/**
 * Waits for the requests in flight, then for connections on which a request may be arriving: it would get no reply,
 * and a proxy must not retry every request.
 */
async function drained(
  { exchanges: { inFlight }, connections }: Pick<Server, 'exchanges' | 'connections'>,
  deadlineMs: number,
): Promise<void> {
  const untilMs = performance.now() + deadlineMs
  let busyMs = performance.now()
  const isQuiet = (nowMs: number): boolean => connections.open === 0 || nowMs - busyMs > QUIET_MS
  for (let nowMs = busyMs; nowMs < untilMs; nowMs = performance.now()) {
    if (inFlight.size > 0) busyMs = nowMs
    else if (isQuiet(nowMs)) return
    await new Promise((resolve) => {
      setTimeout(resolve, DRAIN_POLL_MS)
    })
  }
}
