import { createHash, timingSafeEqual } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import type { RequestHead } from '../../http/request.js'
import { AppError } from '../../model/errors.js'
import { MINUTE_MS } from '../../model/time.js'
import { METRICS_TYPE } from '../../telemetry/metrics.js'
import type { HealthReport } from '../health.js'
import { RouteReply, route, type Caller } from '../route.js'
import type { MetricsAccess } from '../services.js'

const StatusSchema = Type.Union([
  Type.Literal('ok'),
  Type.Literal('degraded'),
  Type.Literal('down'),
])
const CheckSchema = Type.Object({
  status: StatusSchema,
  latency_ms: Type.Optional(Type.Number({ minimum: 0 })),
  detail: Type.Optional(Type.String()),
})
const QueueSchema = Type.Object({
  ...CheckSchema.properties,
  oldest_s: Type.Optional(
    Type.Number({
      minimum: 0,
      description:
        'age of the oldest acknowledged message of this instance that no search finds yet; 0 when none waits',
    }),
  ),
})
const HealthSchema = Type.Object(
  {
    status: StatusSchema,
    version: Type.String(),
    uptime_s: Type.Integer({ minimum: 0 }),
    checks: Type.Object({
      clickhouse: CheckSchema,
      state: CheckSchema,
      spool: QueueSchema,
      workers: CheckSchema,
      alerts: CheckSchema,
    }),
  },
  { title: 'Health' },
)
const Count = Type.Integer({ minimum: 0 })

/** Only authenticated users see latencies and details. */
function toHealth({ status, checks }: HealthReport, version: string, caller: Caller | null) {
  const show = (check: HealthReport['checks']['state']) => ({
    status: check.status,
    ...(caller === null ? {} : { latency_ms: check.latencyMs }),
    ...(caller === null || check.detail === undefined ? {} : { detail: check.detail }),
  })
  const { clickhouse, state, spool, workers, alerts } = checks
  return {
    status,
    version,
    uptime_s: Math.floor(process.uptime()),
    checks: {
      clickhouse: show(clickhouse),
      state: show(state),
      spool: {
        ...show(spool),
        ...(caller === null || spool.oldestMs === undefined
          ? {}
          : { oldest_s: Math.round(spool.oldestMs / 100) / 10 }),
      },
      workers: show(workers),
      alerts: show(alerts),
    },
  }
}

const LOOPBACK = /^(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/
/** What a client on this machine calls the service; the page of a rebound domain sends that domain. */
const LOOPBACK_HOST = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i
/** Headers of proxies, any of which means that the client is not the one that connected. */
const FORWARDING = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'] as const

const isLocal = ({ ip, headers }: RequestHead): boolean =>
  LOOPBACK.test(ip) &&
  LOOPBACK_HOST.test(headers.first('host') ?? '') &&
  FORWARDING.every((name) => headers.first(name) === undefined)

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

function refuseStrangers(head: RequestHead, { token, isLocalOpen }: MetricsAccess): void {
  if (isLocalOpen && isLocal(head)) return
  const given = /^bearer +(\S+) *$/i.exec(head.headers.first('authorization') ?? '')?.[1]
  if (token !== null && given !== undefined && timingSafeEqual(digest(given), digest(token))) return
  throw new AppError('unauthorized', 'the metrics need Authorization: Bearer METRICS_TOKEN')
}

const views = [
  route({
    id: 'health',
    isInstanceLocal: true,
    method: 'get',
    path: '/api/monitoring/health',
    summary: 'State of the service and of its dependencies',
    description:
      'The service is down (503) without ClickHouse, the queue on disk (`spool`) or the workers, and degraded without ' +
      'the shared state (Redis), or where alert rules are not evaluated, a channel fails or notices were dropped (`alerts`). ' +
      'Latencies and details are shown to authenticated callers. Answers within two seconds.',
    role: 'public',
    reply: HealthSchema,
    alsoStatuses: [503],
    errors: [],
    handle: async ({ principal }, { health, version }) => {
      const report = await health.report()
      const status = report.status === 'down' ? 503 : 200
      return new RouteReply(toHealth(report, version, principal), { status })
    },
  }),
  route({
    id: 'collectors',
    method: 'get',
    path: '/api/monitoring/collectors',
    summary: 'Messages this instance received since its start, by protocol and source',
    description:
      'Ordered by `received`, descending. `source` is null for bodies with several sources or none, and for all but ' +
      'the 2,000 sources that were active last.',
    role: 'viewer',
    reply: Type.Array(
      Type.Object({
        protocol: Type.String({ examples: ['ingest', 'upload', 'webhook', 'replay'] }),
        source: Type.Union([Type.String(), Type.Null()]),
        received: Count,
        stored: Count,
        rejected: Count,
        bytes: Count,
        rate: Type.Number({ description: 'messages received per second over the last minute' }),
        last_event_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
      }),
    ),
    errors: [],
    handle: (_, { collectorStats }) =>
      collectorStats.list().map(({ ratePerSecond: rate, lastEventAtMs: lastMs, ...figures }) => {
        const lastEventAt = lastMs === null ? null : new Date(lastMs).toISOString()
        return { ...figures, rate, last_event_at: lastEventAt }
      }),
  }),
  route({
    id: 'metrics',
    isInstanceLocal: true,
    method: 'get',
    path: '/metrics',
    summary: 'Metrics in the text format of Prometheus',
    description:
      'Clients on the same machine need no token, unless the service is behind a proxy (`NODE_ENV=production`, ' +
      '`COOKIE_SECURE=true` or `TRUSTED_PROXIES`); others send `Authorization: Bearer METRICS_TOKEN`.',
    tag: 'monitoring',
    role: 'public',
    reply: Type.String(),
    produces: METRICS_TYPE,
    errors: ['unauthorized'],
    handle: ({ head }, { metrics, metricsAccess }) => {
      refuseStrangers(head, metricsAccess)
      return metrics.render()
    },
  }),
]

const clearAll = route({
  id: 'clearAll',
  method: 'delete',
  path: '/api/monitoring/clear-all',
  summary: 'Deletes all data but users, ingest keys and the audit trail',
  description:
    'Deletes events, templates, alerts, incidents, tasks, sources, applications and dead letters.',
  role: 'admin',
  limit: 'clear_all_limit',
  reply: Type.Object({
    cleared: Type.Object({
      events: Count,
      templates: Count,
      alerts: Count,
      incidents: Count,
      tasks: Count,
      sources: Count,
      applications: Count,
      dead_letters: Count,
    }),
  }),
  errors: ['dependency_unavailable'],
  handlerTimeoutMs: MINUTE_MS,
  handle: async (_, { deletions }) => ({ cleared: await deletions.clearAll() }),
})

export const monitoringRoutes = [...views, clearAll]
