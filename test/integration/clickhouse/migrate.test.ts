import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { newWholeToken, type Store } from '../../../src/clickhouse/client.js'
import { closedSql } from '../../../src/clickhouse/landing-gate.js'
import { migrate, type Migration, readMigrations } from '../../../src/clickhouse/migrate.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { seeded } from '../../support/landing.js'
import { landingBlock } from '../../support/landing-block.js'
import { signal } from '../../support/signals.js'

const numbers = { retention_days: 90, rollup_days: 121 }
const options = { numbers, log: quietLog }
const lasting = { numbers: { retention_days: 20_000, rollup_days: 20_031 }, log: quietLog }

async function ask(store: Store, text: string): Promise<unknown[]> {
  return store.query<Record<string, never>, unknown>({ name: 'test', sql: text }, {})
}

const createText = (store: Store, table: string): Promise<unknown[]> =>
  ask(
    store,
    `SELECT engine_full AS text FROM system.tables WHERE database = currentDatabase() AND name = '${table}'`,
  )

/** A view as it is, made again by two migrations. */
function madeAgain(view: string, version: number): readonly Migration[] {
  const [made] = readMigrations()
    .filter(({ text }) => text.includes(`CREATE MATERIALIZED VIEW IF NOT EXISTS ${view} `))
    .slice(-1)
  if (made === undefined) throw new Error(`bug: no view ${view}`)
  return [
    { version, name: `drop_${view}`, text: `DROP VIEW IF EXISTS ${view}` },
    { ...made, version: version + 1 },
  ]
}

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
    const closed =
      "SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'closed'"
    t.same(await ask(store, closed), [], 'and every table takes rows')
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

  // with patches, ClickHouse reads no part that has two changes of types before it (26.7)
  t.test(
    'events that were corrected are read, and corrected, however old their parts',
    async (t) => {
      const store = await open(t)
      const migrations = readMigrations().filter(({ version }) => version < 100)
      await migrate(store, { ...lasting, migrations })
      for (const { rows, token } of newBatches(2)) await store.insertNative('landing', rows, token)
      const correct = (position: number): Promise<void> =>
        store.command(
          `UPDATE events SET priority = 'P1', confidence = 1, correction_reason = 'c${position}'
        WHERE id = (SELECT id FROM events ORDER BY id LIMIT 1 OFFSET ${position})`,
        )
      const read = (what: string) => ask(store, `SELECT ${what} FROM events ORDER BY id`)
      await correct(0)
      const columns =
        'id, received_at, ts, severity, priority, confidence, template_id, message, correction_reason'
      const before = await read(columns)
      await store.command('SYSTEM STOP MERGES events')
      await migrate(store, lasting)
      t.same(await read(columns), before, 'not rewritten yet')
      await correct(3)
      const reasons = [{ reason: 'c0' }, { reason: '' }, { reason: '' }, { reason: 'c3' }]
      t.same(await read('correction_reason AS reason'), reasons)
      const after = await read(columns)
      await store.command('SYSTEM START MERGES events')
      await store.command('OPTIMIZE TABLE events FINAL')
      t.same(await read(columns), after, 'rewritten')
    },
  )

  t.test('views made again under load miss nothing, and know what was stored', async (t) => {
    const store = await open(t)
    await migrate(store, lasting)
    const senders = startSenders(store)
    let migrations = readMigrations()
    for (let version = 9_000; version < 9_020; version += 10) {
      const views = [...madeAgain('events_mv', version), ...madeAgain('series_1m_mv', version + 2)]
      migrations = [...migrations, ...views]
      // two instances, and no state that they share
      await Promise.all([1, 2].map(() => migrate(store, { ...lasting, migrations })))
    }
    const { batches, refused } = await senders.end()
    t.comment(`${batches.length} batches, ${refused} tries were refused meanwhile`)
    const all = countsOf(batches.length)
    t.same(await counts(store), all, 'nothing passed a view by')
    const offerAgain = async (): Promise<void> => {
      for (let i = 0; i < batches.length; i += 40)
        await Promise.all(batches.slice(i, i + 40).map((batch) => offer(store, batch)))
    }
    await offerAgain()
    t.same(await counts(store), all, 'offered again')
    signal(server.engine.pid(), 'SIGKILL')
    await offerAgain()
    t.same(await counts(store), all, 'offered again to the engine that was started anew')
  })

  t.test('a start that broke off between two views lets nothing pass by', async (t) => {
    const store = await open(t)
    await migrate(store, lasting)
    const [drop, make] = madeAgain('events_mv', 9_000)
    if (drop === undefined || make === undefined) throw new Error('bug: two migrations')
    const broken = { ...make, text: 'CREATE MATERIALIZED VIEW IF NOT EXISTS' }
    const migrations = [...readMigrations(), drop, broken]
    await t.rejects(migrate(store, { ...lasting, migrations }), { name: 'StoreError' })
    const [batch] = newBatches(1)
    if (batch === undefined) throw new Error('bug: no batch')
    await t.rejects(store.insertNative('landing', batch.rows, batch.token), { message: /THROW_IF/ })
    const senders = startSenders(store)
    await migrate(store, lasting)
    const { batches } = await senders.end()
    t.same(await counts(store), countsOf(batches.length), 'all came afterwards')
  })

  t.test('whoever lost its turn changes nothing more, and the next goes on', async (t) => {
    const store = await open(t)
    await migrate(store, lasting)
    const migrations = [...readMigrations(), ...madeAgain('events_mv', 9_000)]
    const made = "SELECT count() AS n FROM system.tables WHERE name = 'events_mv'"
    const isClosed = async (): Promise<boolean> =>
      (await store.query(closedSql, { database: store.database }))[0]?.closed === 1
    const busy = store.command(
      'INSERT INTO landing (id) SELECT sleepEachRow(0.1) + 1 FROM numbers(30) SETTINGS max_block_size = 1',
    )
    while ((await store.insertsRunning(0)) === 0) await sleep(5)
    const attempt = migrate(store, { ...lasting, migrations })
    const refused = t.rejects(attempt, { message: /^the turn .* was lost/ })
    while (!(await isClosed())) await sleep(5)
    await store.command(`KILL QUERY WHERE query_id = 'migration-of-${store.database}' SYNC`)
    await busy
    await refused
    t.ok(await isClosed())
    t.match(await ask(store, `${made} AND database = currentDatabase()`), [{ n: 1 }])
    await migrate(store, { ...lasting, migrations })
    t.notOk(await isClosed())
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
    return { rows, token: newWholeToken() }
  })
}

/** Until it is taken. @returns how often it was refused */
async function offer(store: Store, { rows, token }: Batch): Promise<number> {
  for (let refused = 0; ; refused++)
    try {
      await store.insertNative('landing', rows, token)
      return refused
    } catch {
      continue
    }
}

/** Three that send one batch after the other until they are ended. */
function startSenders(store: Store) {
  const batches: Batch[] = []
  const state = { isOver: false, refused: 0 }
  const sender = async (): Promise<void> => {
    while (!state.isOver)
      for (const batch of newBatches(1)) {
        batches.push(batch)
        state.refused += await offer(store, batch)
      }
  }
  const senders = [sender(), sender(), sender()]
  return {
    end: async () => {
      state.isOver = true
      await Promise.all(senders)
      return { batches, refused: state.refused }
    },
  }
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
