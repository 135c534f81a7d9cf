import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { ADMIN } from '../../support/service.js'
import { eventually, settled, startLiveService, type Answer } from '../../support/live-service.js'
import { currentKpis, openKpiSocket } from '../../support/kpi-socket.js'
import { startRedis } from '../../support/redis.js'
import { startUnrulyClickHouse } from '../../support/unruly-clickhouse.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

const redis = await startRedis()
if (redis === null) {
  t.plan(0, 'redis-server is not installed')
} else {
  t.teardown(() => redis.kill())
  const { env } = await startUnrulyClickHouse(t)
  const shared = {
    ...env,
    REDIS_URL: redis.url,
    LOGIN_LIMIT: '4/60',
    SOURCE_CREATE_LIMIT: '3/3',
  }
  const one = await startLiveService(t, shared)
  const two = await startLiveService(t, shared)
  const code = (reply: Answer): string => reply.body?.detail?.code ?? `status ${reply.status}`

  t.test('a limit shared by two instances answers with the exact time to wait', async (t) => {
    const create = (service: typeof one, name: string) =>
      service.call('POST /api/sources', { json: { name } })
    for (const [i, service] of [one, two, one].entries()) {
      t.equal((await create(service, `shared-${i}`)).status, 201)
    }
    const refused = await create(two, 'one-too-many')
    t.equal(refused.status, 429)
    const { code, details } = refused.body.detail
    t.equal(code, 'rate_limited')
    t.match(details, { limit: 'source_create_limit', retry_after_s: Number })
    t.equal(refused.headers.get('retry-after'), String(details.retry_after_s))
    t.ok(details.retry_after_s >= 1 && details.retry_after_s <= 3)
    await sleep(details.retry_after_s * 1000)
    t.equal((await create(one, 'after-waiting')).status, 201, 'when that time is over')
  })

  t.test('passwords are guessed against both instances as against one', async (t) => {
    const json = { email: 'victim@example.com', password: 'a wrong guess' }
    const guess = (service: typeof one) => service.call('POST /api/auth/login', { json })
    for (const service of [one, two, one, two]) t.equal((await guess(service)).status, 401)
    for (const service of [one, two]) {
      const refused = await guess(service)
      t.match(refused, { status: 429, body: { detail: { details: { limit: 'login_limit' } } } })
      t.match(refused.headers.get('retry-after'), /^[1-9]\d?$/)
    }
    const other = { ...json, email: 'other@example.com' }
    t.equal((await one.call('POST /api/auth/login', { json: other })).status, 401, 'per account')
  })

  t.test('what one instance learns the other knows', async (t) => {
    const user = await one.newUser('viewer')
    const token = user.access_token
    await eventually(
      () => two.call('GET /api/auth/me', { token }),
      ({ status }) => status === 200,
    )
    const socket = await openKpiSocket(two, { headers: { authorization: `Bearer ${token}` } })
    await one.ingest([1, 2].map((n) => ({ source: 'far', message: `wheel ${n} of cart squeaks` })))
    await eventually(
      async () => socket.snapshots().at(-1)?.total_occurrences,
      (total) => total === 2,
    )
    t.pass('new events are pushed to the clients of the other')
    await settled(one)
    const { items } = (await two.call('GET /api/logs?source=far')).body
    await one.call(`PATCH /api/logs/${items[0].id}/priority`, { json: { priority: 'P1' } })
    t.equal((await two.call(`GET /api/logs/${items[0].id}`)).body.priority, 'P1')
    const refreshed = await two.call('POST /api/auth/refresh', {
      token: null,
      json: { refresh_token: user.refresh_token },
    })
    t.equal(refreshed.status, 200, 'a login of the one is refreshed by the other')
    const again = await one.call('POST /api/auth/refresh', {
      token: null,
      json: { refresh_token: user.refresh_token },
    })
    t.equal(code(again), 'invalid_refresh_token', 'once')
    await one.call(`PATCH /api/users/${user.id}`, { json: { is_active: false } })
    await eventually(
      () => two.call('GET /api/auth/me', { token }),
      ({ status }) => status === 401,
    )
    t.equal(await socket.whenClosed(), 1008, 'both instances disconnect a disabled user')
    await one.call('DELETE /api/sources/far')
    t.equal((await two.call('GET /api/logs?source=far')).body.items.length, 0)
    t.equal((await currentKpis(two)).total_occurrences, 0)
  })

  t.test('without Redis logins are closed, the rest is open, and it comes back', async (t) => {
    await redis.kill()
    const login = await one.call('POST /api/auth/login', { token: null, json: ADMIN })
    t.equal(login.status, 503)
    t.match(login.body.detail, {
      code: 'dependency_unavailable',
      details: { dependency: 'state' },
    })
    t.match(login.headers.get('retry-after'), /^[1-9]\d*$/)
    for (const path of [
      '/api/auth/me',
      '/api/logs',
      '/api/kpis',
      '/api/sources',
      '/api/alerts',
      '/api/logs/meta/timeseries',
    ]) {
      t.equal((await one.call(`GET ${path}`)).status, 200, path)
    }
    const health = await eventually(
      () => one.call('GET /api/monitoring/health'),
      ({ body }) => body.status !== 'ok',
    )
    t.match(health, {
      status: 200,
      body: { status: 'degraded', checks: { state: { status: 'down' } } },
    })
    const taken = await one.ingest([{ source: 'alone', message: 'still taken' }])
    t.match(taken.body, { accepted: 1 })
    await eventually(
      () => one.call('GET /api/logs?source=alone'),
      ({ body }) => body.items.length === 1,
    )
    const socket = await openKpiSocket(one, { headers: { authorization: `Bearer ${one.token}` } })
    await eventually(
      async () => socket.snapshots(),
      (snapshots) => snapshots.length > 0,
    )
    t.pass('the live channel opens')
    socket.end()
    await redis.start()
    for (const service of [one, two]) {
      await eventually(
        () => service.call('POST /api/auth/login', { token: null, json: ADMIN }),
        ({ status }) => status === 200,
      )
      const well = await eventually(
        () => service.call('GET /api/monitoring/health'),
        ({ body }) => body.status === 'ok',
      )
      t.equal(well.body.checks.state.detail, 'redis')
      t.match(service.log(), 'Redis answers again')
    }
  })
}
