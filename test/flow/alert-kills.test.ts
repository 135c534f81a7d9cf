/*
 * Alerts are decided once, whenever the service is killed between the arrival of a message and the delivery of its notice.
 * With TEST_LONG=1: two instances, Redis is killed too, and there are more kills.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startTestServer } from '../support/clickhouse.js'
import { eventually, JWT_SECRET } from '../support/live-service.js'
import { startReceiver } from '../support/notice-receiver.js'
import { freePort } from '../support/ports.js'
import { startRedis } from '../support/redis.js'
import { enginePid, ingest, KNOWN, logIn, startService, tempDataDir } from '../support/service.js'
import { signal } from '../support/signals.js'

const isLong = process.env['TEST_LONG'] === '1'
/**
 * Milliseconds after the message was accepted; null: when its notice arrives, before it is answered; `engine`: ClickHouse alone,
 * while the message is stored or judged; `redis`: Redis alone, which holds the lock of the evaluator and the watermarks.
 */
const KILLS: readonly (number | null | 'engine' | 'redis')[] = isLong
  ? [
      0,
      200,
      500,
      900,
      1_300,
      1_800,
      2_500,
      null,
      100,
      'engine',
      700,
      1_100,
      null,
      1_500,
      3_500,
      'engine',
      'redis',
      'redis',
    ]
  : [null, 900, 'engine']

const { url, received, answers } = await startReceiver(t)
const dirs = Array.from({ length: isLong ? 2 : 1 }, () => tempDataDir(t))
const shared = isLong ? await openShared() : null
const settings = {
  ...KNOWN,
  JWT_SECRET,
  INSIGHTS_INTERVAL_SECONDS: '0',
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

async function killEngine(): Promise<void> {
  await sleep(300)
  signal(shared === null ? enginePid(serviceOf(0)) : shared.engine.pid(), 'SIGKILL')
}

async function restartRedis(): Promise<void> {
  await shared?.redis.kill()
  await shared?.redis.start()
}

async function post(path: string, body: object): Promise<string> {
  const caller = await logIn(serviceOf(0))
  const reply = await caller.call('POST', path, body)
  t.equal(reply.status, 201)
  return ((await reply.json()) as { readonly id: string }).id // its contract
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
  for (const [i, afterMs] of KILLS.entries()) {
    const host = hosts[i] ?? ''
    if (i % 3 === 1) answers.push(503)
    await sendThree(i, host)
    if (afterMs === 'engine') {
      await killEngine()
      continue
    }
    if (afterMs === 'redis') {
      await sleep(300)
      await restartRedis()
      continue
    }
    if (afterMs === null)
      await eventually(
        async () => noticesOf(host),
        (all) => all.length > 0,
      )
    else await sleep(afterMs)
    // The one that took the message, or the other, which may evaluate.
    const killed = (i + (i % 4 < 2 ? 0 : 1)) % services.length
    await serviceOf(killed).kill()
    if (i % 4 === 3) await restartRedis()
    services[killed] = await start(killed)
  }
  for (const host of hosts) {
    const notices = await eventually(
      async () => noticesOf(host),
      (all) => all.some(({ status }) => status === 'resolved'),
    )
    const keysOf = (wanted: string) =>
      new Set(notices.filter(({ status }) => status === wanted).map(({ key }) => key))
    t.equal(keysOf('firing').size, 1, `${host} begins once`)
    t.equal(keysOf('resolved').size, 1, `${host} ends once`)
    t.equal(new Set(notices.map((notice) => notice.alert_id)).size, 1, `${host} is one alert`)
    t.equal(notices[0]?.status, 'firing')
    t.equal(notices.at(-1)?.status, 'resolved')
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
  const alerts = await caller.get<{ readonly items: readonly { readonly state: string }[] }>(
    `/api/alerts?rule_id=${rule}`,
  )
  t.same(
    alerts.items.map(({ state }) => state),
    hosts.map(() => 'resolved'),
  )
})
