import { createHash, timingSafeEqual } from 'node:crypto'
import { Type, type Static, type TSchema } from '@sinclair/typebox'
import type { RequestHead } from '../../http/request.js'
import { AppError } from '../../model/errors.js'
import { MINUTE_MS } from '../../model/time.js'
import { METRICS_TYPE } from '../../telemetry/metrics.js'
import type { HealthReport } from '../health.js'
import { RouteReply, route, type Caller } from '../route.js'
import { KEPT_TABLES, toDay, type Partition } from '../../retention/partitions.js'
import type { StorageReport } from '../../retention/retention.js'
import type { MetricsAccess, Services } from '../services.js'

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
    collector_url: Type.Optional(
      Type.String({ description: 'COLLECTOR_URL; absent when it is not set' }),
    ),
    collector_port: Type.Optional(
      Type.Integer({ description: 'the port that takes events; absent for ROLE=api' }),
    ),
  },
  { title: 'Health' },
)
const Count = Type.Integer({ minimum: 0 })

/** Only authenticated users see latencies, details and where the collector is. */
function toHealth(
  { status, checks }: HealthReport,
  { version, config: { collectorUrl: url }, collectorPort: port }: Services,
  caller: Caller | null,
) {
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
    ...(caller === null || url === '' ? {} : { collector_url: url }),
    ...(caller === null || port === null ? {} : { collector_port: port }),
  }
}

const LOOPBACK = /^(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/
/**
 * The Host headers of clients on this machine. A web page that reaches this machine by DNS
 * rebinding sends its own domain instead.
 */
const LOOPBACK_HOST = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i
/** Headers of proxies. Any of them means that the client is not the host that connected. */
const FORWARDING = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
  'x-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
] as const

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

const Day = Type.String({ format: 'date' })
const Or = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

const StorageSchema = Type.Object(
  {
    retention_days: Type.Integer({ description: 'RETENTION_DAYS: nothing is kept longer' }),
    by_severity: Type.Partial(
      Type.Object({
        DEBUG: Type.Integer(),
        INFO: Type.Integer(),
        WARNING: Type.Integer(),
        ERROR: Type.Integer(),
        CRITICAL: Type.Integer(),
      }),
      { description: 'days of severities with a retention of their own' },
    ),
    max_disk_share: Or(
      Type.Number({
        description: 'MAX_DISK as a share of the disk; null with a ClickHouse server',
      }),
    ),
    max_disk_bytes: Or(Type.Integer({ description: 'MAX_DISK as bytes of what is stored' })),
    used_share: Or(
      Type.Number({
        description: 'of the disk; null with a ClickHouse server, whose disk is not known',
      }),
    ),
    dropped: Or(
      Type.Object(
        { day: Day, at: Type.String({ format: 'date-time' }) },
        {
          description: 'the day of arrival that MAX_DISK dropped last',
        },
      ),
    ),
    stored: Type.Array(
      Type.Object({
        table: Type.Union(KEPT_TABLES.map((table) => Type.Literal(table))),
        kept_days: Type.Integer(),
        rows: Count,
        bytes: Count,
        oldest_day: Day,
        newest_day: Day,
      }),
    ),
  },
  { title: 'Storage' },
)

function toStorage(
  { stored, usedShare, dropped }: StorageReport,
  { config: { retentionDays, retentionBySeverity }, retention: { maxDisk } }: Services,
): Static<typeof StorageSchema> {
  const classes = new Map<string, Partition[]>()
  for (const one of stored) {
    const key = `${one.table} ${one.keptDays ?? 0}`
    classes.set(key, [...(classes.get(key) ?? []), one])
  }
  return {
    retention_days: retentionDays,
    by_severity: Object.fromEntries(retentionBySeverity),
    max_disk_share: maxDisk?.kind === 'share' ? maxDisk.share : null,
    max_disk_bytes: maxDisk?.kind === 'bytes' ? maxDisk.bytes : null,
    used_share: usedShare,
    dropped:
      dropped === null ? null : { day: dropped.day, at: new Date(dropped.atMs).toISOString() },
    stored: [...classes.values()].flatMap(([first, ...rest]) =>
      first === undefined ? [] : [toClass([first, ...rest], first, retentionDays)],
    ),
  }
}

function toClass(all: readonly Partition[], { table, keptDays }: Partition, most: number) {
  const days = all.map(({ dayMs }) => dayMs)
  return {
    table,
    // Class 0 has no retention of its own.
    kept_days: Math.min(keptDays || most, most),
    rows: all.reduce((sum, { rows }) => sum + rows, 0),
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    oldest_day: toDay(Math.min(...days)),
    newest_day: toDay(Math.max(...days)),
  }
}

const views = [
  route({
    id: 'health',
    isInstanceLocal: true,
    method: 'get',
    path: '/api/monitoring/health',
    summary: 'State of the service and of its dependencies',
    description:
      'The service is down (503) without ClickHouse, the write-ahead log (`spool`) or the worker threads. It is degraded ' +
      'without the shared state in Redis (`state`), while ClickHouse takes no rows, cold storage does not answer or ' +
      '`MAX_DISK` has dropped days (`clickhouse`), while acknowledged events wait for more than a minute (`spool`), and while ' +
      'alert rules are not evaluated, a channel fails or notices were dropped (`alerts`). ' +
      'Latencies, details and where the collector is are shown to authenticated callers, but not to API tokens that are ' +
      'limited to sources. Answers within two seconds.',
    role: 'public',
    reply: HealthSchema,
    alsoStatuses: [503],
    errors: [],
    handle: async ({ principal }, services) => {
      const report = await services.health.report()
      const status = report.status === 'down' ? 503 : 200
      return new RouteReply(toHealth(report, services, principal), { status })
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
    id: 'storage',
    method: 'get',
    path: '/api/monitoring/storage',
    summary: 'How long events are kept, how much is stored, and the limit of the disk',
    description:
      'Rows and compressed bytes of events, their repeats and dead letters, by retention class: `kept_days` is the retention that held ' +
      'when they arrived. Of a cluster the figures are those of one replica of each shard.',
    role: 'viewer',
    reply: StorageSchema,
    errors: ['dependency_unavailable'],
    handle: async (_, services) => toStorage(await services.retention.report(), services),
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
  summary: 'Deletes all events, and what belongs to them',
  description:
    'Deletes events, templates, alerts, incidents, tasks, sources, applications and dead letters. Users, keys, alert rules with ' +
    'their channels, saved views and the audit trail stay.',
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
