import { request } from 'node:http'
import { test } from 'tap'
import { cursorKey } from '../../../src/records/cursor.js'
import type { DeadLetter, DeadLetterQuery } from '../../../src/model/dead-letter.js'
import { createHealth, type Probe } from '../../../src/api/health.js'
import type { ReplayRequest } from '../../../src/records/replay.js'
import { deadLetterRoutes } from '../../../src/api/routes/dead-letters.js'
import { monitoringRoutes } from '../../../src/api/routes/monitoring.js'
import { createCollectorStats } from '../../../src/telemetry/collector-stats.js'
import { createMetrics } from '../../../src/telemetry/metrics.js'
import { startApi, type FakeServices } from '../../support/api.js'

const ok: Probe = () => ({ status: 'ok', detail: 'all is well' })
const well = { clickhouse: ok, state: ok, spool: ok, workers: ok, alerts: ok }
const key = cursorKey('a secret of more than thirty-two characters')
const cleared = {
  events: 1,
  templates: 2,
  alerts: 3,
  incidents: 4,
  tasks: 5,
  sources: 6,
  applications: 7,
  dead_letters: 8,
}

const services = (parts: FakeServices = {}): FakeServices => ({
  health: createHealth(well),
  version: '1.2.3',
  config: { collectorUrl: 'https://logs.example.com' },
  collectorPort: 8080,
  collectorStats: createCollectorStats(),
  deletions: { clearAll: async () => cleared },
  metrics: createMetrics({ version: '1.2.3' }),
  metricsAccess: { token: 'a token of the metrics', isLocalOpen: true },
  ...parts,
})

void test('health is public; its details require a login', async (t) => {
  const { call } = startApi(t, monitoringRoutes, services())
  const reply = await call(null, 'GET /api/monitoring/health')
  const status = { status: 'ok' }
  t.equal(reply.status, 200)
  t.type(reply.body.uptime_s, 'number')
  t.strictSame(
    { ...reply.body, uptime_s: 0 },
    {
      ...status,
      version: '1.2.3',
      uptime_s: 0,
      checks: { clickhouse: status, state: status, spool: status, workers: status, alerts: status },
    },
  )
  const { body } = await call('viewer', 'GET /api/monitoring/health')
  t.match(body.checks.spool, { status: 'ok', detail: 'all is well', latency_ms: Number })
  t.match(body, { collector_url: 'https://logs.example.com', collector_port: 8080 })
})

void test('down is 503 with the same shape, degraded is 200', async (t) => {
  const down: Probe = () => ({ status: 'down' })
  const dead = startApi(
    t,
    monitoringRoutes,
    services({ health: createHealth({ ...well, spool: down }) }),
  )
  t.match(await dead.call(null, 'GET /api/monitoring/health'), {
    status: 503,
    body: { status: 'down', checks: { spool: { status: 'down' }, state: { status: 'ok' } } },
  })
  const weak = startApi(
    t,
    monitoringRoutes,
    services({ health: createHealth({ ...well, state: down }) }),
  )
  t.match(await weak.call(null, 'GET /api/monitoring/health'), {
    status: 200,
    body: { status: 'degraded', checks: { state: { status: 'down' } } },
  })
})

void test('collectors show what came in by protocol and source', async (t) => {
  const collectorStats = createCollectorStats()
  collectorStats.note({
    protocol: 'ingest',
    sources: ['web'],
    received: 120,
    accepted: 100,
    rejected: 20,
    bytes: 9_000,
  })
  const { call, statuses } = startApi(t, monitoringRoutes, services({ collectorStats }))
  const { body } = await call('viewer', 'GET /api/monitoring/collectors')
  t.match(body, [
    {
      protocol: 'ingest',
      source: 'web',
      received: 120,
      stored: 100,
      rejected: 20,
      bytes: 9_000,
      rate: 2,
      last_event_at: /Z$/,
    },
  ])
  t.match(await statuses('GET /api/monitoring/collectors'), { viewer: 200, nobody: 401 })
})

void test('metrics are for this machine, and for others with the token', async (t) => {
  const { call } = startApi(t, monitoringRoutes, services())
  const local = await call(null, 'GET /metrics')
  t.equal(local.status, 200)
  t.match(local.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  t.match(local.text, /^log_engine_build_info\{version="1\.2\.3"/m)
  const forwarded = { 'x-forwarded-for': '203.0.113.7' }
  const from = (token: string | null) =>
    call(token === null ? null : { token }, 'GET /metrics', undefined, forwarded)
  t.match(await from(null), { status: 401, body: { detail: { code: 'unauthorized' } } })
  t.equal((await from('a token of the metric')).status, 401)
  const token = 'a-token-of-the-metrics'
  const other = startApi(
    t,
    monitoringRoutes,
    services({ metricsAccess: { token, isLocalOpen: true } }),
  )
  const ask = (given: string) => other.call({ token: given }, 'GET /metrics', undefined, forwarded)
  t.equal((await ask(token)).status, 200)
  t.equal((await ask(`${token}s`)).status, 401)
  const none = startApi(
    t,
    monitoringRoutes,
    services({ metricsAccess: { token: null, isLocalOpen: true } }),
  )
  const refused = await none.call({ token: 'null' }, 'GET /metrics', undefined, forwarded)
  t.equal(refused.status, 401)
})

void test('a loopback address alone does not open the metrics', async (t) => {
  const token = 'a-token-of-the-metrics'
  const open = startApi(
    t,
    monitoringRoutes,
    services({ metricsAccess: { token, isLocalOpen: true } }),
  )
  const proxied = startApi(
    t,
    monitoringRoutes,
    services({ metricsAccess: { token, isLocalOpen: false } }),
  )
  const ask = ({ url }: { readonly url: string }, headers: Readonly<Record<string, string>>) =>
    statusOf(url, { host: new URL(url).host, ...headers })
  const { port } = new URL(open.url)
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', `[::1]:${port}`])
    t.equal(await ask(open, { host }), 200, host)
  const strangers = [
    'evil.example.com',
    '127.0.0.1.evil.example.com',
    'localhost.evil.com',
    '10.0.0.7',
  ]
  for (const host of strangers) {
    t.equal(await ask(open, { host }), 401, `a rebound ${host}`)
    t.equal(
      await ask(open, { host, authorization: `Bearer ${token}` }),
      200,
      `${host} with the token`,
    )
  }
  const forwarding =
    'Forwarded Via X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-IP CF-Connecting-IP'
  for (const name of forwarding.split(' '))
    t.equal(await ask(open, { [name]: 'for=203.0.113.7' }), 401, name)
  t.equal(await ask(proxied, {}), 401, 'behind a proxy that says nothing of it')
  t.equal(await ask(proxied, { authorization: `Bearer ${token}` }), 200)
})

/** The status of `GET /metrics`; `fetch` can't set Host. */
const statusOf = (url: string, headers: Readonly<Record<string, string>>): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(`${url}/metrics`, { headers }, (reply) => {
      reply.resume()
      resolve(reply.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end()
  })

void test('clear-all is for admins, is limited, and reports what it deleted', async (t) => {
  const { call, statuses, consumed } = startApi(t, monitoringRoutes, services())
  const reply = await call('admin', 'DELETE /api/monitoring/clear-all')
  t.match(reply, { status: 200, body: { cleared } })
  t.strictSame(consumed, ['clear_all_limit'])
  t.strictSame(await statuses('DELETE /api/monitoring/clear-all'), {
    viewer: 403,
    manager: 403,
    admin: 200,
    superadmin: 200,
    nobody: 401,
  })
})

const letter = (id: number): DeadLetter => ({
  id,
  receivedAtMs: 1_700_000_000_000 + id,
  protocol: 'ingest',
  source: 'web',
  keyId: '',
  reason: 'invalid_event',
  detail: 'message is missing',
  line: 3,
  raw: id % 2 === 0 ? '{"a":1}' : '',
})

function setUpLetters(t: Parameters<typeof startApi>[0]) {
  const queries: DeadLetterQuery[] = []
  const requests: ReplayRequest[] = []
  const api = startApi(t, deadLetterRoutes, {
    cursorKey: key,
    deadLetters: {
      page: async (query) => {
        queries.push(query)
        const below = query.after?.id ?? 6
        return [5, 4, 3, 2, 1]
          .filter((id) => id < below)
          .slice(0, query.limit)
          .map(letter)
      },
    },
    replay: {
      run: async (request) => {
        requests.push(request)
        const position = request.kind === 'ids' ? null : { receivedAtMs: 5, id: 4 }
        return { replayed: 1, failed: 2, skipped: 3, position }
      },
    },
  })
  return { ...api, queries, requests }
}

void test('dead letters are listed page by page under their filters', async (t) => {
  const { call, queries, statuses } = setUpLetters(t)
  const path = '/api/monitoring/dead-letters'
  const first = await call(
    'admin',
    `GET ${path}?limit=2&reason=invalid_event,unknown_source&source=web`,
  )
  t.match(first.body, {
    items: [
      {
        id: 5,
        raw: null,
        reason: 'invalid_event',
        line: 3,
        received_at: '2023-11-14T22:13:20.005Z',
      },
      { id: 4, raw: '{"a":1}', detail: 'message is missing', protocol: 'ingest', source: 'web' },
    ],
    has_more: true,
  })
  t.match(queries[0], {
    reasons: ['invalid_event', 'unknown_source'],
    sources: ['web'],
    after: null,
  })
  const { next_cursor: cursor } = first.body
  const same = 'limit=3&reason=invalid_event,unknown_source&source=web'
  const second = await call('admin', `GET ${path}?${same}&cursor=${cursor}`)
  t.match(second.body, {
    items: [{ id: 3 }, { id: 2 }, { id: 1 }],
    next_cursor: null,
    has_more: false,
  })
  const wrong = await call('admin', `GET ${path}?cursor=${cursor}`)
  t.match(wrong, { status: 422, body: { detail: { code: 'invalid_cursor' } } })
  t.match(await statuses(`GET ${path}`), { viewer: 403, manager: 403, admin: 200, nobody: 401 })
})

void test('a replay takes ids, or filters and where to go on', async (t) => {
  const { call, requests, statuses } = setUpLetters(t)
  const request = 'POST /api/monitoring/dead-letters/replay'
  const some = await call('admin', request, { ids: [1, 2] })
  t.strictSame(some.body, {
    replayed: 1,
    failed: 2,
    skipped: 3,
    has_more: false,
    next_cursor: null,
  })
  const all = (await call('admin', request)).body
  t.equal(all.has_more, true)
  t.equal((await call('admin', request, { cursor: all.next_cursor })).status, 200)
  const bound = await call('admin', request, { cursor: all.next_cursor, reason: ['x'] })
  t.match(bound, { status: 422, body: { detail: { code: 'invalid_cursor' } } })
  await call('admin', request, { reason: ['unknown_source'], source: ['web'] })
  t.strictSame(requests, [
    { kind: 'ids', ids: [1, 2] },
    { kind: 'all', query: { reasons: [], sources: [], after: null } },
    { kind: 'all', query: { reasons: [], sources: [], after: { receivedAtMs: 5, id: 4 } } },
    { kind: 'all', query: { reasons: ['unknown_source'], sources: ['web'], after: null } },
  ])
  for (const bad of [{ ids: [0] }, { ids: 'all' }, { letters: [] }]) {
    t.equal((await call('admin', request, bad)).status, 422)
  }
  t.match(await statuses(request, {}), { viewer: 403, manager: 403, superadmin: 200, nobody: 401 })
})
