import { createApi } from './api.js'
import { audited, recordRefusals } from './audited.js'
import { createDocsRoutes } from './docs.js'
import { createPageRoutes } from './page.js'
import { describeApi } from './description.js'
import { ACCESS_COOKIE, accessTokenOf } from './auth/credentials.js'
import { isApiToken } from './auth/api-tokens.js'
import { createOriginCheck } from './auth/origin.js'
import { DEFAULT_SOURCE } from '../ingest/submission.js'
import type { IngestServices } from '../ingest/protocols/ingest-route.js'
import { PROTOCOLS } from '../ingest/protocols/table.js'
import type { Once } from '../ingest/once.js'
import { webhookRoute } from '../ingest/webhook/webhook.js'
import type { Caller } from './route.js'
import { allRoutes } from './routes.js'
import { parseScmWebhook } from '../ingest/webhook/webhook-events.js'
import { verifySignature } from '../ingest/webhook/signature.js'
import type { Config } from '../config.js'
import type { RequestHead } from '../http/request.js'
import { createServer, type HttpServer } from '../http/server.js'
import type { HttpRoute } from '../http/routes.js'
import type { Uws } from '../http/uws.js'
import { AppError } from '../model/errors.js'
import type { Instance } from '../coordination/instance.js'
import type { Capacity } from '../http/capacity.js'
import type { Pipeline } from '../ingest/pipeline.js'
import type { SharedMemory } from '../ingest/packed-task.js'
import type { Wal } from '../wal/wal.js'
import type { Audit } from '../records/audit.js'
import type { Live } from './live.js'
import type { Services } from './services.js'

/** The services that exist before the ports are opened: all but the collector's port. */
export type AppServices = Omit<Services, 'collectorPort'>

interface ServerDeps extends Pick<Instance, 'config' | 'log' | 'metrics' | 'state' | 'replica'> {
  readonly uws: Uws
  readonly capacity: Capacity
  readonly memory: SharedMemory
  readonly audit: Audit
  readonly live: Live
  readonly services: AppServices
  readonly ingest: IngestServices
}

export interface Servers {
  /** Null for a role without this port. */
  readonly apiPort: number | null
  readonly collectorPort: number | null
  close(deadlineMs: number): Promise<void>
}

/** Opens the ports of the role. @throws Error naming the setting of a port that is taken */
export function openServers(deps: ServerDeps): Servers {
  const { role } = deps.config
  const collector = role === 'api' ? null : collectorServer(deps)
  const collectorPort = collector?.listen() ?? null
  const services = { ...deps.services, collectorPort }
  const api = role === 'collector' ? null : apiServer({ ...deps, services })
  const apiPort = api?.listen() ?? null
  return {
    apiPort,
    collectorPort,
    close: async (deadlineMs) => {
      await Promise.all([api?.close({ deadlineMs }), collector?.close({ deadlineMs })])
    },
  }
}

function apiServer(deps: ServerDeps & { readonly services: Services }): HttpServer {
  const { config, uws, log, services } = deps
  return createServer({
    uws,
    host: config.host,
    port: config.apiPort,
    portSetting: 'API_PORT',
    log,
    cors: { origins: config.corsOrigins },
    trustedProxies: config.trustedProxies,
    https: isServedOverHttps(config),
    ...toLimits(deps.capacity),
    webSockets: deps.live.routes,
    observe: (outcome) => deps.metrics.request('api', outcome),
    routes: [
      ...createPageRoutes(),
      ...createDocsRoutes(() => describeApi(services.version)),
      ...createApi({
        uws,
        routes: audited(allRoutes, deps.audit),
        services,
        ...currentOf(deps),
        authenticate: (head) => authenticate(head, services),
        consume: (name, subject) => services.limiter.consume(name, subject),
        mayUseCookies: createOriginCheck(config.corsOrigins),
        onRefused: recordRefusals(deps.audit, deps.state),
      }),
    ],
  })
}

/** The service itself speaks HTTP; Secure cookies mean that a proxy in front speaks HTTPS. */
const isServedOverHttps = ({ cookieSecure, nodeEnv }: Config): boolean =>
  cookieSecure || nodeEnv === 'production'

const currentOf = ({ state, replica }: Pick<Instance, 'state' | 'replica'>) =>
  state.kind === 'redis' ? { current: () => replica.refresh() } : {}

const toLimits = ({ pool, perPort }: Capacity) => ({ pool, limits: { connections: perPort } })

function authenticate(head: RequestHead, services: Services): Caller {
  const { token, via } = accessTokenOf({
    authorization: head.headers.first('authorization') ?? '',
    cookie: () => head.cookies.get(ACCESS_COOKIE) ?? '',
  })
  try {
    return { ...services.authenticate(token), via }
  } catch (error) {
    if (isApiToken(token)) services.intrusions.note('api_token', { address: head.ip })
    throw error
  }
}

function collectorServer(deps: ServerDeps): HttpServer {
  const { config, uws, log } = deps
  return createServer({
    uws,
    host: config.host,
    port: config.collectorPort,
    portSetting: 'COLLECTOR_PORT',
    log,
    trustedProxies: config.trustedProxies,
    https: isServedOverHttps(config),
    buffers: deps.memory.bufferPool,
    ...toLimits(deps.capacity),
    observe: (outcome) => deps.metrics.request('collector', outcome),
    routes: [
      ...protocolRoutes(deps),
      ...webhookRoutes(deps),
      ...(config.role === 'collector' ? metricsRoute(deps) : []),
    ],
  })
}

/** Serves the metrics of a process without an API port. */
const metricsRoute = ({ uws, services }: ServerDeps): HttpRoute[] =>
  createApi({
    uws,
    routes: allRoutes.filter(({ id }) => id === 'metrics'),
    services: { ...services, collectorPort: null },
    authenticate: () => {
      throw new AppError('unauthorized', 'this port knows no users')
    },
    consume: (name, subject) => services.limiter.consume(name, subject),
    mayUseCookies: () => false,
  })

const protocolRoutes = ({ ingest }: ServerDeps): HttpRoute[] => {
  const all = PROTOCOLS.flatMap(({ routes }) => routes?.(ingest) ?? [])
  return all.map((route) => ({ isJoined: true, ...route }))
}

interface IngestDeps extends Pick<Instance, 'state' | 'replica'> {
  readonly services: AppServices
  readonly pipeline: Pipeline
  readonly wal: Wal
  readonly once: Once
}

/** The services of requests with an ingest key, on every port. */
export function ingestServices(deps: IngestDeps): IngestServices {
  const { services, pipeline, wal, once } = deps
  return {
    version: services.version,
    verifyKey: (key) => services.ingestKeys.verify(key),
    hasKey: (id) => services.ingestKeys.find(id) !== null,
    onWrongKey: ({ ip }) => services.intrusions.note('ingest_key', { address: ip }),
    ...currentOf(deps),
    hasRoom: (bytes, owner) => pipeline.hasRoom(bytes, owner),
    isReady: () => wal.fault === null && !wal.isFull(),
    submit: (submission) => pipeline.submit(submission),
    once,
  }
}

/** The owner of all deliveries in the pipeline. */
const WEBHOOKS = 'webhooks'

function webhookRoutes({ config, services, ingest }: ServerDeps): HttpRoute[] {
  if (!config.webhookEnabled) return []
  const secrets = [config.webhookSecret, config.webhookSecretPrevious].filter((s) => s !== null)
  const { environment, maxMessageBytes } = config
  const route = webhookRoute({
    onWrongSignature: ({ ip }) => services.intrusions.note('webhook_signature', { address: ip }),
    verify: (signature, body) => verifySignature(signature, body, secrets),
    parse: (body) => parseScmWebhook(body, { nowMs: Date.now(), environment, maxMessageBytes }),
    hasRoom: (bytes) => ingest.hasRoom(bytes, WEBHOOKS),
    once: ingest.once,
    storedKeys: services.events.storedKeys,
    store: async (events, { connector }) => {
      const result = await ingest.submit({
        owner: WEBHOOKS,
        format: 'events',
        bytes: null,
        coding: 'identity',
        events,
        protocol: 'webhook',
        source: null,
        keyId: '',
        defaultSource: DEFAULT_SOURCE,
        allowedSources: null,
        keepRaw: true,
        maxRows: events.length,
        replays: null,
        register: { type: 'webhook', connector, applicationId: null },
      })
      return result.accepted
    },
  })
  return [route]
}
