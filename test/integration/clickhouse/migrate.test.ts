import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { Store } from '../../../src/clickhouse/client.js'
import { migrate, type Migration, readMigrations } from '../../../src/clickhouse/migrate.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { seeded } from '../../support/landing.js'
import { landingBlock } from '../../support/landing-block.js'

const numbers = { rollup_days: 121 }
const options = { numbers, log: quietLog }
const lasting = { numbers: { rollup_days: 20_031 }, log: quietLog }

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
    const first = 'CREATE TABLE IF NOT EXISTS first (a UInt8) ENGINE = Null'
    const broken: Migration = {
      version: 9_000,
      name: 'broken',
      statements: [first, 'CREATE TABLE IF NOT EXISTS'],
    }
    const last: Migration = {
      version: 9_001,
      name: 'last',
      statements: [
        'CREATE TABLE IF NOT EXISTS last (a UInt8) ENGINE = {{engine:MergeTree}} ORDER BY a',
      ],
    }
    const migrations = readMigrations()
    await t.rejects(migrate(store, { ...options, migrations: [...migrations, broken, last] }), {
      name: 'StoreError',
      code: 62,
    })
    t.same(await createText(store, 'last'), [], 'nothing after the broken one is applied')
    const mended = {
      ...broken,
      statements: [first, 'CREATE TABLE IF NOT EXISTS mended (a UInt8) ENGINE = Null'],
    }
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
    await migrate(store, { ...options, numbers: { rollup_days: 38 } })
    t.match(await createText(store, 'series_1s'), [{ text: /toIntervalDay\(38\)/ }])
    t.same(await createText(store, 'series_1h'), hourly)
    await migrate(store, options)
    t.match(await createText(store, 'series_1s'), [{ text: /toIntervalDay\(121\)/ }])
  })

  t.test('a database of an unreleased version is refused, and left as it is', async (t) => {
    for (const versions of [[1, 2, 3, 4, 10, 105], []]) {
      const store = await open(t)
      for (const table of ['schema_migrations', 'applied_settings'])
        await store.command(
          `CREATE TABLE ${table} (version UInt32, name String, value String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3))
           ENGINE = ReplacingMergeTree(applied_at) ORDER BY version`,
        )
      await store.command('CREATE TABLE landing (id UInt64, constant_text String) ENGINE = Null')
      await store.insertRows(
        'schema_migrations',
        versions.map((version) => ({ version, name: `of_before_${version}` })),
      )
      const tables = 'SELECT name, uuid FROM system.tables WHERE database = currentDatabase()'
      const before = await ask(store, `${tables} ORDER BY name`)
      await t.rejects(migrate(store, options), {
        name: 'MigrationError',
        message: new RegExp(
          `^database ${store.database} was made by an unreleased version .*set CLICKHOUSE_DATABASE`,
        ),
      })
      t.same(await ask(store, `${tables} ORDER BY name`), before)
    }
  })

  t.test('tables that are missing are made again before a batch is taken', async (t) => {
    const store = await open(t)
    await migrate(store, lasting)
    const [first, second] = newBatches(2)
    if (first === undefined || second === undefined) throw new Error('bug: no batch')
    await store.insertNative('landing', first.rows, first.token)
    // A server whose disk was replaced, while other instances continue to send.
    for (const table of ['landing', 'events_mv', 'series_1s_mv', 'series_1s'])
      await store.command(`DROP TABLE ${table} SYNC`)
    const state = { refused: 0 }
    const sending = (async () => {
      for (;;)
        try {
          return await store.insertNative('landing', second.rows, second.token)
        } catch {
          state.refused++
        }
    })()
    await migrate(store, lasting)
    await sending
    t.ok(state.refused > 0, `${state.refused} tries were refused`)
    t.same(await counts(store), { ...countsOf(2), seconds: 3 }, 'only what was dropped is gone')
  })
})

interface Batch {
  readonly rows: readonly Uint8Array[]
  readonly token: string
}

const random = seeded(1)
let nextId = 1

function newBatches(n: number): readonly Batch[] {
  return Array.from({ length: n }, () => {
    const rows = landingBlock(random, { rows: 3, firstId: nextId, blocks: 1 })
    nextId += 3
    return { rows, token: randomUUID() }
  })
}

const counts = async (store: Store): Promise<unknown> =>
  (
    await ask(
      store,
      `SELECT (SELECT count() FROM events) AS events,
        (SELECT sum(p1 + p2 + p3 + p4) FROM series_1s) AS seconds,
        (SELECT sum(p1 + p2 + p3 + p4) FROM series_1m) AS minutes,
        (SELECT sum(p1 + p2 + p3 + p4) FROM series_1d) AS days`,
    )
  )[0]

const countsOf = (batches: number): object => ({
  events: 2 * batches,
  seconds: 3 * batches,
  minutes: 3 * batches,
  days: 3 * batches,
})
