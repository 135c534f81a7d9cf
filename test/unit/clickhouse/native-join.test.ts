import { array, assert, constantFrom, nat, property, record, string } from 'fast-check'
import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../../src/clickhouse/native-columns.js'
import { joinBlocks } from '../../../src/clickhouse/native-join.js'
import { readNative } from '../../support/native.js'

interface TestRow {
  readonly id: number
  readonly source: string
  readonly message: string
}

function encode(rows: readonly TestRow[], name = 'message'): Uint8Array {
  const id = new FixedColumn('id', 'UInt64', 8)
  const source = new DictColumn('source')
  const message = new StringColumn(name)
  for (const row of rows) {
    id.data.u64(row.id)
    source.push(row.source)
    message.push(row.message)
  }
  return toNativeBlock([id, source, message], rows.length, new ByteBuffer()).bytes
}

const decode = (bytes: Uint8Array): readonly TestRow[] => {
  const { rows, columns } = readNative(bytes)
  const [id, source, message] = columns.map(({ values }) => values)
  return Array.from({ length: rows }, (_, row) => ({
    id: Number(id?.[row]),
    source: String(source?.[row]),
    message: String(message?.[row]),
  }))
}

const someRows = array(
  record({
    id: nat(2 ** 31),
    source: constantFrom('', 'a', 'nginx', 'ключ'),
    message: string({ unit: 'grapheme', maxLength: 200 }),
  }),
  { minLength: 1, maxLength: 20 },
)

void test('small blocks become one with the same rows in the same order', async (t) => {
  assert(
    property(array(someRows, { maxLength: 8 }), (blocks) => {
      const joined = [...joinBlocks(blocks.map((rows) => encode(rows)))]
      if (joined.length !== Math.min(blocks.length, 1)) return false
      return JSON.stringify(joined.flatMap(decode)) === JSON.stringify(blocks.flat())
    }),
  )
  t.pass('by property')
})

void test('a dictionary grows beyond what one byte and two bytes can number', async (t) => {
  for (const [blocks, perBlock] of [
    [3, 200],
    [280, 250],
  ] as const) {
    const rows = Array.from({ length: blocks * perBlock }, (_, i) => ({
      id: i,
      source: `source ${i % (perBlock * 2 - 1)} ${i % (blocks - 1)}`,
      message: '',
    }))
    const parts = Array.from({ length: blocks }, (_, i) =>
      encode(rows.slice(i * perBlock, (i + 1) * perBlock)),
    )
    const joined = [...joinBlocks(parts)]
    t.ok(joined.length < blocks / 2, `${joined.length} of ${blocks}`)
    t.same(
      joined.flatMap(decode).map(({ source }) => source),
      rows.map(({ source }) => source),
    )
  }
})

void test('what is no small block of the same columns stays as it is, in its place', async (t) => {
  const row = { id: 1, source: 'a', message: 'one' }
  const large = encode([{ id: 2, source: 'b', message: 'x'.repeat(100_000) }])
  const other = encode([{ id: 3, source: 'c', message: 'two' }], 'text')
  const half = encode([row]).subarray(0, 20)
  const two = Buffer.concat([encode([row]), encode([row])])
  for (const strange of [large, other, half, two]) {
    const joined = [...joinBlocks([encode([row]), encode([row]), strange, encode([row])])]
    t.equal(joined.length, 3)
    t.same(decode(joined[0] ?? strange), [row, row])
    t.same(Buffer.from(joined[1] ?? []), Buffer.from(strange))
    t.same(Buffer.from(joined[2] ?? []), Buffer.from(encode([row])))
  }
  const lost = Buffer.from(encode([row, row]))
  lost[lost.lastIndexOf('message') - 2] = 9
  t.same([...joinBlocks([lost, lost])], [lost, lost], 'an index without a key')
})
