import { array, assert, constantFrom, nat, property, record, string, uint8Array } from 'fast-check'
import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../../src/clickhouse/native-columns.js'
import { readNativeRows } from '../../../src/clickhouse/native-rows.js'
import { readNative } from '../../support/native.js'

interface TestRow {
  readonly id: number
  readonly level: number
  readonly source: string
  readonly message: string
}

function encode(rows: readonly TestRow[]): Uint8Array {
  const id = new FixedColumn('id', 'UInt64', 8)
  const level = new FixedColumn('level', "Enum8('a' = 0, 'b' = 1)", 1)
  const source = new DictColumn('source')
  const message = new StringColumn('message')
  for (const row of rows) {
    id.data.u64(row.id)
    level.data.u8(row.level)
    source.push(row.source)
    message.push(row.message)
  }
  return toNativeBlock([id, level, source, message], rows.length, new ByteBuffer()).bytes
}

const decode = (bytes: Uint8Array): readonly TestRow[] => {
  const { rows, columns } = readNative(bytes)
  const [id, level, source, message] = columns.map(({ values }) => values)
  return Array.from({ length: rows }, (_, row) => ({
    id: Number(id?.[row]),
    level: Number(level?.[row]),
    source: String(source?.[row]),
    message: String(message?.[row]),
  }))
}

const someRows = array(
  record({
    id: nat(2 ** 31),
    level: nat(255),
    source: constantFrom('', 'a', 'nginx', 'ключ'),
    message: string({ unit: 'grapheme', maxLength: 200 }),
  }),
  { minLength: 1, maxLength: 40 },
)

void test('runs of rows are the rows they were', async (t) => {
  assert(
    property(someRows, nat(40), nat(40), (rows, a, b) => {
      const block = readNativeRows(encode(rows))
      const [from, to] = [Math.min(a, b) % rows.length, rows.length]
      const cut = decode(block?.slice(from, to) ?? Buffer.alloc(0))
      t.same(cut, rows.slice(from, to))
      t.equal(block?.text('source', from), rows[from]?.source)
      t.equal(block?.text('message', from), rows[from]?.message)
      t.equal(block?.number('id', from), rows[from]?.id)
      t.equal(block?.number('level', from), rows[from]?.level)
    }),
    { numRuns: 100 },
  )
})

void test('a byte of one row can be changed', async (t) => {
  const rows = [
    { id: 1, level: 0, source: 'a', message: 'x' },
    { id: 2, level: 0, source: 'b', message: 'y' },
  ]
  const bytes = encode(rows)
  const block = readNativeRows(bytes)
  t.same(decode(block?.withByte('level', 1, 7) ?? bytes), [rows[0], { ...rows[1], level: 7 }])
  t.same(decode(bytes), rows, 'the block itself stays')
})

void test('a column of another kind or none has no value', async (t) => {
  const block = readNativeRows(encode([{ id: 1, level: 0, source: 'a', message: 'x' }]))
  t.equal(block?.text('id', 0), null)
  t.equal(block?.number('message', 0), null)
  t.equal(block?.text('host', 0), null)
})

void test('bytes that are no block are told from one, whatever they are', async (t) => {
  assert(
    property(someRows, nat(10_000), nat(255), uint8Array(), (rows, at, value, junk) => {
      const bytes = Buffer.from(encode(rows))
      t.equal(readNativeRows(bytes.subarray(0, at % bytes.length)), null, 'cut off')
      t.equal(readNativeRows(Buffer.concat([bytes, Buffer.of(0), junk])), null, 'with more behind')
      bytes[at % bytes.length] = value
      const changed = readNativeRows(bytes)
      for (let row = 0; row < Math.min(changed?.rows ?? 0, 50); row++)
        for (const column of ['id', 'level', 'source', 'message']) {
          changed?.text(column, row)
          changed?.number(column, row)
        }
      readNativeRows(junk)
    }),
    { numRuns: 300 },
  )
  t.pass('nothing threw')
})
