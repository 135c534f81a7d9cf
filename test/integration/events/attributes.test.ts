/** What SQL makes of the attributes of a row. */
import { t as suite, test } from 'tap'
import { attributeNumber, attributeText } from '../../../src/events/attribute-condition.js'
import { bound } from '../../../src/events/bind.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema, tagColumns } from '../../support/landing.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

void test('the text and the number of an attribute are those of its first value', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const rows = [
    { a: 'x', b: { c: 1.5 } },
    { a: 7, b: 'text' },
    { a: '42', 'b.c': '1e3', b: { c: 2 } },
    { a: true, b: { c: null } },
    { a: { b: 1 } },
    {},
    { a: ['x', 1], b: { c: '' } },
  ]
  const now = new Date().toISOString()
  await store.insertRows(
    'landing',
    rows.map((tags, id) => ({
      id,
      is_new: 1,
      n: 1,
      ts: now,
      received_at: now,
      ...tagColumns(tags),
    })),
  )
  const read = async (
    path: string,
  ): Promise<{ readonly texts: readonly unknown[]; readonly numbers: readonly unknown[] }> => {
    const { sql, params } = bound(
      'x',
      (bind) => `${attributeText(path, bind)} AS text, ${attributeNumber(path, bind)} AS number`,
    )
    const found = await store.query<Record<string, unknown>, { text: unknown; number: unknown }>(
      { name: 'attributes', sql: `SELECT ${sql} FROM events ORDER BY id` },
      params,
    )
    return { texts: found.map(({ text }) => text), numbers: found.map(({ number }) => number) }
  }
  t.same(await read('a'), {
    texts: ['x', '7', '42', 'true', null, null, 'x'],
    numbers: [null, 7, 42, null, null, null, null],
  })
  t.same(await read('b.c'), {
    texts: ['1.5', null, '1e3', null, null, null, ''],
    numbers: [1.5, null, 1000, null, null, null, null],
  })
  t.same(await read('none'), {
    texts: rows.map(() => null),
    numbers: rows.map(() => null),
  })
})
