import t from 'tap'
import { startCluster } from '../support/cluster.js'
import { seeded } from '../support/landing.js'
import { eventually, settled, startLiveService, type LiveService } from '../support/live-service.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../src/model/time.js'
import { contradictionsOn } from './agree.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

/** The same service on one, two and three shards gives equal replies. */
const SHARDS = [1, 2, 3]
const SOURCES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota']
const SEVERITIES = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL']
const SAME_MS = 60_000
const startedMs = Date.now()
const seed = Number(process.env['SEED'] ?? startedMs % 100_000)

/**
 * Messages of the last ten days. Those of the last minutes leave windows during the test, such as the five minutes of the KPI snapshot,
 * when the machine is busy; they leave within seconds of one another.
 */
function bodies(): readonly (readonly object[])[] {
  const random = seeded(seed)
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
  const ages = [110_000, 20 * MINUTE_MS, 40 * MINUTE_MS, 5 * HOUR_MS, 30 * HOUR_MS, 5 * DAY_MS]
  return Array.from({ length: 12 }, () =>
    Array.from({ length: 150 }, () => {
      const message =
        random() < 0.3
          ? 'heartbeat missed by the north gate'
          : `${pick(['login of user', 'upload to bucket', 'query of table'])} ${Math.floor(random() * 400)} ${pick(['ok', 'late', 'failed'])}`
      return {
        source: pick(SOURCES),
        severity: pick(SEVERITIES),
        host: `web-${Math.floor(random() * 4)}`,
        timestamp: new Date(startedMs - pick(ages) - Math.floor(random() * 5_000)).toISOString(),
        message,
      }
    }),
  )
}

const clusters = await Promise.all(
  SHARDS.map(async (shards) => {
    const cluster = await startCluster(shards)
    t.teardown(() => cluster.stop())
    return cluster
  }),
)

/** What differs from run to run: moments of this test, and random names. */
function plain(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => plain(item))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, plain(item, name)]),
    )
  if (typeof value !== 'string') return /(_ms|_seconds)$/.test(key) ? 'a duration' : value
  if (/^\d{4}-\d\d-\d\dT/.test(value) && Date.parse(value) >= startedMs - 100_000) return 'now'
  return /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(value) ? 'an id' : value
}

/** Routes whose replies depend on the process, on the time, or on the parts of the tables. */
const OWN =
  /^\/(metrics|docs|openapi\.json|api\/analytics\/ledger|api\/monitoring\/(health|collectors|audit|storage))/

async function pathsOf(service: LiveService): Promise<readonly string[]> {
  const { body: spec } = await service.call('GET /openapi.json')
  const plainPaths = Object.entries<any>(spec.paths)
    .filter(([path, item]) => item.get !== undefined && !path.includes('{') && !OWN.test(path))
    .map(([path]) => path)
    .filter((path) => !path.startsWith('/ws/'))
  const { body: events } = await service.call('GET /api/logs?limit=200&start_time=2000-01-01')
  const { body: templates } = await service.call('GET /api/logs/meta/templates?limit=12')
  const windows = ['5s', '1m', '15m', '1h', '24h', '7d', '30d']
  const list = '/api/logs?limit=50&start_time=2000-01-01'
  return [
    ...plainPaths,
    ...events.items
      .slice(0, 15)
      .flatMap(({ id }: any) => [`/api/logs/${id}`, `/api/logs/${id}/explain`]),
    ...templates.map(({ template_id: id }: any) => `/api/logs/meta/templates/${id}`),
    ...windows.flatMap((window) => [
      `/api/logs/meta/timeseries?window=${window}&limit=50`,
      `/api/logs/meta/timeseries?window=${window}&limit=7&offset=3&source=alpha`,
      `/api/analytics/severity-breakdown?window=${window}`,
      `/api/analytics/top-sources?window=${window}&limit=50`,
      `/api/analytics/dlq-vs-stored?window=${window}`,
    ]),
    ...['second', 'minute', 'hour', 'day'].map(
      (granularity) => `/api/logs/meta/timeseries?window=30d&granularity=${granularity}&limit=50`,
    ),
    ...['P1', 'P2', 'P3', 'P4'].map((priority) => `/api/logs/meta/calendar?priority=${priority}`),
    `${list}&severity=ERROR&source=beta`,
    `${list}&priority=P1&priority=P2`,
    `${list}&search=heartbeat`,
    `${list}&search=%22north%20gate%22`,
    `${list}&search=log*`,
    `${list}&is_error_or_worse=true&source=gamma&source=eta`,
    '/api/analytics/severity-breakdown?window=30d&source=alpha&source=beta',
    '/api/logs/meta/templates?limit=200',
    '/api/ai-insights/anomalies?limit=200',
  ]
}

async function compare(services: readonly LiveService[], about: string): Promise<void> {
  const [first] = services
  if (first === undefined) throw new Error('bug: no service')
  for (const service of services) await settled(service)
  for (const cluster of clusters)
    t.same(await contradictionsOn(cluster), [], `${about}: all tables agree`)
  const paths = await pathsOf(first)
  t.ok(paths.length > 80, `${paths.length} questions`)
  const ask = (path: string): Promise<readonly unknown[]> =>
    Promise.all(
      services.map(async (service) => {
        const { status, body } = await service.call(`GET ${path}`)
        return { status, body: plain(body) }
      }),
    )
  const isSame = ([one, ...rest]: readonly unknown[]): boolean =>
    rest.every((reply) => JSON.stringify(reply) === JSON.stringify(one))
  const waiting = [...paths]
  const asker = async (): Promise<void> => {
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      const asked = path
      // Messages may leave a window between two requests, and a KPI snapshot is kept for half a minute.
      const replies = await eventually(() => ask(asked), isSame, SAME_MS).catch(() => ask(asked))
      for (const [i, reply] of replies.entries())
        if (i > 0) t.same(reply, replies[0], `${about}: ${path} on ${SHARDS[i]} shards`)
    }
  }
  await Promise.all([asker(), asker(), asker(), asker()])
}

t.test('the same data give the same replies on one, two and three shards', async (t) => {
  t.comment(`seed ${seed}`)
  const services = await Promise.all(clusters.map(({ env }) => startLiveService(t, env)))
  const everywhere = async (work: (service: LiveService) => Promise<unknown>): Promise<void> => {
    await Promise.all(services.map(work))
  }
  await everywhere(async (service) => {
    for (const body of bodies()) await service.ingest(body)
    await service
      .ingest([{ source: 'alpha', message: 'before time', timestamp: '1960-01-01T00:00:00Z' }])
      .catch(() => undefined)
    await service.call('POST /api/applications', { json: { name: 'shop' } })
    await settled(service)
  })
  await everywhere((service) =>
    service.call(`POST /api/ai-insights/snapshot/refresh?at=${new Date(startedMs).toISOString()}`),
  )
  await compare(services, 'ingested')

  const { body: page } = await (services[0] as LiveService).call(
    'GET /api/logs?limit=40&start_time=2000-01-01',
  )
  await everywhere(async (service) => {
    for (const [i, { id }] of page.items.entries()) {
      const json = { priority: ['P1', 'P2', 'P3', 'P4'][i % 4], reason: 'compared' }
      if (i % 5 === 0) await service.call(`PATCH /api/logs/${id}/priority`, { json })
    }
    await service.ingest(bodies()[3] ?? [])
    await service.restart()
  })
  await compare(services, 'corrected and started again')

  await everywhere(async (service) => {
    t.match(await service.call('DELETE /api/sources/beta'), { status: 200 })
  })
  await compare(services, 'a source deleted')
})
