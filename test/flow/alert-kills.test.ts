/*
 * Alerts are decided once, whenever the service or ClickHouse is killed between the arrival of a message and the delivery of its
 * notice. With TEST_LONG=1: two instances, of which either is killed, ClickHouse and Redis, each at each of six moments.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { MINUTE_MS } from '../../src/model/time.js'
import { startTestServer } from '../support/clickhouse.js'
import { eventually, JWT_SECRET } from '../support/live-service.js'
import { startReceiver } from '../support/notice-receiver.js'
import { freePort } from '../support/ports.js'
import { startRedis } from '../support/redis.js'
import {
  enginePid,
  ingest,
  KNOWN,
  logIn,
  metricsOf,
  startService,
  tempDataDir,
  type Service,
} from '../support/service.js'
import { signal } from '../support/signals.js'

const isLong = process.env['TEST_LONG'] === '1'
/** Milliseconds after the message was accepted; null: when its notice arrives, before it is answered. */
type AfterMs = number | null

const MOMENTS: readonly AfterMs[] = [0, 300, 900, 1_500, 2_500, null]
/** Of the services that which took the message or the other, which may evaluate. Redis holds the evaluator's lock and the watermarks. */
const KILLED = ['taker', 'other', 'engine', 'redis', 'redis and other'] as const
type Kill = readonly [killed: (typeof KILLED)[number], afterMs: AfterMs]
const KILLS: readonly Kill[] = isLong
  ? MOMENTS.flatMap((afterMs) => KILLED.map((killed) => [killed, afterMs] as const))
  : [
      ['taker', null],
      ['taker', 900],
      ['engine', 300],
    ]

const { url, received, answers } = await startReceiver(t)
const dirs = Array.from({ length: isLong ? 2 : 1 }, () => tempDataDir(t))
const shared = isLong ? await openShared() : null
const settings = {
  ...KNOWN,
  JWT_SECRET,
  INSIGHTS_INTERVAL_SECONDS: '0',
  // What the service did is told when the test fails.
  LOG_LEVEL: 'debug',
  ALERT_PRIVATE_ADDRESSES: 'true',
  ...shared?.env,
}
const start = (i: number) => startService(t, { ...settings, DATA_DIR: dirs[i] ?? '' })
const services = await Promise.all(dirs.map((_, i) => start(i)))

async function openShared() {
  const [{ engine, stop }, redis] = [
    await startTestServer({ httpPort: await freePort(), password: 'of the engine' }),
    await startRedis(),
  ]
  if (redis === null) throw new Error('it needs redis-server')
  t.teardown(async () => {
    await redis.kill()
    await stop()
  })
  const { url: clickhouse, username, password } = engine
  const store = {
    CLICKHOUSE_URL: clickhouse,
    CLICKHOUSE_USER: username,
    CLICKHOUSE_PASSWORD: password,
  }
  return { redis, engine, env: { ...store, REDIS_URL: redis.url } }
}

const serviceOf = (i: number) => {
  const service = services[i % services.length]
  if (service === undefined) throw new Error('no service')
  return service
}

const killEngine = (): boolean =>
  signal(shared === null ? enginePid(serviceOf(0)) : shared.engine.pid(), 'SIGKILL')

async function restartRedis(): Promise<void> {
  await shared?.redis.kill()
  await shared?.redis.start()
}

async function restartService(killed: number): Promise<void> {
  await serviceOf(killed).kill()
  services[killed % services.length] = await start(killed % services.length)
}

async function post(path: string, body: object): Promise<string> {
  const caller = await logIn(serviceOf(0))
  const reply = await caller.call('POST', path, body)
  t.equal(reply.status, 201)
  return ((await reply.json()) as { readonly id: string }).id // its contract
}

/** What of the service tells why a notice does not come. */
async function whatItSays(service: Service): Promise<string> {
  const gauges = (await metricsOf(service))
    .split('\n')
    .filter((line) => /^log_engine_(alert|notices|wal|pipeline|clickhouse)/.test(line))
  return [...gauges, service.log().slice(-6_000)].join('\n')
}

const noticesOf = (host: string) =>
  received
    .map(({ headers, body }) => ({
      key: String(headers['idempotency-key']),
      ...(JSON.parse(body) as {
        readonly status: string
        readonly alert_id: string
        readonly group: { readonly host: string }
      }),
    }))
    .filter(({ group }) => group.host === host)

async function sendThree(i: number, host: string): Promise<void> {
  const lines = [1, 2, 3].map((n) =>
    JSON.stringify({ source: 'shop', host, severity: 'error', message: `order ${n} of ${host}` }),
  )
  t.equal((await ingest(serviceOf(i), lines.join('\n'))).status, 202)
}

t.test('a kill at any time loses, doubles and reorders nothing', async (t) => {
  const target = { type: 'webhook', url }
  const channel = await post('/api/notification-channels', { name: 'c', target })
  const rule = await post('/api/alert-rules', {
    name: 'Errors',
    severity: 'P1',
    kind: { type: 'threshold', window: '10s', op: '>=', fire: 3 },
    every: '1s',
    keep_firing_for: '0s',
    group_by: ['host'],
    notify: { channels: [channel], group_wait: '0s', group_interval: '0s' },
  })
  const hosts = KILLS.map((_, i) => `web-${i}`)
  for (const [i, [killed, afterMs]] of KILLS.entries()) {
    const host = hosts[i] ?? ''
    if (i % 3 === 1) answers.push(503)
    const taker = i % services.length
    await sendThree(taker, host)
    if (afterMs === null)
      await eventually(
        async () => noticesOf(host),
        (all) => all.length > 0,
      )
    else await sleep(afterMs)
    if (killed === 'engine') killEngine()
    if (killed.startsWith('redis')) await restartRedis()
    if (killed === 'taker') await restartService(taker)
    if (killed.endsWith('other')) await restartService(taker + 1)
  }
  for (const host of hosts) {
    const notices = await eventually(
      async () => noticesOf(host),
      (all) => all.some(({ status }) => status === 'resolved'),
    ).catch(async (cause: unknown) => {
      const said = await Promise.all(services.map(whatItSays))
      throw new Error(`${host} does not end; the service says ${said.join('\n')}`, { cause })
    })
    const keys = new Set(notices.map(({ key }) => key))
    t.equal(keys.size, 1, `${host} has one identity, however often it was told`)
    t.equal(new Set(notices.map((notice) => notice.alert_id)).size, 1, `${host} is one alert`)
    // What was sent and not recorded is sent again, in the same order.
    const statuses = new Set(notices.map(({ status }) => status))
    t.same([...statuses], ['firing', 'resolved'], `${host} begins and then ends`)
  }
  const caller = await logIn(serviceOf(0))
  const { items } = await caller.get<{
    readonly items: readonly { readonly to: string; readonly group: { readonly host: string } }[]
  }>(`/api/alert-rules/${rule}/history?limit=200`)
  t.same(
    hosts.map((host) => items.filter(({ group }) => group.host === host).map(({ to }) => to)),
    hosts.map(() => ['resolved', 'firing']),
    'the history of each has two transitions',
  )
  // An instance learns of the alerts of another within seconds.
  const alerts = await eventually(
    () =>
      caller.get<{ readonly items: readonly { readonly state: string }[] }>(
        `/api/alerts?rule_id=${rule}`,
      ),
    ({ items: all }) => all.filter(({ state }) => state === 'resolved').length >= hosts.length,
    MINUTE_MS,
  )
  t.same(
    alerts.items.map(({ state }) => state),
    hosts.map(() => 'resolved'),
  )
})
