import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../../src/clickhouse/native-writer.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'

const texts = [
  '',
  'plain',
  'ünï ©ode',
  '日本語',
  '😀',
  '\ud83d',
  'a\ude00b',
  '\0\n\t"\'\\',
  'x'.repeat(200),
]

void test('ClickHouse reads our blocks as they were meant', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await store.command(
    `CREATE TABLE t (i UInt64, s String, d LowCardinality(String), n Int32, f Float32, u UInt8,
      ts DateTime64(3, 'UTC'), e Enum8('a' = 0, 'b' = 1)) ENGINE = MergeTree ORDER BY i`,
  )
  const columns = {
    i: new FixedColumn('i', 'UInt64', 8),
    s: new StringColumn('s'),
    d: new DictColumn('d'),
    n: new FixedColumn('n', 'Int32', 4),
    f: new FixedColumn('f', 'Float32', 4),
    u: new FixedColumn('u', 'UInt8', 1),
    ts: new FixedColumn('ts', "DateTime64(3, 'UTC')", 8),
    e: new FixedColumn('e', 'Int8', 1),
  }
  const out = new ByteBuffer()
  for (const keys of [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000])
    await t.test(`${keys} keys`, async (t) => {
      await store.command('TRUNCATE TABLE t')
      for (const column of Object.values(columns)) column.clear()
      const keyOf = (row: number): string =>
        row % keys < texts.length ? (texts[row % keys] ?? '') : `key ${row % keys}`
      const rows = keys + 20
      for (let row = 0; row < rows; row++) {
        columns.i.data.u64(row)
        columns.s.push(texts[row % texts.length] ?? '')
        columns.d.push(keyOf(row))
        columns.n.data.u32(-row)
        columns.ts.data.u64(1_700_000_000_000 + row)
        columns.e.data.u8(row % 2)
        columns.u.data.u8(row % 256)
      }
      columns.f.zeros(rows)
      const { bytes, offsets } = toNativeBlock(Object.values(columns), rows, out)
      const view = new DataView(bytes.buffer)
      for (let row = 0; row < rows; row++)
        view.setFloat32((offsets[4] ?? 0) + row * 4, row / 4, true)
      // Two blocks in one insert, like a batch.
      await store.insertNative('t', [bytes, bytes], `keys ${keys}`)
      const read = await store.query<Record<string, never>, Record<string, unknown>>(
        {
          name: 'read',
          sql: `SELECT i, hex(s) AS s, hex(d) AS d, n, f, u, toUnixTimestamp64Milli(ts) AS ts, e, count() AS c
            FROM t GROUP BY ALL ORDER BY i`,
        },
        {},
      )
      t.equal(read.length, rows)
      const hex = (text: string): string => Buffer.from(text).toString('hex').toUpperCase()
      const wrong = read.filter(
        (row, i) =>
          row['i'] !== i ||
          row['s'] !== hex(texts[i % texts.length] ?? '') ||
          row['d'] !== hex(keyOf(i)) ||
          row['n'] !== (i === 0 ? 0 : -i) ||
          row['f'] !== i / 4 ||
          row['u'] !== i % 256 ||
          row['ts'] !== 1_700_000_000_000 + i ||
          row['e'] !== (i % 2 === 0 ? 'a' : 'b') ||
          row['c'] !== 2,
      )
      t.same(wrong.slice(0, 3), [])
    })

  await t.test('a block may leave out columns that others of its insert have', async (t) => {
    await store.command('TRUNCATE TABLE t')
    for (const column of Object.values(columns)) column.clear()
    columns.i.data.u64(1)
    columns.s.push('s')
    columns.d.push('d')
    columns.n.data.u32(2)
    const { i, s, d, n } = columns
    const whole = toNativeBlock([i, s, d, n], 1, out).bytes
    await store.insertNative('t', [toNativeBlock([i, n], 1, out).bytes, whole], 'left out')
    const read = await store.query<Record<string, never>, Record<string, unknown>>(
      { name: 'read', sql: 'SELECT i, s, d, n, e FROM t ORDER BY s' },
      {},
    )
    t.same(read, [
      { i: 1, s: '', d: '', n: 2, e: 'a' },
      { i: 1, s: 's', d: 'd', n: 2, e: 'a' },
    ])
  })
})
