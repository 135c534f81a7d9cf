import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { t as suite, test, type Test } from 'tap'
import { WebSocket } from 'ws'
import { analyticsRoutes } from '../../../src/api/routes/analytics.js'
import { createKpiSockets, kpiRoutes } from '../../../src/api/routes/kpis.js'
import { logMetaRoutes } from '../../../src/api/routes/log-meta.js'
import { createKpiCache } from '../../../src/live/kpi-cache.js'
import { createKpiPush } from '../../../src/live/kpi-push.js'
import { toKpiSnapshot } from '../../../src/live/kpi-snapshot.js'
import { AppError } from '../../../src/model/errors.js'
import { createInProcessState } from '../../../src/state/in-process.js'
import { createAnalytics } from '../../../src/store/analytics.js'
import { createCalendar } from '../../../src/store/calendar.js'
import { readKpiCounts } from '../../../src/store/kpi-counts.js'
import { createSeries } from '../../../src/store/series.js'
import { createTemplateStats } from '../../../src/store/template-stats.js'
import { startApi } from '../../support/api.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { startServer } from '../../support/edge.js'
import { applySchema, insertLanding, type LandingRow } from '../../support/landing.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

const unexpected = (error: unknown): never => {
  throw error
}

const directory = {
  describe: (id: string) => ({ id, text: `text of ${id}`, override: null }),
  redirects: () => [],
}

/** Everything from the store to the socket, as the program joins it. */
async function setUp(t: Test) {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const state = createInProcessState({ onError: unexpected })
  const calls = { computed: 0, addresses: [] as string[], limit: Infinity }
  const cache = createKpiCache({
    state,
    compute: async () => {
      calls.computed++
      const counts = await readKpiCounts(store, directory, { nowMs: Date.now(), sources: ['web'] })
      return toKpiSnapshot(counts, {
        applications: [{ name: 'shop', sources: ['web'] }],
        alerts: { open: 0, recent: [] },
        templatesKnown: 1,
        textOfTemplate: (id) => directory.describe(id).text,
        mlHealth: null,
      })
    },
  })
  const sockets = createKpiSockets({
    authenticate: (token) => {
      if (token.startsWith('user-')) return { userId: token, expiresAtMs: Date.now() + 60_000 }
      throw new AppError('unauthorized', 'the access token is not valid')
    },
    consume: async (address) => {
      calls.addresses.push(address)
      if (calls.addresses.length > calls.limit) throw new AppError('rate_limited', 'too often')
    },
    allowOrigin: (origin) => origin === 'http://good.example',
    greet: (client) => push.greet(client),
    maxOpenPerAddress: 3,
  })
  const push = await createKpiPush({
    cache,
    sockets,
    signals: state,
    intervalMs: 30,
    onError: unexpected,
  })
  const { port } = startServer(t, { webSockets: [sockets.route] })
  t.teardown(async () => {
    push.close()
    await state.close()
  })
  return { store, cache, push, sockets, calls, url: `ws://127.0.0.1:${port}/ws/kpis` }
}

interface ClientOptions {
  readonly path?: string
  readonly protocols?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

function client(t: Test, url: string, { path = '', protocols = [], headers = {} }: ClientOptions) {
  const socket = new WebSocket(url + path, [...protocols], { headers })
  const snapshots: { readonly total_occurrences: number }[] = []
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString())
    if (message.type === 'kpi:snapshot') snapshots.push(message.payload)
  })
  socket.on('error', () => {})
  const closed = once(socket, 'close').then(([code, reason]) => `${code} ${reason}`)
  t.teardown(() => socket.terminate())
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await sleep(2)
  }
  return {
    socket,
    snapshots,
    closed,
    greeted: () => until(() => snapshots.length > 0),
    until,
  }
}

const row = (id: number, fields: Partial<LandingRow> = {}): LandingRow => ({
  id,
  isNew: true,
  n: 1,
  receivedMs: Date.now(),
  tsMs: Date.now(),
  source: 'web',
  severity: 'ERROR',
  priority: 'P1',
  confidence: 0.9,
  modelVersion: 'rules-1',
  templateId: '00000000000000aa',
  ...fields,
})

void test('a client gets a snapshot at once and another one after a batch', async (t) => {
  const { store, push, url, cache } = await setUp(t)
  const one = client(t, url, { path: '?token=user-1' })
  await one.greeted()
  t.equal(one.snapshots[0]?.total_occurrences, 0)
  await insertLanding(store, [row(1, { n: 3 }), row(2)])
  push.onWritten()
  await one.until(() => one.snapshots.length > 1)
  const { generated, ...payload } = { generated: 0, ...one.snapshots[1] }
  t.equal(generated, 0)
  t.match(payload, {
    unique_events: 2,
    total_occurrences: 4,
    dedup_rate_pct: 50,
    error_events: 4,
    active_applications: 1,
    critical_applications: 1,
    top_critical_apps: [{ name: 'shop', critical_count: 4 }],
    top_errors: [{ template_id: '00000000000000aa', count: 4 }],
  })
  t.same(JSON.parse(await cache.get()), payload, 'the same as the REST API serves')
})

void test('each place may hold the token, the first one counts', async (t) => {
  const { url, sockets } = await setUp(t)
  const accepted = async (options: ClientOptions, user: string): Promise<void> => {
    const each = client(t, url, options)
    await each.greeted()
    t.equal(sockets.openOf(user), 1, user)
    each.socket.terminate()
    await each.until(() => sockets.size === 0)
  }
  const bearer = { authorization: 'Bearer user-header' }
  const cookie = { cookie: 'a=b; ACCESS_TOKEN=user-cookie' }
  const protocols = ['jwt.user-protocol']
  const path = '?token=user-query'
  await accepted({ headers: { ...bearer, ...cookie }, protocols, path }, 'user-header')
  await accepted({ headers: cookie, protocols, path }, 'user-protocol')
  await accepted({ headers: cookie, path }, 'user-cookie')
  await accepted({ path }, 'user-query')

  const refused = (options: ClientOptions): Promise<string> => client(t, url, options).closed
  t.equal(await refused({}), '1008 an access token is required')
  t.equal(await refused({ path: '?token=x' }), '1008 the access token is not valid')
  t.match(await refused({ headers: { authorization: 'Bearer' }, path }), /^1008 /)
  t.match(await refused({ headers: { authorization: 'Bearer x' }, path }), /^1008 /)
})

void test('a page of another origin cannot use the cookie', async (t) => {
  const { url } = await setUp(t)
  const headers = { cookie: 'ACCESS_TOKEN=user-1', origin: 'http://evil.example' }
  t.equal(await client(t, url, { headers }).closed, '1008 origin not allowed')
  await client(t, url, { headers: { ...headers, origin: 'http://good.example' } }).greeted()
  const path = '?token=user-1'
  await client(t, url, { headers: { origin: 'http://evil.example' }, path }).greeted()
  t.pass('a token of its own needs no origin')
})

void test('connections are limited per address, in number and in frequency', async (t) => {
  const { url, calls } = await setUp(t)
  const path = '?token=user-1'
  for (let i = 0; i < 3; i++) await client(t, url, { path }).greeted()
  t.equal(await client(t, url, { path }).closed, '1008 too many connections')

  const second = await setUp(t)
  second.calls.limit = 1
  await client(t, second.url, { path }).greeted()
  t.equal(await client(t, second.url, { path }).closed, '1008 too often')
  t.same(calls.addresses, ['127.0.0.1', '127.0.0.1', '127.0.0.1'])
})

void test('a user who is shut out is disconnected', async (t) => {
  const { url, sockets } = await setUp(t)
  const one = client(t, url, { path: '?token=user-1' })
  const two = client(t, url, { path: '?token=user-2' })
  await one.greeted()
  await two.greeted()
  t.equal(sockets.closeUser('user-1', 1008, 'the user is inactive'), 1)
  t.equal(await one.closed, '1008 the user is inactive')
  t.equal(two.socket.readyState, WebSocket.OPEN)
})

void test('the routes of counts answer as documented', async (t) => {
  const { store, cache, push } = await setUp(t)
  const samples: string[] = []
  const { call } = startApi(t, [...logMetaRoutes, ...analyticsRoutes, ...kpiRoutes], {
    series: createSeries(store),
    calendar: createCalendar(store),
    templateStats: createTemplateStats(store, directory),
    templateSamples: async (id: string) => {
      samples.push(id)
      return []
    },
    templateVariables: async () => [{ index: 0, values: [{ value: '42', count: 3 }] }],
    eventContext: { canonicalTemplate: (id: string) => id, applicationOf: () => null },
    analytics: createAnalytics(store),
    kpis: cache,
  })
  const get = async (path: string) => {
    const { status, body } = await call('viewer', `GET ${path}`)
    return { status, body }
  }

  t.match(await get('/api/logs/meta/timeseries'), {
    status: 200,
    body: { window: '24h', granularity: 'day', offset: 0, has_more: false, buckets: [] },
  })
  t.same((await get('/api/analytics/dlq-vs-stored')).body, {
    window: '24h',
    received: 0,
    stored: 0,
    dlq: 0,
    success_rate_pct: 100,
    buckets: [],
  })
  t.match(await get('/api/kpis'), { status: 200, body: { unique_events: 0 } })

  const tsMs = Date.now()
  await insertLanding(store, [
    row(1, { tsMs, n: 2 }),
    row(2, { tsMs, severity: 'INFO', priority: 'P4' }),
  ])
  t.match(await get('/api/kpis'), { body: { unique_events: 0 } }, 'cached')
  await push.onChanged()
  t.match(await get('/api/kpis'), { body: { unique_events: 2 } }, 'anew after a change')

  t.match(await get('/api/logs/meta/timeseries?window=1m&source=web,db&limit=50'), {
    body: { window: '1m', granularity: 'minute', buckets: [{ ERROR: 2, INFO: 1, P1: 2, P4: 1 }] },
  })
  const today = new Date(tsMs).toISOString().slice(0, 10)
  t.same((await get('/api/logs/meta/calendar?priority=P1&priority=P2')).body, [
    { day: today, value: 2 },
  ])
  t.match((await get('/api/logs/meta/templates?limit=1')).body, [
    {
      template_id: '00000000000000aa',
      template_text: 'text of 00000000000000aa',
      template: 'text of 00000000000000aa',
      occurrence_count: 3,
      severity: 'ERROR',
      priority: 'P1',
      confidence: 0.9,
      model_version: 'rules-1',
    },
  ])
  t.match(await get('/api/logs/meta/templates/00000000000000aa'), {
    status: 200,
    body: {
      occurrence_count: 3,
      series: [{ ERROR: 2, INFO: 1 }],
      sample_events: [],
      variables: [{ index: 0, values: [{ value: '42', count: 3 }] }],
    },
  })
  t.same(samples, ['00000000000000aa'])
  t.match(await get('/api/logs/meta/templates/00000000000000ab'), {
    status: 404,
    body: { detail: { code: 'not_found', details: { template_id: '00000000000000ab' } } },
  })
  t.match((await get('/api/analytics/severity-breakdown?window=5m')).body, {
    window: '5m',
    total: 3,
    items: [
      { severity: 'DEBUG', count: 0, pct: 0 },
      { severity: 'INFO', count: 1, pct: 33.33 },
      { severity: 'WARNING', count: 0, pct: 0 },
      { severity: 'ERROR', count: 2, pct: 66.67 },
      { severity: 'CRITICAL', count: 0, pct: 0 },
    ],
  })
  t.match((await get('/api/analytics/top-sources')).body, {
    window: '24h',
    items: [{ source: 'web', count: 3, error_count: 2, error_rate_pct: 66.67 }],
  })

  for (const path of [
    '/api/logs/meta/timeseries?window=3h',
    '/api/logs/meta/timeseries?granularity=week',
    '/api/logs/meta/timeseries?limit=51',
    '/api/logs/meta/timeseries?offset=-1',
    '/api/logs/meta/calendar?days=731',
    '/api/logs/meta/calendar?priority=P5',
    '/api/logs/meta/templates?limit=201',
    '/api/logs/meta/templates/xyz',
    '/api/analytics/top-sources?limit=51',
    '/api/analytics/severity-breakdown?window=1y',
  ])
    t.match(await get(path), { status: 422, body: { detail: { code: 'validation_error' } } }, path)
})
