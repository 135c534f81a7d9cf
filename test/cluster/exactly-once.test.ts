import t from 'tap'
import { checkCluster } from '../../src/clickhouse/cluster/check.js'
import { createClusterStore, type ClusterStore } from '../../src/clickhouse/cluster/cluster.js'
import { answerPartly } from '../../src/clickhouse/cluster/partial.js'
import type { Store } from '../../src/clickhouse/client.js'
import { quietLog } from '../support/clickhouse.js'
import { ask, clusterOptions, startCluster } from '../support/cluster.js'
import { seeded } from '../support/landing.js'
import { eventually } from '../support/live-service.js'
import { landingBlock } from '../support/landing-block.js'
import { wholeBlock } from '../../src/writer/batch.js'
import { createBatchStore } from '../../src/writer/batch-store.js'
import { notStored, SURELY_KNOWN_TOKENS } from '../../src/writer/taken.js'

const SHARDS = 3
const ROWS = 3_000
const cluster = await startCluster(SHARDS)
t.teardown(() => cluster.stop())
const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
t.comment(`seed ${seed}`)

async function open(database: string): Promise<{ store: ClusterStore; locals: readonly Store[] }> {
  const store = createClusterStore(clusterOptions(cluster, database))
  t.teardown(() => store.close())
  const numbers = { rollup_days: 20_031 }
  await store.prepare({ numbers, log: quietLog })
  const locals = cluster.shards.map((shard) => shard.connect(`${database}_local`))
  t.teardown(() => Promise.all(locals.map((local) => local.close())).then(() => undefined))
  return { store, locals }
}

const COUNTS = `SELECT
  (SELECT count() FROM events) AS events,
  (SELECT sum(n) FROM event_occurrences) AS repeats,
  (SELECT sum(p1 + p2 + p3 + p4) FROM series_1s) AS seconds,
  (SELECT sum(p1 + p2 + p3 + p4) FROM series_1d) AS days,
  (SELECT sum(p1 + p2 + p3 + p4) FROM template_stats) AS hours,
  (SELECT sum(template_totals.events) FROM template_totals) AS templates`
const TABLES =
  'events event_occurrences series_1s series_1m series_1h series_1d template_stats template_totals'

const count = async (store: Store): Promise<unknown> => (await ask(store, COUNTS))[0]

/** The expected content of every table after a number of batches. */
const batches = (n: number) => ({
  events: (n * ROWS * 2) / 3,
  repeats: (n * ROWS) / 3,
  seconds: n * ROWS,
  days: n * ROWS,
  hours: n * ROWS,
  templates: (n * ROWS * 2) / 3,
})

t.test(
  'a batch reaches every shard and is counted once, whichever instance sends it again',
  async (t) => {
    const { store, locals } = await open('once')
    const blocks = landingBlock(seeded(seed), { rows: ROWS, firstId: 1, blocks: 6 })
    const token = store.newToken()
    for (let i = 0; i < 3; i++) await store.insertNative('landing', blocks, token)
    const options = { ...clusterOptions(cluster, 'once'), url: cluster.shards[2]?.url ?? '' }
    const other = createClusterStore(options)
    t.teardown(() => other.close())
    await other.prepare({ numbers: { rollup_days: 20_031 }, log: quietLog })
    await other.insertNative('landing', blocks, token)
    t.same(await count(store), batches(1), 'through another server too')
    for (const local of locals) {
      const sql = `SELECT table, count() AS parts FROM system.parts
      WHERE active AND database = currentDatabase() AND table LIKE 'series%' GROUP BY table`
      const parts = await ask<{ readonly parts: number }>(local, sql)
      for (const row of parts) t.equal(row.parts, 1, 'one part a table')
      t.equal(parts.length, 4, 'every shard has some of it')
    }
    await store.insertNative('landing', blocks, store.newToken())
    t.same(await count(store), batches(2), 'another token is another batch')
  },
)

t.test('a batch that one shard took and another one only in part', async (t) => {
  const { store, locals } = await open('partly')
  const [last] = locals.slice(-1)
  if (last === undefined) throw new Error('bug: no shard')
  const blocks = landingBlock(seeded(seed + 1), { rows: ROWS, firstId: 1, blocks: 3 })
  // The last shard fails in the view of minutes, after events and seconds are stored.
  await last.command('CREATE TABLE trap (a UInt8) ENGINE = Null')
  await last.command(
    'CREATE MATERIALIZED VIEW trap_mv TO trap AS SELECT throwIf(count() > 0) AS a FROM series_1m',
  )
  const token = store.newToken()
  await t.rejects(store.insertNative('landing', blocks, token), { name: 'StoreError' })
  const found = (await count(store)) as Readonly<Record<string, number>>
  t.equal(found['events'], batches(1)['events'], 'all events are there')
  t.ok(
    (found['days'] ?? 0) > 0 && (found['days'] ?? 0) < ROWS,
    `${found['days']} of ${ROWS} in the calendar`,
  )
  await t.rejects(store.insertNative('landing', blocks, token), { name: 'StoreError' })
  await last.command('DROP VIEW trap_mv SYNC')
  await store.insertNative('landing', blocks, token)
  t.same(await count(store), batches(1))
  await store.insertNative('landing', blocks, token)
  t.same(await count(store), batches(1))
})

t.test('a batch that cannot be read reaches no shard', async (t) => {
  const { store } = await open('unread')
  const blocks = landingBlock(seeded(seed + 2), { rows: ROWS, firstId: 1, blocks: 4 })
  const torn = [...blocks.slice(0, 3), (blocks[3] ?? new Uint8Array()).subarray(0, 900)]
  await t.rejects(store.insertNative('landing', torn, store.newToken()), {
    message: /CANNOT_READ_ALL_DATA/,
  })
  t.same(await count(store), batches(0))
})

t.test('while a shard is away nothing is half there, and a change waits for it', async (t) => {
  const { store } = await open('away')
  const blocks = landingBlock(seeded(seed + 3), { rows: ROWS, firstId: 1, blocks: 2 })
  const token = store.newToken()
  await store.insertNative('landing', blocks, token)
  const gone = cluster.shards[1]
  await gone?.down()
  const away = { code: 'dependency_unavailable' }
  await t.rejects(store.insertNative('landing', blocks, store.newToken()), away)
  await t.rejects(count(store), { ...away, details: { shards: [2] } }, 'no counts without it')
  const part = await answerPartly(() => count(store))
  t.same(part.missing, [2])
  const { events } = part.answer as { readonly events: number }
  t.ok(events > 0 && events < batches(1)['events'], `${events} events on the others`)
  await t.rejects(store.ping(), away)
  await t.rejects(store.change("DELETE FROM events WHERE source = 'source-1'"), away)
  const settings = await ask(store, `SELECT count() AS n FROM entities WHERE kind = 'user'`)
  t.same(settings, [{ n: 0 }], 'entities are on the first shard, and only that one is asked')
  await gone?.up()
  await store.change("DELETE FROM events WHERE source = 'source-1'")
  await store.insertNative('landing', blocks, token)
  await store.ping()
  await eventually(
    async () => (await answerPartly(() => count(store))).missing,
    (missing) => missing.length === 0,
  )
  const [left] = await ask<{ readonly n: number }>(
    store,
    `SELECT countIf(source = 'source-1') AS n FROM events`,
  )
  t.equal(left?.n, 0, 'it is deleted on every shard')
})

t.test('a check of a cluster tells each step, and leaves nothing', async (t) => {
  const { database: _, ...options } = clusterOptions(cluster, '')
  const check = async (nodes = options.nodes) => {
    const lines: string[] = []
    const isWell = await checkCluster({
      cluster: { ...options, nodes },
      numbers: { rollup_days: 61 },
      log: quietLog,
      print: (line) => void lines.push(line),
    })
    return { isWell, steps: lines.map((line) => line.replace(/:.*/, '')) }
  }
  const steps = ['tables', 'insert', 'the same insert again', 'replicas', 'deletion', 'drop']
  t.same(await check(), { isWell: true, steps: steps.map((name) => `ok      ${name}`) })
  const failed = await check(options.nodes.slice(0, 1))
  t.same(failed, { isWell: false, steps: ['FAILED  tables', 'ok      drop'] })
  const local = cluster.shards[0]?.connect('default')
  if (local === undefined) throw new Error('bug: no shard')
  const left = "SELECT name FROM system.databases WHERE name LIKE 'log_check%'"
  t.same(await ask(local, left), [])
  await local.close()
})

t.test(
  'a batch of which some shards had a part, offered when they have forgotten it',
  async (t) => {
    const { store, locals } = await open('forgotten')
    const blocks = landingBlock(seeded(seed + 4), { rows: ROWS, firstId: 1, blocks: 2 })
    const token = store.newToken()
    await store.insertNative('landing', blocks, token)
    const tables = TABLES.split(' ')
    for (const table of [...tables, 'batches']) await locals[1]?.command(`TRUNCATE TABLE ${table}`)
    const part = (await count(store)) as Readonly<Record<string, number>>
    t.ok(Number(part['seconds']) > 0 && Number(part['seconds']) < ROWS, `${part['seconds']} stored`)
    for (const table of tables)
      await store.change(
        `ALTER TABLE ${table} MODIFY SETTING non_replicated_deduplication_window = 1`,
      )
    const next = landingBlock(seeded(seed + 5), { rows: ROWS, firstId: 100_000, blocks: 2 })
    for (let i = 0; i < 2; i++) await store.insertNative('landing', next, store.newToken())
    const { taken } = createBatchStore(store)
    const pieces = blocks.map((block) => wholeBlock(1, 'landing', block))
    t.equal(await notStored('landing', token, pieces, taken), pieces, 'the token is surely known')
    await store.change(
      `INSERT INTO batches (token) SELECT concat('f', toString(number)) FROM numbers(${SURELY_KNOWN_TOKENS})`,
    )
    for (let i = 0; i < 2; i++) {
      const rest = await notStored('landing', token, pieces, taken)
      t.equal(rest.length > 0, i === 0)
      if (rest.length > 0)
      await store.insertNative('landing', rest.map(({ bytes }) => bytes), token) // prettier-ignore
      t.same(await count(store), batches(3))
    }
  },
)

t.test(
  'a shard that comes back with an empty disk takes nothing before its views are there',
  async (t) => {
    const { store, locals } = await open('empty')
    await cluster.shards[2]?.wipe()
    t.same(
      await locals[2]?.query({ name: 'test', sql: 'SELECT 1 AS a' }, {}).catch(() => null),
      null,
    )
    const state = { isOver: false, batches: 0, refused: 0 }
    const sender = async (from: number): Promise<void> => {
      for (let i = 0; !state.isOver; i++) {
        const firstId = (from * 1_000 + i) * ROWS + 1
        const blocks = landingBlock(seeded(seed + firstId), { rows: ROWS, firstId, blocks: 1 })
        const token = store.newToken()
        state.batches++
        while (!(await taken(store, blocks, token))) state.refused++
      }
    }
    const senders = [1, 2, 3].map(sender)
    // A starting instance creates the tables; running ones only insert.
    await open('empty')
    state.isOver = true
    await Promise.all(senders)
    t.comment(`${state.batches} batches, ${state.refused} tries were refused`)
    t.ok(state.refused > 0)
    t.same(await count(store), batches(state.batches))
  },
)

const taken = (store: ClusterStore, rows: readonly Uint8Array[], token: string): Promise<boolean> =>
  store.insertNative('landing', rows, token).then(
    () => true,
    () => false,
  )
