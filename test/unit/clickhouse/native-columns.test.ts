import {
  array,
  assert,
  constantFrom,
  float,
  nat,
  oneof,
  property,
  string,
  uint8Array,
} from 'fast-check'
import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../../src/clickhouse/native-columns.js'
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
