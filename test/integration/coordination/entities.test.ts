import { Type, type Static } from '@sinclair/typebox'
import fc from 'fast-check'
import t from 'tap'
import type { Store } from '../../../src/clickhouse/client.js'
import type { Collection, EntityChange } from '../../../src/coordination/collection.js'
import { createEntities, type EntitiesOptions } from '../../../src/coordination/entities.js'
import { migrate } from '../../../src/clickhouse/migrate.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { DAY_MS } from '../../../src/model/time.js'

const CounterDoc = Type.Object({ n: Type.Number() })
type Counter = Readonly<Static<typeof CounterDoc>>

const open = async (
  store: Store,
  options: Partial<EntitiesOptions> = {},
): Promise<Collection<Counter>> => {
  const entities = await createEntities(store, { log: quietLog, ...options })
  return entities.collection('counters', CounterDoc)
}

const contents = (counters: Collection<Counter>): Counter[] =>
  counters.list().sort((a, b) => a.n - b.n)

t.test('records survive restarts, failures and changes of other instances', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const database = async (t: { teardown(work: () => unknown): unknown }): Promise<Store> => {
    const { store, drop } = await createTestDatabase(server)
    t.teardown(drop)
    const numbers = { rollup_days: 121 }
    await migrate(store, { numbers, log: quietLog })
    return store
  }

  t.test('what was put, changed and removed is the same after a restart', async (t) => {
    const store = await database(t)
    const counters = await open(store)
    await counters.put('a', { n: 1 })
    await counters.put('b', { n: 2 })
    await counters.put('c', { n: 3 })
    await counters.put('ключ/é 😀 \\ " \n', { n: 4 })
    t.same(await counters.update('a', (current) => ({ n: (current?.n ?? 0) + 10 })), { n: 11 })
    t.equal(await counters.remove('b'), true)
    t.equal(await counters.remove('b'), false)
    t.equal(await counters.update('c', () => null), null)
    t.equal(counters.size, 2)

    const again = await open(store)
    t.same(contents(again), [{ n: 4 }, { n: 11 }])
    t.same(again.get('ключ/é 😀 \\ " \n'), { n: 4 })
    t.equal(again.get('b'), null)

    await again.put('b', { n: 20 })
    t.same((await open(store)).get('b'), { n: 20 }, 'a removed id can be used again')
  })

  t.test('no change of many at once is lost, and they are written together', async (t) => {
    const store = await database(t)
    const counters = await open(store)
    const increments = Array.from({ length: 300 }, (_, i) =>
      counters.update(`k${i % 30}`, (current) => ({ n: (current?.n ?? 0) + 1 })),
    )
    await Promise.all(increments)
    t.same(
      counters.list(),
      Array.from({ length: 30 }, () => ({ n: 10 })),
    )
    t.same((await open(store)).list(), counters.list())
    const [inserts] = await store.query<Record<string, never>, { readonly n: number }>(
      {
        name: 'test',
        sql: "SELECT toUInt32(max(max_block_number)) AS n FROM system.parts WHERE table = 'entities' AND database = currentDatabase()",
      },
      {},
    )
    t.ok((inserts?.n ?? 1_000) <= 20, `${inserts?.n} inserts for 300 changes of 30 records`)
  })

  t.test('any run of changes leaves memory and disk as a plain map would be', async (t) => {
    const store = await database(t)
    const change = fc.record({
      id: fc.constantFrom('a', 'b', 'c'),
      n: fc.integer(),
      kind: fc.constantFrom('put', 'add', 'remove', 'clear'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
        const counters = await open(store)
        const expected = new Map(
          ['a', 'b', 'c'].flatMap((id) => {
            const found = counters.get(id)
            return found === null ? [] : [[id, found.n] as const]
          }),
        )
        const running = changes.map(({ id, n, kind }) => {
          if (kind === 'clear') {
            expected.clear()
            return counters.clear()
          }
          if (kind === 'remove') {
            expected.delete(id)
            return counters.remove(id)
          }
          expected.set(id, kind === 'put' ? n : ((expected.get(id) ?? 0) + n) | 0)
          return counters.update(id, (current) => ({
            n: kind === 'put' ? n : ((current?.n ?? 0) + n) | 0,
          }))
        })
        await Promise.all(running)
        for (const source of [counters, await open(store)]) {
          const found = ['a', 'b', 'c'].map((id) => source.get(id)?.n)
          t.same(
            found,
            ['a', 'b', 'c'].map((id) => expected.get(id)),
          )
        }
      }),
      { numRuns: 15 },
    )
  })

  t.test('clearing is final, for records that this instance never saw too', async (t) => {
    const store = await database(t)
    const counters = await open(store)
    await counters.put('seen', { n: 1 })
    const other = await open(store)
    await other.put('unseen', { n: 2 })
    const late = counters.put('late', { n: 3 })
    t.equal(await counters.clear(), 2)
    await late
    t.same(counters.list(), [])
    t.same((await open(store)).list(), [])
    await counters.put('new', { n: 4 })
    t.same((await open(store)).list(), [{ n: 4 }])
  })

  t.test('versions grow even when the clock goes back', async (t) => {
    const store = await database(t)
    const ahead = await open(store, { now: () => Date.now() + DAY_MS })
    await ahead.put('a', { n: 1 })
    const behind = await open(store, { now: () => 0 })
    await behind.put('a', { n: 2 })
    await behind.remove('a')
    await behind.put('a', { n: 3 })
    t.same((await open(store)).get('a'), { n: 3 })
  })

  t.test('an unreadable row is reported and left out, and can be replaced', async (t) => {
    const store = await database(t)
    const row = { kind: 'counters', version: 5, is_deleted: 0 }
    await store.insertRows('entities', [
      { ...row, id: 'cut', doc: '{"n":' },
      { ...row, id: 'other', doc: '{"m":1}' },
      { ...row, id: 'good', doc: '{"n":7}' },
    ])
    const reports: object[] = []
    const log = { ...quietLog, warn: (fields: object) => reports.push(fields) }
    const counters = await open(store, { log })
    t.same(counters.list(), [{ n: 7 }])
    t.same(reports, [
      { kind: 'counters', id: 'cut', reason: 'not JSON' },
      {
        kind: 'counters',
        id: 'other',
        reason: "stored record does not fit: must have required property 'n'",
      },
    ])
    await counters.put('cut', { n: 8 })
    t.same((await open(store)).get('cut'), { n: 8 })
  })

  t.test('a change that throws changes nothing and holds nobody up', async (t) => {
    const store = await database(t)
    const counters = await open(store)
    await counters.put('a', { n: 1 })
    const refused = counters.update('a', () => {
      throw new Error('not allowed')
    })
    const next = counters.update('a', (current) => ({ n: (current?.n ?? 0) + 1 }))
    await t.rejects(refused, { message: 'not allowed' })
    t.same(await next, { n: 2 })
    await t.rejects(counters.put('a', { n: Number.NaN }), {
      message: 'stored record does not fit: /n must be number',
    })
    await t.rejects(counters.put('', { n: 1 }), RangeError)
    await t.rejects(counters.put('\ud800', { n: 1 }), RangeError)
    t.same(counters.get('a'), { n: 2 })
  })

  t.test(
    'an unconfirmed change is not in memory, and the next change reads the stored version',
    async (t) => {
      const store = await database(t)
      let isFailing = false
      const failing: Store = {
        ...store,
        async insertRows(table, rows, options) {
          await store.insertRows(table, rows, options)
          // Stored, but the answer is lost.
          if (isFailing) await store.ping({ timeoutMs: 0 })
        },
      }
      const counters = await open(failing)
      await counters.put('a', { n: 1 })
      isFailing = true
      await t.rejects(counters.put('a', { n: 2 }), { code: 'dependency_unavailable' })
      t.same(counters.get('a'), { n: 1 })
      isFailing = false
      t.same(await counters.update('a', (current) => ({ n: (current?.n ?? 0) + 1 })), { n: 3 })
    },
  )

  t.test('instances that share a lock do not overwrite each other', async (t) => {
    const store = await database(t)
    let tail: Promise<unknown> = Promise.resolve()
    const exclusive = <T>(_key: string, work: () => Promise<T>): Promise<T> => {
      const result = tail.then(work)
      tail = result.catch(() => {})
      return result
    }
    const [one, two] = [await open(store, { exclusive }), await open(store, { exclusive })]
    const add = (counters: Collection<Counter>): Promise<Counter | null> =>
      counters.update('a', (current) => ({ n: (current?.n ?? 0) + 1 }))
    await Promise.all([add(one), add(two), add(one), add(two), add(two)])
    t.same((await open(store)).get('a'), { n: 5 })
  })

  t.test(
    'changes are announced once, with what was before; reloads bring those of others',
    async (t) => {
      const store = await database(t)
      const [one, two] = [await open(store), await open(store)]
      const seen: EntityChange<Counter>[] = []
      const end = two.onChange((change) => seen.push(change))
      await one.put('a', { n: 1 })
      await one.put('b', { n: 2 })
      t.equal(two.size, 0)
      await two.reload('a')
      await two.reload('a')
      await two.reload('no such record')
      await two.put('a', { n: 5 })
      await one.reload('a')
      await one.remove('a')
      await two.reloadAll()
      t.same(seen, [
        { id: 'a', value: { n: 1 }, previous: null, origin: 'reload' },
        { id: 'a', value: { n: 5 }, previous: { n: 1 }, origin: 'local' },
        { id: 'a', value: null, previous: { n: 5 }, origin: 'reload' },
        { id: 'b', value: { n: 2 }, previous: null, origin: 'reload' },
      ])
      end()
      await two.remove('b')
      t.equal(seen.length, 4)
    },
  )

  t.test('more records than a page of the reader are all there', async (t) => {
    const store = await database(t)
    await store.command(
      `INSERT INTO entities (kind, id, version, is_deleted, doc)
      SELECT 'counters', toString(number), 1, 0, concat('{"n":', toString(number), '}')
      FROM numbers(25000)`,
    )
    const counters = await open(store)
    t.equal(counters.size, 25_000)
    await counters.reloadAll()
    t.equal(counters.size, 25_000)
    t.same(counters.get('24999'), { n: 24_999 })
  })
})
