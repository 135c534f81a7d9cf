/** What SQL makes of the attributes of a row. */
import { t as suite, test } from 'tap'
import { attributeNumber, attributeText } from '../../../src/events/attribute-condition.js'
import { bound } from '../../../src/events/bind.js'
import { createEvents } from '../../../src/events/events.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { filterOf } from '../../support/event-filter.js'
import { applySchema, tagColumns } from '../../support/landing.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

void test('ids are compared as texts, names and values up to their bounds', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const name = 'n'.repeat(128)
  const tags = [
    { id: '9007199254740993' },
    { id: '9007199254740992' },
    { [name]: 'é'.repeat(511) },
    { id: 9_007_199_254_740_990 },
    { id: '9007199254740990.0' },
  ]
  const now = Date.now()
  const at = new Date(now - 1000).toISOString()
  await store.insertRows(
    'landing',
    tags.map((one, id) => ({
      id: id + 1,
      is_new: 1,
      n: 1,
      ts: at,
      received_at: at,
      ...tagColumns(one),
    })),
  )
  const events = createEvents(store)
  for (const [q, ids] of [
    ['tag.id:9007199254740993', [1]],
    ['tag.id:9007199254740992', [2]],
    ['tag.id:9007199254740990', [5, 4]],
    ['tag.id:90071992547409900e-1', [5, 4]],
    [`${name}:${'é'.repeat(511)}`, [3]],
    [`has:${name}`, [3]],
  ] as const) {
    const range = { fromMs: now - 60_000, toMs: null, after: null, limit: 5 }
    const { events: page } = await events.page({ filter: filterOf({ q }), ...range })
    t.same(
      page.map((event) => event.id),
      ids,
      q.slice(0, 60),
    )
  }
})

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
    { a: '1e400', b: { c: '-1e400' } },
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
    texts: ['x', '7', '42', 'true', null, null, 'x', '1e400'],
    numbers: [null, 7, 42, null, null, null, null, null],
  })
  t.same(await read('b.c'), {
    texts: ['1.5', null, '1e3', null, null, null, '', '-1e400'],
    numbers: [1.5, null, 1000, null, null, null, null, null],
  })
  t.same(await read('none'), {
    texts: rows.map(() => null),
    numbers: rows.map(() => null),
  })
})
