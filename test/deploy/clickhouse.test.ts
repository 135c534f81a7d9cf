import { test } from 'tap'
import { dropPartition } from '../../src/clickhouse/clear-table.js'
import { moveToCold, probeCold } from '../../src/clickhouse/cold-disk.js'
import { S3_KEY, startS3 } from '../support/s3.js'
import { DEPLOYED_PASSWORD, startDeployedClickHouse } from '../support/deploy-clickhouse.js'
import { readDeploy } from '../support/deploy.js'
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

test('the example of a cluster is one that the service can use', async (t) => {
  const example = readDeploy('clickhouse/cluster/log-engine-cluster.xml')
    .replace('from_env="CLUSTER_SECRET"/>', '>secret</secret>')
    .replace('from_env="SHARD"/>', '>1</shard>')
    .replace('from_env="REPLICA"/>', '>1a</replica>')
    .replace(/(clickhouse|keeper)-\w+/g, '127.0.0.1')
  const { url } = await startDeployedClickHouse(t, {
    more: { 'config.d/log-engine-cluster.xml': example },
  })
  const ask = async (sql: string): Promise<string> => {
    const headers = {
      'X-ClickHouse-User': 'test_admin',
      'X-ClickHouse-Key': 'password-of-test-admin',
    }
    return (await (await fetch(url, { method: 'POST', body: sql, headers })).text()).trim()
  }
  const servers = await ask(
    "SELECT countDistinct(shard_num), count() FROM system.clusters WHERE cluster = 'logs'",
  )
  t.equal(servers, '2\t4')
  t.equal(await ask('SELECT count() FROM system.macros'), '2')
})

test('the service does everything as the user it is given on a server, and no more', async (t) => {
  const s3 = await startS3(t)
  const cold = readDeploy('clickhouse/config.d/cold-storage.xml')
    .replace(' from_env="COLD_S3_URL"/>', `>${s3.env['S3_URL']}/</endpoint>`)
    .replace(' from_env="COLD_S3_ACCESS_KEY_ID"/>', `>${S3_KEY}</access_key_id>`)
    .replace(' from_env="COLD_S3_SECRET_ACCESS_KEY"/>', `>${S3_KEY}</secret_access_key>`)
  const server = await startDeployedClickHouse(t, {
    more: { 'config.d/cold-storage.xml': cold },
  })
  const settings = {
    ...KNOWN,
    DATA_DIR: tempDataDir(t),
    CLICKHOUSE_URL: server.url,
    CLICKHOUSE_USER: 'log_engine',
    CLICKHOUSE_PASSWORD: DEPLOYED_PASSWORD,
  }
  const first = await startService(t, settings)
  const body = [1, 2, 3].map((n) => JSON.stringify({ source: 'shop', message: `order ${n}` }))
  t.equal((await ingest(first, [...body, 'not json'].join('\n'))).status, 202)
  const caller = await logIn(first)
  t.equal(await settledCount(() => countOf(caller, 'shop'), 3), 3)

  await t.test('questions, correction, replay, deletion, clear-all', async (t) => {
    const { items } = await caller.get<{ items: readonly Item[] }>('/api/logs')
    const change = { priority: 'P1', reason: 'test' }
    t.equal((await caller.call('PATCH', `/api/logs/${items[0]?.id}/priority`, change)).status, 200)
    const dead = await caller.get<{ items: readonly { id: number }[] }>(
      '/api/monitoring/dead-letters',
    )
    const ids = dead.items.map(({ id }) => id)
    t.equal(ids.length, 1)
    const replay = await caller.call('POST', '/api/monitoring/dead-letters/replay', { ids })
    t.ok(replay.status < 300, `replay ${replay.status}`)
    const look = await caller.call('POST', '/api/ai-insights/snapshot/refresh')
    t.ok(look.status < 300, `insights ${look.status}`)
    t.ok((await caller.call('DELETE', '/api/sources/shop')).status < 300, 'deletion')
    t.ok((await caller.call('DELETE', '/api/monitoring/clear-all')).status < 300, 'clear-all')
  })

  await t.test('another retention at the next start', async (t) => {
    await first.stop()
    const second = await startService(t, { ...settings, RETENTION_DAYS: '30' })
    t.match(await second.stop(), { code: 0 })
  })

  await t.test('partitions past their retention, and old ones', async (t) => {
    const store = server.connect('log_engine', DEPLOYED_PASSWORD, 'logs')
    t.teardown(() => store.close())
    await store.partitions(['events'])
    for (const table of ['events', 'event_occurrences', 'dead_letters'])
      await dropPartition(store, table, '20000101-0')
    await store.insertRows('landing', [
      { id: 1, is_new: 1, n: 1, received_at: '2000-01-01T00:00:00Z' },
    ])
    const ofEvents = async () => (await store.partitions(['events']))[0]
    t.match(await ofEvents(), { id: '20000101-0', cold_bytes: 0 })
    await moveToCold(store, 'events', '20000101-0')
    await moveToCold(store, 'events', '20000101-0')
    await moveToCold(store, 'events', '20000102-0')
    const { bytes = -1, cold_bytes: coldBytes = 0 } = (await ofEvents()) ?? {}
    t.equal(coldBytes, bytes, 'and old ones to cold storage')
    await probeCold(store, 'events', '20000101-0')
    await s3.down()
    await t.rejects(probeCold(store, 'events', '20000101-0'), { code: 'dependency_unavailable' })
  })

  await t.test('nothing outside its database, and nothing of it dropped', async (t) => {
    const store = server.connect('log_engine', DEPLOYED_PASSWORD, 'logs')
    t.teardown(() => store.close())
    const denied = async (sql: string): Promise<void> => {
      await t.rejects(store.command(sql), { message: /ACCESS_DENIED|privileges/ }, sql)
    }
    await denied('CREATE DATABASE other')
    await denied('DROP TABLE logs.events')
    await denied('DROP VIEW logs.events_mv')
    await denied('ALTER TABLE logs.events ADD COLUMN odd UInt8')
    await denied('DROP DATABASE logs')
    await denied("SELECT * FROM file('/etc/passwd', 'LineAsString')")
    await denied("SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')")
    await denied('CREATE USER somebody')
    await denied('SYSTEM SHUTDOWN')
  })
})
