import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createStore, type QueryParams, type Store } from '../../../src/clickhouse/client.js'
import type { Statement } from '../../../src/clickhouse/statement.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'

const sql = (text: string): Statement<QueryParams, unknown> => ({ name: 'test', sql: text })

/** A Native block of one UInt32 column `a`. */
function nativeBlock(values: readonly number[]): Uint8Array[] {
  const text = (value: string): Buffer =>
    Buffer.concat([Buffer.from([value.length]), Buffer.from(value)])
  const rows: number[] = []
  for (let rest = values.length; ; rest >>>= 7) {
    rows.push(rest > 127 ? (rest & 127) | 128 : rest)
    if (rest <= 127) break
  }
  const head = Buffer.concat([Buffer.from([1, ...rows]), text('a'), text('UInt32')])
  return [head, new Uint8Array(Uint32Array.from(values).buffer)]
}

t.test('the client reads, inserts, times out and reports faults', async (t) => {
  const server = await startTestServer()
  const { store, drop } = await createTestDatabase(server)
  t.teardown(async () => {
    await drop()
    await server.stop()
  })
  const only = async (text: string, params = {}): Promise<unknown> =>
    (await store.query(sql(text), params))[0]

  t.test('a batch sent three times under one token counts once, in the views too', async (t) => {
    const dedup = 'SETTINGS non_replicated_deduplication_window = 100'
    await store.command('CREATE TABLE landing (a UInt32) ENGINE = Null')
    await store.command(`CREATE TABLE plain (a UInt32) ENGINE = MergeTree ORDER BY a ${dedup}`)
    await store.command(
      `CREATE TABLE sums (k UInt8, n UInt64) ENGINE = SummingMergeTree ORDER BY k ${dedup}`,
    )
    await store.command('CREATE MATERIALIZED VIEW plain_mv TO plain AS SELECT a FROM landing')
    await store.command(
      'CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT 1 AS k, count() AS n FROM landing GROUP BY k',
    )
    const bytes = nativeBlock(Array.from({ length: 1_000 }, (_, i) => i))
    for (let i = 0; i < 3; i++) await store.insertNative('landing', bytes, 'batch-1')
    const counts = 'SELECT (SELECT count() FROM plain) AS plain, (SELECT sum(n) FROM sums) AS sums'
    t.same(await only(counts), { plain: 1_000, sums: 1_000 })

    await store.insertNative('landing', bytes, 'batch-2')
    t.same(await only(counts), { plain: 2_000, sums: 2_000 }, 'another token is another batch')

    t.comment(
      'a part of a stored batch that is offered again is that batch, however many blocks are left',
    )
    const [one, two, three] = [[1], [2, 3], [4]].map(nativeBlock)
    const token = store.newToken()
    await store.insertNative(
      'landing',
      [one, two, three].flatMap((block) => block ?? []),
      token,
    )
    for (const some of [[one, three], [two], [three, two, one, one]])
      await store.insertNative(
        'landing',
        some.flatMap((block) => block ?? []),
        token,
      )
    t.same(await only(counts), { plain: 2_004, sums: 2_004 })
  })

  t.test('many blocks are one insert and one part', async (t) => {
    await store.command('CREATE TABLE blocks (a UInt32) ENGINE = MergeTree ORDER BY a')
    const blocks = Array.from({ length: 200 }, (_, i) => nativeBlock([i, i + 1_000])).flat()
    await store.insertNative('blocks', blocks, 'many')
    t.same(await only('SELECT count() AS n, sum(a) AS sum FROM blocks'), { n: 400, sum: 239_800 })
    t.same(
      await only(
        "SELECT sum(part_type != '') AS n FROM system.parts WHERE table = 'blocks' AND database = currentDatabase()",
      ),
      { n: 1 },
    )
  })

  t.test('lists of texts arrive as they are, however long they are', async (t) => {
    const odd = ["it's", 'a\\', '\t\n', '', '日本', '}', "['", '{names:Array(String)}']
    for (const copies of [1, 1_000, 10_000, 40_000]) {
      const names = Array.from({ length: copies }, (_, i) =>
        odd.map((text) => `${text}${i}`),
      ).flat()
      const text =
        'SELECT {names:Array(String)} AS names, length({names:Array(String)}) AS n, {other:Array(String)} AS other, ' +
        'countIf(toString(number) IN {names:Array(String)}) AS held FROM numbers(10)'
      const other = ['x']
      const [row] = (await store.query(sql(text), { names, other })) as { names: string[] }[]
      t.match(row, { n: names.length, other, held: Math.min(copies, 10) })
      t.strictSame(row?.names, names)
    }
    const names = Array.from({ length: 5_000 }, (_, i) => `${i} ${'x'.repeat(90)}`)
    await store.command('CREATE TABLE named (name String) ENGINE = MergeTree ORDER BY name')
    await store.insertRows('named', [{ name: names[4_999] }, { name: 'stays' }])
    await store.change('DELETE FROM named WHERE name IN {names:Array(String)}', { names })
    t.same(await store.query(sql('SELECT name FROM named'), {}), [{ name: 'stays' }])
    const columns = await store.queryColumns(sql('SELECT length({names:Array(String)}) AS n'), {
      names,
    })
    t.match(columns, [{ rows: 1 }])
  })

  t.test('integers up to 2^53-1 and times arrive as they are', async (t) => {
    const row = await only(
      'SELECT toUInt64(9007199254740991) AS id, toInt64(-5) AS n, hex(toUInt64(18446744073709551615)) AS template, ' +
        "toDateTime64('2026-01-02 03:04:05.678', 3, 'UTC') AS at, toDateTime('2026-01-02 03:04:05') AS t",
    )
    t.same(row, {
      id: Number.MAX_SAFE_INTEGER,
      n: -5,
      template: 'FFFFFFFFFFFFFFFF',
      at: '2026-01-02T03:04:05.678Z',
      t: '2026-01-02T03:04:05Z',
    })
  })

  t.test('values are bound, whatever they hold', async (t) => {
    const text = `'; DROP TABLE x --\n\t\\ {a:String} \u0000 é 😀 %00`
    t.same(await only('SELECT {text:String} AS text', { text }), { text })
    const ids = Array.from({ length: 20_000 }, (_, i) => i)
    const many = await only('SELECT length({ids:Array(UInt64)}) AS n', { ids })
    t.same(many, { n: 20_000 }, 'a list longer than any URL')
    const since = new Date('2026-01-02T03:04:05.678Z')
    t.same(await only('SELECT toUnixTimestamp64Milli({since:DateTime64(3)}) AS ms', { since }), {
      ms: since.getTime(),
    })
  })

  t.test('rows that do not fit are refused as data, a missing table is not', async (t) => {
    await store.command('CREATE TABLE small (a UInt32) ENGINE = MergeTree ORDER BY a')
    const [head = new Uint8Array(), body = new Uint8Array()] = nativeBlock([1, 2, 3])
    await t.rejects(store.insertNative('small', [head, body.subarray(0, 7)], 'cut'), {
      name: 'StoreError',
      isDataError: true,
    })
    await t.rejects(store.insertRows('small', [{ a: 'secret-text' }]), {
      name: 'StoreError',
      isDataError: true,
      message: /^(?!.*secret-text)/,
    })
    await t.rejects(store.insertNative('nowhere', [head, body], 'x'), {
      name: 'StoreError',
      code: 60,
      isDataError: false,
    })
    t.same(await only('SELECT count() AS n FROM small'), { n: 0 })
    await t.rejects(store.insertRows('small; DROP TABLE small', [{}]), /bug: /)
  })

  t.test('an error in the middle of a result is not taken for its end', async (t) => {
    await t.rejects(
      store.query(sql('SELECT throwIf(number = 3000000) FROM numbers(4000000)'), {}),
      { name: 'StoreError', code: 395 },
    )
  })

  t.test('a long answer is whole where ClickHouse can write no file for it', async (t) => {
    const dir = join(server.dataDir, 'clickhouse', 'tmp')
    rmSync(dir, { recursive: true })
    writeFileSync(dir, '')
    t.teardown(() => rmSync(dir))
    const long = { name: 'long', sql: 'SELECT number, hex(number) AS text FROM numbers(200000)' }
    t.equal((await store.query(long, {})).length, 200_000)
    const blocks = await store.queryColumns(long, {})
    t.equal(
      blocks.reduce((sum, { rows }) => sum + rows, 0),
      200_000,
    )
  })

  t.test('an aborted call rejects with its reason, and a timeout is named', async (t) => {
    const controller = new AbortController()
    const gone = new Error('client left')
    const slow = sql('SELECT sleep(2)')
    const asked = store.query(slow, {}, { signal: controller.signal })
    controller.abort(gone)
    await t.rejects(asked, gone)
    await t.rejects(store.query(slow, {}, { signal: AbortSignal.abort(gone) }), gone)
    await t.rejects(store.query(slow, {}, { timeoutMs: 50 }), { code: 'dependency_unavailable' })
    await store.ping()
    const left = new AbortController()
    // A query that never ends.
    const endless = sql('SELECT max(number + 7) FROM system.numbers')
    const long = store.query(endless, {}, { signal: left.signal })
    const running = `SELECT count() AS n FROM system.processes
        WHERE position(query, 'number + 7') > 0 AND position(query, 'processes') = 0`
    const runs = async (n: number): Promise<boolean> =>
      ((await only(running)) as { readonly n: number }).n === n
    while (!(await runs(1))) await sleep(10)
    left.abort(gone)
    await t.rejects(long, gone)
    // Without the abort the query would never end.
    while (!(await runs(0))) await sleep(10)
  })

  t.test('changes and signs of life wait for no question', async (t) => {
    const { url, username, password } = server.engine
    const { database } = store
    const narrow = createStore({ url, username, password, database, maxConnections: 1 })
    const left = new AbortController()
    const endless = sql('SELECT max(number + 5) FROM system.numbers')
    const long = narrow.query(endless, {}, { signal: left.signal })
    const gone = new Error('gone')
    t.teardown(() => narrow.close())
    await narrow.command('CREATE TABLE beside (a UInt32) ENGINE = Memory')
    await narrow.insertNative('beside', nativeBlock([1, 2]), 'beside')
    await narrow.ping()
    left.abort(gone)
    await t.rejects(long, gone)
    t.same(await only('SELECT count() AS n FROM beside'), { n: 2 })
  })

  t.test('a wrong password and a server that is not there are both unavailability', async (t) => {
    const { url, username } = server.engine
    const connect = (options: { url: string; password: string }): Store =>
      createStore({ username, database: 'default', ...options })
    const refused = connect({ url, password: 'wrong' })
    await t.rejects(refused.ping(), { code: 'dependency_unavailable', retryAfterS: Number })
    await refused.close()

    const listener = createServer((socket) => socket.destroy())
    await new Promise<void>((done) => {
      listener.listen(0, '127.0.0.1', done)
    })
    const address = listener.address()
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0
    const reset = connect({ url: `http://127.0.0.1:${port}`, password: '' })
    await t.rejects(reset.ping(), { code: 'dependency_unavailable' }, 'closes every connection')
    await new Promise((done) => listener.close(done))
    await t.rejects(reset.ping(), { code: 'dependency_unavailable', message: /ECONNREFUSED/ })
    await reset.close()
  })

  t.test('requests beyond the connections wait', async (t) => {
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, i) => only('SELECT {i:UInt32} AS i', { i })),
    )
    t.same(
      replies,
      Array.from({ length: 200 }, (_, i) => ({ i })),
    )
  })
})
