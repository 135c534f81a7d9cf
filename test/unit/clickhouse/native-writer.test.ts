import {
  array,
  assert,
  constantFrom,
  float,
  nat,
  oneof,
  property,
  record,
  string,
  uint8Array,
} from 'fast-check'
import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  joinBlocks,
  toNativeBlock,
} from '../../../src/clickhouse/native-writer.js'
import { readNative } from '../../support/native.js'

const text = oneof(
  string({ unit: 'binary', maxLength: 40 }),
  constantFrom('', 'a', '\ud83d', '\ude00\ud83d', '日本語', '\0'),
)
const utf8 = (value: string): Buffer => Buffer.from(value)

const texts = (values: readonly unknown[]): Buffer[] => values.filter((v) => Buffer.isBuffer(v))

void test('every kind of column comes back from one block', async (t) => {
  const words = new DictColumn('words')
  const messages = new StringColumn('messages')
  const numbers = new FixedColumn('numbers', 'UInt64', 8)
  const shares = new FixedColumn('shares', 'Float32', 4)
  const columns = [words, numbers, messages, shares]
  const out = new ByteBuffer(1)
  assert(
    property(array(text), array(text), float({ noNaN: true }), (keys, bodies, share) => {
      for (const column of columns) column.clear()
      const rows = Math.min(keys.length, bodies.length)
      for (let row = 0; row < rows; row++) {
        words.push(keys[row] ?? '')
        messages.push(bodies[row] ?? '')
        numbers.data.u64(row * 2 ** 40)
      }
      shares.zeros(rows)
      const { bytes, offsets } = toNativeBlock(columns, rows, out)
      const view = new DataView(bytes.buffer)
      for (let row = 0; row < rows; row++) view.setFloat32((offsets[3] ?? 0) + row * 4, share, true)
      if (rows === 0) return true
      const block = readNative(bytes)
      const [readWords, readNumbers, readMessages, readShares] = block.columns
      return (
        block.rows === rows &&
        texts(readWords?.values ?? []).every((v, i) => v.equals(utf8(keys[i] ?? ''))) &&
        texts(readMessages?.values ?? []).every((v, i) => v.equals(utf8(bodies[i] ?? ''))) &&
        (readNumbers?.values ?? []).every((v, i) => v === BigInt(i * 2 ** 40)) &&
        (readShares?.values ?? []).every((v) => v === share)
      )
    }),
  )
  t.pass('all runs came back')
})

for (const keys of [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000])
  void test(`a dictionary of ${keys} keys comes back`, async (t) => {
    const column = new DictColumn('c')
    const expected: string[] = []
    for (let row = 0; row < keys + 10; row++) {
      const key = row % keys === 0 ? '' : `key ${(row * 7919) % keys}`
      expected.push(key)
      column.push(key)
    }
    const { bytes } = toNativeBlock([column], expected.length, new ByteBuffer())
    const values = texts(readNative(bytes).columns[0]?.values ?? [])
    t.equal(values.length, expected.length)
    t.ok(values.every((value, i) => value.toString() === expected[i]))
  })

void test('a row is the same however often the dictionary was used before', async (t) => {
  const column = new DictColumn('c')
  const out = new ByteBuffer()
  const blockOf = (values: readonly string[]): Uint8Array => {
    column.clear()
    for (const value of values) column.push(value)
    return toNativeBlock([column], values.length, out).bytes
  }
  const first = blockOf(['x', 'y', 'x'])
  blockOf(Array.from({ length: 5000 }, (_, i) => `${i}`))
  t.same(blockOf(['x', 'y', 'x']), first)
})

void test('bytes are taken as they are', async () => {
  assert(
    property(array(uint8Array({ maxLength: 300 }), { minLength: 1 }), nat(3), (values, empties) => {
      const column = new StringColumn('c')
      for (const value of values) column.pushBytes(value)
      for (let i = 0; i < empties; i++) column.push('')
      const { bytes } = toNativeBlock([column], values.length + empties, new ByteBuffer())
      const read = texts(readNative(bytes).columns[0]?.values ?? [])
      return read.every((value, i) => value.equals(values[i] ?? Buffer.alloc(0)))
    }),
  )
})

void test('a column that is short of rows is a mistake of ours', async (t) => {
  const column = new StringColumn('c')
  column.push('one')
  t.throws(() => toNativeBlock([column], 2, new ByteBuffer()), {
    message: /^bug: column c has 1 rows/,
  })
})

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
