import t from 'tap'
import { createClusterStore, type ClusterStore } from '../../src/clickhouse/cluster/cluster.js'
import type { Store } from '../../src/clickhouse/client.js'
import { migrate } from '../../src/clickhouse/migrate.js'
import { quietLog } from '../support/clickhouse.js'
import { ask, clusterOptions, startCluster } from '../support/cluster.js'
import { seeded } from '../support/landing.js'
import { landingBlock } from '../support/landing-block.js'
import { eventually, settled, startLiveService, type LiveService } from '../support/live-service.js'
import { runToEnd } from '../support/service.js'
import { contradictionsOn } from './agree.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

/** The procedure of src/docs/cluster.md, section "Adding a shard", step by step. */
const numbers = { rollup_days: 20_031 }
const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
t.comment(`seed ${seed}`)

t.test(
  'a batch that was begun on two shards is finished on two when there are three',
  async (t) => {
    const cluster = await startCluster(2)
    t.teardown(() => cluster.stop())
    const open = async (at: number): Promise<ClusterStore> => {
      const url = cluster.shards[at]?.url ?? ''
      const store = createClusterStore({ ...clusterOptions(cluster, 'grow'), url })
      t.teardown(() => store.close())
      await store.prepare({ numbers, log: quietLog })
      return store
    }
    const before = await open(0)
    const rows = 900
    const begun = landingBlock(seeded(seed), { rows, firstId: 1, blocks: 2 })
    const token = before.newToken()
    await before.insertNative('landing', begun, token)
    const count = async (store: ClusterStore): Promise<unknown> =>
      (
        await ask(
          store,
          'SELECT count() AS events, (SELECT sum(p1) FROM series_1m) AS p1 FROM events',
        )
      )[0]
    t.same(await count(before), { events: (rows * 2) / 3, p1: rows })

    // 1. the new server knows all three, the others do not know it yet
    await cluster.add()
    await t.rejects(
      createClusterStore({
        ...clusterOptions(cluster, 'grow'),
        nodes: [cluster.shards[0]?.url ?? ''],
      }).prepare({ numbers, log: quietLog }),
      /CLICKHOUSE_NODES has no address of shard 2/,
    )
    // 2. its tables are made through it
    const through = await open(2)
    t.match(through.newToken(), /-to-3$/)
    await before.insertNative('landing', begun, token)
    t.same(await count(before), { events: (rows * 2) / 3, p1: rows }, 'the others go on as before')
    // 3. The other servers learn of it.
    await cluster.reload()
    t.same(
      await eventually(
        () => count(before).catch(() => null),
        (found) => found !== null,
      ),
      { events: (rows * 2) / 3, p1: rows },
    )
    await t.rejects(before.change('DELETE FROM events WHERE 0'), { code: 'dependency_unavailable' })
    // 4. instances are started again
    const after = await open(0)
    await after.insertNative('landing', begun, token)
    t.same(await count(after), { events: (rows * 2) / 3, p1: rows }, 'offered again: on two shards')
    await after.insertNative(
      'landing',
      landingBlock(seeded(seed + 1), { rows, firstId: 10_000, blocks: 2 }),
      after.newToken(),
    )
    t.same(await count(after), { events: (rows * 4) / 3, p1: rows * 2 })
    const third = cluster.shards[2]?.connect('grow_local')
    if (third === undefined) throw new Error('bug: no third shard')
    const [row] = await ask<{ readonly n: number }>(third, 'SELECT count() AS n FROM events')
    t.ok((row?.n ?? 0) > 0, 'new batches reach the new shard')
    await after.change("DELETE FROM events WHERE source LIKE 'source-%'")
    t.match(await count(after), { events: 0 })
    await third.close()
  },
)

/** Of src/docs/cluster.md: what moves the tables of one server to where a cluster has them. */
const MOVE = `SELECT if(engine = 'MaterializedView', concat('DROP VIEW one.', name),
  concat('RENAME TABLE one.', name, ' TO one_local.', name)) AS sql
FROM system.tables WHERE database = 'one' AND engine != 'Null'
ORDER BY engine != 'MaterializedView'`

t.test('the database of one server is left alone, and becomes the first shard', async (t) => {
  const cluster = await startCluster(1)
  t.teardown(() => cluster.stop())
  const server = cluster.shards[0]?.connect('one')
  if (server === undefined) throw new Error('bug: no server')
  t.teardown(() => server.close())
  await migrate(server, { numbers, log: quietLog })
  const rows = (firstId: number): Uint8Array[] =>
    landingBlock(seeded(seed + firstId), { rows: 300, firstId, blocks: 1 })
  await server.insertNative('landing', rows(1), server.newToken())
  const count = async (store: Store): Promise<unknown> =>
    (
      await ask(
        store,
        'SELECT count() AS events, (SELECT sum(p1) FROM series_1m) AS p1 FROM events',
      )
    )[0]
  const store = createClusterStore(clusterOptions(cluster, 'one'))
  t.teardown(() => store.close())
  await t.rejects(store.prepare({ numbers, log: quietLog }), { message: /is one server's/ })
  t.same(await count(server), { events: 200, p1: 300 }, 'nothing was touched')
  await server.command('CREATE DATABASE IF NOT EXISTS one_local')
  for (const { sql } of await ask<{ readonly sql: string }>(server, MOVE)) await server.command(sql)
  await server.command('DROP DATABASE one')
  await store.prepare({ numbers, log: quietLog })
  t.same(await count(store), { events: 200, p1: 300 }, 'its rows are those of the first shard')
  await store.insertNative('landing', rows(1_000), store.newToken())
  t.same(await count(store), { events: 400, p1: 600 })
})

t.test('a service goes on through all of it', async (t) => {
  const cluster = await startCluster(2)
  t.teardown(() => cluster.stop())
  const service = await startLiveService(t, cluster.env)
  const send = (batch: number): Promise<unknown> =>
    service.ingest(
      Array.from({ length: 300 }, (_, i) => ({
        source: `app-${i % 12}`,
        message: i % 3 === 0 ? 'heartbeat missed' : `job ${batch}-${i} finished`,
      })),
    )
  const counted = async (of: LiveService): Promise<number> => {
    const { body } = await of.call('GET /api/analytics/severity-breakdown?window=24h')
    return body?.total ?? -1
  }
  await send(1)
  await settled(service)
  t.equal(await counted(service), 300)
  await cluster.add()
  const { url } = cluster.shards[2] ?? { url: '' }
  const made = await runToEnd({ ...cluster.env, CLICKHOUSE_URL: url }, ['--migrate'])
  t.equal(made.code, 0, `the tables of the third server are made ${made.stderr}`)
  await send(2)
  await settled(service)
  t.equal(await counted(service), 600)
  await cluster.reload()
  await send(3)
  await settled(service)
  t.equal(await counted(service), 900)
  const ofThird = async (): Promise<number> => {
    const third = cluster.shards[2]?.connect('logs_local')
    if (third === undefined) throw new Error('bug: no third shard')
    const [row] = await ask<{ readonly n: number }>(third, 'SELECT count() AS n FROM events')
    await third.close()
    return row?.n ?? 0
  }
  t.equal(await ofThird(), 0, 'it fills when the service was started again')
  await service.restart(cluster.env)
  await send(4)
  await settled(service)
  t.equal(await counted(service), 1_200)
  t.ok((await ofThird()) > 0)
  t.match(await service.call('DELETE /api/sources/app-1'), { status: 200 })
  t.equal(await counted(service), 1_100)
  t.same(await contradictionsOn(cluster), [], 'all tables agree')
})
