import t from 'tap'
import { replicated } from '../../src/clickhouse/cluster/sql.js'
import { readMigrations, renderMigration, MIGRATION_REQUEST } from '../../src/clickhouse/migrate.js'
import { ask, startCluster } from '../support/cluster.js'
import { startZooKeeper } from '../support/zookeeper.js'

/**
 * As far as the embedded engine goes: it takes the statements and registers the replicas in ZooKeeper, but
 * has no address for other replicas, and so leaves the tables read-only. What is inserted into them, and
 * the exchange between replicas cannot be tested here.
 */
const zookeeper = await startZooKeeper()
if (zookeeper === null) t.plan(0, 'the Debian package zookeeper is not installed')
else {
  t.teardown(() => zookeeper.stop())
  const { port } = zookeeper
  const cluster = await startCluster(
    2,
    (shard) =>
      `<zookeeper><node><host>127.0.0.1</host><port>${port}</port></node></zookeeper>
      <macros><shard>${shard}</shard><replica>r1</replica></macros>`,
  )
  t.teardown(() => cluster.stop())
  const numbers = { rollup_days: 61 }
  const statements = readMigrations().flatMap((migration) => migration.statements)
  const tables = statements.flatMap((sql) =>
    /^ENGINE = .*MergeTree/m.test(sql)
      ? [/^CREATE TABLE IF NOT EXISTS (\w+)/m.exec(sql)?.[1] ?? '']
      : [],
  )

  for (const [i, shard] of cluster.shards.entries())
    await t.test(
      `the tables of the migrations with Replicated engines on shard ${i + 1}`,
      async (t) => {
        const store = shard.connect('copied_local')
        t.teardown(() => store.close())
        await store.createDatabase()
        for (const sql of statements)
          await store.command(replicated(renderMigration(sql, numbers)), {}, MIGRATION_REQUEST)
        const made = await ask<{ readonly name: string; readonly engine: string }>(
          store,
          `SELECT name, engine FROM system.tables
        WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name`,
        )
        t.same(
          made.map(({ name }) => name),
          tables.toSorted(),
        )
        t.ok(made.every(({ engine }) => engine.startsWith('Replicated')))
        const replicas = await ask<{ readonly table: string; readonly is_readonly: number }>(
          store,
          `SELECT table, is_readonly FROM system.replicas
        WHERE database = currentDatabase() AND replica_name = 'r1'
          AND zookeeper_path = concat('/clickhouse/tables/${i + 1}/copied_local/', table)`,
        )
        t.equal(replicas.length, tables.length)
        t.comment(
          `${replicas.filter((each) => each.is_readonly === 1).length} of them are read-only`,
        )
      },
    )
}
