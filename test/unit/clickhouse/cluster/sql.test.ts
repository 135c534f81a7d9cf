import t from 'tap'
import {
  distributedTables,
  onCluster,
  replicated,
  shardedTables,
  writeTable,
} from '../../../../src/clickhouse/cluster/sql.js'
import { readMigrations } from '../../../../src/clickhouse/migrate.js'
import { listSchema, readSchema } from '../../../../src/clickhouse/statement.js'

const migration = (sql: string) => ({ version: 1, name: 'test', statements: [sql] })

t.test('every table of the program says on which shard its rows are', async (t) => {
  const tables = shardedTables(readMigrations())
  t.ok(tables.length > 15)
  const rule = /^(none|view|home( by [a-z_]+)?|id|cityHash64\(source\))$/
  for (const { name, shard } of tables) t.match(shard, rule, name)
  t.equal(tables.find(({ name }) => name === 'landing')?.shard, 'cityHash64(source)')
  t.throws(
    () => shardedTables([migration('CREATE TABLE IF NOT EXISTS odd\n(a UInt8)')]),
    /-- shard:/,
  )
  t.same(
    shardedTables([
      migration('-- shard: home\nCREATE TABLE IF NOT EXISTS old\n(a UInt8)'),
      migration('DROP TABLE IF EXISTS old'),
    ]),
    [],
    'a table that is dropped is none',
  )
})

t.test('Distributed tables have a key only where it stays true', async (t) => {
  const to = { cluster: 'c', local: 'logs_local', front: 'logs', shards: 3 }
  const tables = [
    { name: 'events', shard: 'view' },
    { name: 'entities', shard: 'home by kind' },
    { name: 'audit', shard: 'home' },
    { name: 'landing', shard: 'cityHash64(source)' },
    { name: 'schema_migrations', shard: 'none' },
  ]
  const made = distributedTables(tables, to, new Map([['events', 'ab']]))
  t.equal(writeTable('landing', 3), 'landing_to_3')
  const engines = made.map(({ name, sql }) => [name, /ENGINE = (.*) COMMENT/.exec(sql)?.[1]])
  t.same(engines, [
    ['events', "Distributed('c', 'logs_local', 'events')"],
    ['entities', "Distributed('c', 'logs_local', 'entities', 0 * length(kind))"],
    ['audit', "Distributed('c', 'logs_local', 'audit', 0)"],
    ['landing', "Distributed('c', 'logs_local', 'landing')"],
    ['landing_to_3', "Distributed('c', 'logs_local', 'landing', (cityHash64(source)) % 3)"],
  ])
  t.match(made[0]?.sql, /^CREATE OR REPLACE TABLE logs\.events AS logs_local\.events /)
  t.not(distributedTables(tables, to, new Map([['events', 'cd']]))[0]?.comment, made[0]?.comment)
})

t.test('every migration and every change can run on a cluster', async (t) => {
  for (const { name, statements } of readMigrations())
    for (const own of statements) {
      const sql = onCluster(own, 'c')
      t.equal(sql.replace(" ON CLUSTER 'c'", ''), own, name)
      t.match(sql, /^\w[A-Z ]+ \w+ ON CLUSTER 'c'/m, name)
    }
  for (const [sql, expected] of [
    ['DELETE FROM events WHERE 1', "DELETE FROM events ON CLUSTER 'c' WHERE 1"],
    ['TRUNCATE TABLE a', "TRUNCATE TABLE a ON CLUSTER 'c'"],
    ['-- text\nUPDATE events\nSET a = 1', "-- text\nUPDATE events ON CLUSTER 'c'\nSET a = 1"],
    ['ALTER TABLE b MODIFY TTL c', "ALTER TABLE b ON CLUSTER 'c' MODIFY TTL c"],
    ['CREATE DATABASE IF NOT EXISTS d', "CREATE DATABASE IF NOT EXISTS d ON CLUSTER 'c'"],
    ['CREATE OR REPLACE TABLE a.b AS c.d', "CREATE OR REPLACE TABLE a.b ON CLUSTER 'c' AS c.d"],
  ] as const)
    t.equal(onCluster(sql, 'c'), expected)
  t.throws(() => onCluster('INSERT INTO a SELECT 1', 'c'), /bug: not a statement for a cluster/)
})

t.test('a replicated table differs in its engine and its log of inserts only', async (t) => {
  const place = `'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'`
  t.equal(replicated('a\nENGINE = MergeTree\nb'), `a\nENGINE = ReplicatedMergeTree(${place})\nb`)
  t.equal(
    replicated('ENGINE = ReplacingMergeTree(version, is_deleted)'),
    `ENGINE = ReplicatedReplacingMergeTree(${place}, version, is_deleted)`,
  )
  t.equal(
    replicated('SETTINGS a = 1, non_replicated_deduplication_window = 10, b = 2'),
    'SETTINGS a = 1, replicated_deduplication_window = 10, replicated_deduplication_window_seconds = 2592000, b = 2',
  )
  t.equal(replicated('ENGINE = Null'), 'ENGINE = Null')
})

t.test('no query or change names the database of a table', async (t) => {
  for (const file of listSchema('queries'))
    t.notMatch(readSchema(`queries/${file}`), /\b(?:FROM|JOIN|INTO) (?!system\.)\w+\.\w/, file)
})
