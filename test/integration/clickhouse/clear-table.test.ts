import t from 'tap'
import { clearTable } from '../../../src/clickhouse/clear-table.js'
import { createStore } from '../../../src/clickhouse/client.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'

const TOO_LARGE = 359

t.test('a table above the limit for dropping is cleared all the same', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { store: own, drop } = await createTestDatabase(server)
  t.teardown(drop)
  const { url, username, password } = server.engine
  const { database } = own
  // Every table exceeds this limit.
  const settings = { max_table_size_to_drop: '1' }
  const store = createStore({ url, username, password, database, settings })
  t.teardown(() => store.close())
  await store.command('CREATE TABLE numbers (a UInt64) ENGINE = MergeTree ORDER BY a')
  const rows = [{ a: 1 }, { a: 2 }]
  const count = async (): Promise<unknown> =>
    await store.query({ name: 'count', sql: 'SELECT count() AS n FROM numbers' }, {})
  await store.insertRows('numbers', rows)
  await t.rejects(store.change('TRUNCATE TABLE numbers'), { code: TOO_LARGE }, 'the limit is there')
  t.same(await count(), [{ n: 2 }])
  await clearTable(store, 'numbers')
  t.same(await count(), [{ n: 0 }])

  const limited = {
    change: async (sql: string, _params?: unknown, request?: { readonly settings?: object }) => {
      if (request?.settings !== undefined)
        throw Object.assign(new Error('the setting may not be changed'), { code: 452 })
      await own.change(sql)
    },
  }
  await store.insertRows('numbers', rows)
  await clearTable(limited, 'numbers')
  t.same(
    await count(),
    [{ n: 0 }],
    'a user without the right to change the setting can clear tables below the limit',
  )
  await store.insertRows('numbers', rows)
  await t.rejects(clearTable({ change: (sql) => store.change(sql) }, 'numbers'), {
    code: TOO_LARGE,
  })
})
