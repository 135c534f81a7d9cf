import t from 'tap'
import type { Store } from '../../../src/store/client.js'
import { migrate, type Migration, readMigrations } from '../../../src/store/migrate.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'

const numbers = { retention_days: 90, rollup_days: 121 }
const options = { numbers, log: quietLog }

async function ask(store: Store, text: string): Promise<unknown[]> {
  return store.query<Record<string, never>, unknown>({ name: 'test', sql: text }, {})
}

const createText = (store: Store, table: string): Promise<unknown[]> =>
  ask(
    store,
    `SELECT engine_full AS text FROM system.tables WHERE database = currentDatabase() AND name = '${table}'`,
  )

t.test('migrations', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const open = async (t: { teardown(work: () => unknown): unknown }): Promise<Store> => {
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    return store
  }

  t.test('a missing database is made, and a second start changes nothing', async (t) => {
    const store = await open(t)
    await store.command(`DROP DATABASE ${store.database}`)
    await migrate(store, options)
    const tables =
      'SELECT name, uuid FROM system.tables WHERE database = currentDatabase() ORDER BY name'
    const before = await ask(store, tables)
    t.ok(before.length > 20)
    await migrate(store, options)
    t.same(await ask(store, tables), before)
    const [row] = await ask(store, 'SELECT count() AS n FROM schema_migrations')
    t.same(row, { n: readMigrations().length }, 'each is recorded once')
  })

  t.test('instances that start at the same time do not disturb each other', async (t) => {
    const store = await open(t)
    await store.command(`DROP DATABASE ${store.database}`)
    await Promise.all([migrate(store, options), migrate(store, options), migrate(store, options)])
    const rows = await ask(store, 'SELECT DISTINCT version FROM schema_migrations ORDER BY version')
    t.equal(rows.length, readMigrations().length)
  })

  t.test('a start that broke off is carried on by the next', async (t) => {
    const store = await open(t)
    const broken: Migration = { version: 9_000, name: 'broken', text: 'CREATE TABLE IF NOT EXISTS' }
    const last: Migration = {
      version: 9_001,
      name: 'last',
      text: 'CREATE TABLE IF NOT EXISTS last (a UInt8) ENGINE = {{engine:MergeTree}} ORDER BY a',
    }
    const migrations = readMigrations()
    await t.rejects(migrate(store, { ...options, migrations: [...migrations, broken, last] }), {
      name: 'StoreError',
      code: 62,
    })
    t.same(await createText(store, 'last'), [], 'nothing after the broken one is applied')
    const mended = { ...broken, text: 'CREATE TABLE IF NOT EXISTS mended (a UInt8) ENGINE = Null' }
    await migrate(store, { ...options, migrations: [...migrations, mended, last] })
    t.same(await createText(store, 'last'), [
      { text: 'MergeTree ORDER BY a SETTINGS index_granularity = 8192' },
    ])
  })

  t.test('a database of a newer program is refused, and left as it is', async (t) => {
    const store = await open(t)
    await migrate(store, options)
    await store.insertRows('schema_migrations', [{ version: 9_999, name: 'from_the_future' }])
    await t.rejects(migrate(store, options), {
      name: 'MigrationError',
      message: new RegExp(`database ${store.database} has schema version 9999`),
    })
  })

  t.test('a changed retention reaches the tables, and only those that depend on it', async (t) => {
    const store = await open(t)
    await migrate(store, options)
    const hourly = await createText(store, 'series_1h')
    await migrate(store, { ...options, numbers: { ...numbers, retention_days: 7 } })
    t.match(await createText(store, 'events'), [{ text: /toIntervalDay\(7\)/ }])
    t.match(await createText(store, 'series_1s'), [{ text: /toIntervalDay\(121\)/ }])
    t.same(await createText(store, 'series_1h'), hourly)
    await migrate(store, options)
    t.match(await createText(store, 'events'), [{ text: /toIntervalDay\(90\)/ }])
  })
})
