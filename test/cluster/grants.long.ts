import t from 'tap'
import { DEPLOYED_PASSWORD, startDeployedClickHouse } from '../support/deploy-clickhouse.js'
import { freePort } from '../support/ports.js'
import {
  countOf,
  ingest,
  KNOWN,
  logIn,
  settledCount,
  startService,
  tempDataDir,
  type Item,
} from '../support/service.js'

/** Two shards with the shipped configuration, and the service as the user that it is given there. */
const servers = []
for (let i = 0; i < 2; i++) servers.push({ httpPort: await freePort(), tcpPort: await freePort() })
// The servers share a secret, and each query runs with the rights of its user.
const shards = servers.map(
  ({ tcpPort }) => `<shard><internal_replication>true</internal_replication>
    <replica><host>127.0.0.1</host><port>${tcpPort}</port></replica></shard>`,
)
const cluster = `<clickhouse><remote_servers><logs><secret>secret of the servers</secret>
  ${shards.join('')}</logs></remote_servers></clickhouse>`
const [first] = await Promise.all(
  servers.map((ports) =>
    startDeployedClickHouse(t, {
      ...ports,
      users: 'cluster/log-engine-user.xml',
      more: { 'config.d/cluster.xml': cluster },
    }),
  ),
)
if (first === undefined) throw new Error('bug: two servers were started')
const urls = servers.map(({ httpPort }) => `http://127.0.0.1:${httpPort}`)
const settings = {
  ...KNOWN,
  DATA_DIR: tempDataDir(t),
  CLICKHOUSE_URL: urls[0] ?? '',
  CLICKHOUSE_NODES: urls.join(','),
  CLICKHOUSE_CLUSTER: 'logs',
  CLICKHOUSE_USER: 'log_engine',
  CLICKHOUSE_PASSWORD: DEPLOYED_PASSWORD,
}

t.test('the service does everything on a cluster as the user it is given', async (t) => {
  const service = await startService(t, settings)
  const sources = ['shop', 'mill', 'yard', 'dock', 'barn', 'shed']
  const body = sources.flatMap((source) =>
    [1, 2].map((n) => JSON.stringify({ source, message: `order ${n}` })),
  )
  t.equal((await ingest(service, [...body, 'not json'].join('\n'))).status, 202)
  const caller = await logIn(service)
  for (const source of sources)
    t.equal(await settledCount(() => countOf(caller, source), 2), 2, source)
  const { items } = await caller.get<{ items: readonly Item[] }>('/api/logs')
  t.equal(items.length, 12)
  const change = { priority: 'P1', reason: 'test' }
  t.equal((await caller.call('PATCH', `/api/logs/${items[0]?.id}/priority`, change)).status, 200)
  const dead = await caller.get<{ items: readonly { id: number }[] }>(
    '/api/monitoring/dead-letters',
  )
  const ids = dead.items.map(({ id }) => id)
  t.equal(ids.length, 1)
  const replay = await caller.call('POST', '/api/monitoring/dead-letters/replay', { ids })
  t.ok(replay.status < 300, `replay ${replay.status}`)
  const run = await caller.call('POST', '/api/ai-insights/snapshot/refresh')
  t.ok(run.status < 300, `insights ${run.status}`)
  t.ok((await caller.call('DELETE', '/api/sources/shop')).status < 300, 'deletion')
  t.ok((await caller.call('DELETE', '/api/monitoring/clear-all')).status < 300, 'clear-all')
  const health = await caller.call('GET', '/api/monitoring/health')
  t.equal(health.status, 200, await health.text())
  t.notMatch(service.log(), /ACCESS_DENIED|privileges/)
  await service.stop()
  const again = await startService(t, { ...settings, RETENTION_DAYS: '30' })
  t.match(await again.stop(), { code: 0 }, 'with another retention')
})

t.test('nothing outside its databases, and no rows dropped', async (t) => {
  const store = first.connect('log_engine', DEPLOYED_PASSWORD, 'logs')
  t.teardown(() => store.close())
  for (const sql of [
    'CREATE DATABASE other',
    'DROP TABLE logs_local.events',
    'DROP DATABASE logs_local',
    'TRUNCATE DATABASE logs_local',
    "SELECT * FROM file('/etc/passwd', 'LineAsString')",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
    'SELECT * FROM system.users',
    'CREATE USER somebody',
    'SYSTEM SHUTDOWN',
  ])
    await t.rejects(store.command(sql), { message: /ACCESS_DENIED|privileges/ }, sql)
})
