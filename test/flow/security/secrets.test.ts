/**
 * Known secrets go in by the settings and over the API; then everything that comes out of the service, or lies
 * about afterwards, is searched for them: what it prints and logs at its most talkative, every reply, the
 * command lines of its processes, the metrics, the audit trail, the files.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { everyRoute } from '../../support/every-route.js'
import { openKpiSocket } from '../../support/kpi-socket.js'
import {
  collect,
  eventually,
  settled,
  startLiveService,
  type Answer,
} from '../../support/live-service.js'
import { startRedis } from '../../support/redis.js'
import { SECRETS, findIn, readAll, said } from '../../support/secrets.js'
import { tempDataDir } from '../../support/service.js'
import { startTestServer } from '../../support/clickhouse.js'
import { freePort } from '../../support/ports.js'
import { signal } from '../../support/signals.js'

const REDIS_PASSWORD = 'redis/pass wörd+1'
const contentOf = ({ status, headers, text }: Answer): string =>
  `${status} ${JSON.stringify([...headers])} ${text}`

t.test('a secret is found in each of its forms', async (t) => {
  const secret = 'pa ss/wörd"1'
  const around = Buffer.from(`user:${secret}@host`)
  for (const text of [
    secret,
    JSON.stringify({ secret }),
    JSON.stringify(JSON.stringify({ secret })),
    encodeURIComponent(secret),
    new URLSearchParams({ secret }).toString(),
    around.toString('base64'),
    around.subarray(1).toString('base64url'),
    around.subarray(2).toString('base64'),
    around.toString('hex'),
  ]) {
    said.set('here', text)
    t.same(findIn({ secret }), ['secret in here'], text)
  }
  said.clear()
})

const redis = await startRedis(REDIS_PASSWORD)
t.teardown(async () => await redis?.kill())
const skip = redis === null ? 'redis-server is not installed' : false

t.test('no secret comes out of the service', { skip }, async (t) => {
  if (redis === null) return
  const server = await startTestServer({
    password: 'clickhouse/pass wörd&2',
    httpPort: await freePort(),
  })
  t.teardown(() => server.stop())
  const dataDir = tempDataDir(t)
  const service = await startLiveService(t, {
    ...SECRETS,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'trace',
    ADMIN_EMAIL: 'admin@example.com',
    REDIS_URL: redis.url.replace('//', `//default:${encodeURIComponent(REDIS_PASSWORD)}@`),
    CLICKHOUSE_URL: server.engine.url,
    CLICKHOUSE_USER: server.engine.username,
    CLICKHOUSE_PASSWORD: server.engine.password,
  })
  const replies: string[] = []
  const hear = (reply: Answer): Answer => {
    replies.push(contentOf(reply))
    return reply
  }
  const all = await everyRoute(service)
  const secrets: Record<string, string> = {
    ...SECRETS,
    REDIS_PASSWORD,
    CLICKHOUSE_PASSWORD: server.engine.password,
    'password of a user': all.user.password,
    'wrong password': 'wrong pass/wörd+3',
    'made password': 'made pass/wörd+4',
  }
  const given: Record<string, string> = {
    'access token': all.user.access_token,
    'refresh token': all.user.refresh_token,
    'access token of the admin': service.token,
  }

  // Every route, with valid and invalid input; routes that return tokens or keys are not searched for them.
  const gives = ['login', 'refresh', 'createIngestKey']
  for (const route of all.routes.filter(({ id }) => id !== 'clearAll')) {
    const reply = await all.send(route, await all.base(route.id))
    if (!gives.includes(route.id)) hear(reply)
    hear(
      await all.send(route, {
        token: 'not.a.token',
        ...(route.body === null ? {} : { body: { password: secrets['wrong password'] } }),
      }),
    )
    const query = { token: service.token, limit: 'x' }
    const text = route.body === null ? {} : { text: `{"password":"${all.user.password}` }
    hear(await all.send(route, { query, ...text }))
  }
  const post = (path: string, json: object) => service.call(`POST /api/${path}`, { json })
  const key = await post('ingest-keys', { name: 'scan' })
  given['made key'] = key.body.key
  hear(await post('auth/login', { email: all.user.email, password: secrets['wrong password'] }))
  hear(await post('auth/refresh', { refresh_token: `${all.user.refresh_token}x` }))
  hear(await post('users', { email: 'made@example.com', password: secrets['made password'] }))
  hear(await post('users', { email: 'made@example.com', password: secrets['made password'] }))
  hear(await post('users', { email: 'no e-mail', password: secrets['made password'], nonsense: 1 }))
  for (const token of [SECRETS['INGEST_KEY'], given['made key'], `${SECRETS['INGEST_KEY']}x`]) {
    for (const body of ['{"source":"s","message":"m"}', '{"password":', '['])
      hear(await collect(service, 'POST /ingest', { token: token ?? '', body }))
    hear(
      await collect(service, 'POST /ingest', { body: '[', headers: { 'x-api-key': token ?? '' } }),
    )
  }
  const forged = { 'x-scm-token': '0'.repeat(64), 'content-type': 'application/json' }
  hear(await collect(service, 'POST /webhooks/scm', { body: '{}', headers: forged }))
  hear(await service.call('GET /metrics', { token: SECRETS['METRICS_TOKEN'] ?? '' }))
  const socket = await openKpiSocket(service, { query: `?token=${all.user.access_token}` })
  socket.end()
  const refused = await openKpiSocket(service, { query: `?token=${all.user.refresh_token}` })
  await refused.whenClosed()
  await settled(service)

  t.comment('what it depends on goes away')
  await redis.kill()
  hear(await post('auth/login', { email: all.user.email, password: all.user.password }))
  await redis.start()
  await eventually(
    () => post('auth/login', { email: all.user.email, password: all.user.password }),
    ({ status }) => status === 200,
  )
  const untilStatus = (status: number): Promise<unknown> =>
    eventually(
      async () => hear(await service.call(`GET /api/logs?search=${status}`)),
      (reply) => reply.status === status,
    )
  const stopped = server.engine.pid()
  signal(stopped, 'SIGSTOP')
  hear(await service.call('GET /api/logs/meta/calendar'))
  signal(stopped, 'SIGKILL')
  await untilStatus(200)
  signal(server.engine.pid(), 'SIGKILL')
  await untilStatus(503)
  await untilStatus(200)
  hear(await service.call('GET /api/monitoring/health'))
  // The list may have been a cached reply.
  const trail = await eventually(
    async () => hear(await service.call('GET /api/monitoring/audit?limit=200')),
    ({ status }) => status === 200,
  )
  t.ok(trail.body.items.length > 20, 'there is a trail')
  hear(await service.call('GET /metrics'))

  const [pid] = /"pid":(\d+)/.exec(service.log())?.slice(1) ?? []
  t.ok(Number(pid) > 0)
  t.ok(service.log().length > 1_000, 'it was talkative')
  // Neither process removes a file while all are read.
  const processes = [Number(pid), server.engine.pid()]
  for (const one of processes) signal(one, 'SIGSTOP')
  said.set('the log', service.log())
  said.set('the replies', replies.join('\n'))
  said.set('the command line', readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  said.set('the files', readAll(dataDir))
  said.set('the files of ClickHouse', readAll(server.dataDir))
  for (const one of processes) signal(one, 'SIGCONT')
  t.same(findIn({ ...secrets, ...given }), [])
})
