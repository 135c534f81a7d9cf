import { array, assert, constantFrom, nat, property, record, string, uint8Array } from 'fast-check'
import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../../src/clickhouse/native-writer.js'
import { readBlock, readBlocks } from '../../../src/clickhouse/native-reader.js'
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
      const block = readBlock(encode(rows))
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

void test('bytes of some rows can be changed', async (t) => {
  const rows = [
    { id: 1, level: 0, source: 'a', message: 'x' },
    { id: 2, level: 0, source: 'b', message: 'y' },
  ]
  const bytes = encode(rows)
  const block = readBlock(bytes)
  t.same(decode(block?.withBytes('level', new Map([[1, 7]])) ?? bytes), [
    rows[0],
    { ...rows[1], level: 7 },
  ])
  t.same(decode(bytes), rows, 'the block itself stays')
})

void test('a column of another kind or none has no value', async (t) => {
  const block = readBlock(encode([{ id: 1, level: 0, source: 'a', message: 'x' }]))
  t.equal(block?.text('id', 0), null)
  t.equal(block?.number('message', 0), null)
  t.equal(block?.text('host', 0), null)
})

void test('arbitrary bytes that are no block are recognised', async (t) => {
  assert(
    property(someRows, nat(10_000), nat(255), uint8Array(), (rows, at, value, junk) => {
      const bytes = Buffer.from(encode(rows))
      t.equal(readBlock(bytes.subarray(0, at % bytes.length)), null, 'truncated')
      t.equal(readBlock(Buffer.concat([bytes, Buffer.of(0), junk])), null, 'with more behind')
      bytes[at % bytes.length] = value
      const changed = readBlock(bytes)
      for (let row = 0; row < Math.min(changed?.rows ?? 0, 50); row++)
        for (const column of ['id', 'level', 'source', 'message']) {
          changed?.text(column, row)
          changed?.number(column, row)
        }
      readBlock(junk)
    }),
    { numRuns: 300 },
  )
  t.pass('nothing threw')
})

/** A block as ClickHouse writes it: width, rows, then name, type and data of each column. */
function writeBlock(
  rows: number,
  columns: readonly (readonly [string, string, Uint8Array])[],
): Buffer {
  const out = new ByteBuffer()
  out.varint(columns.length)
  out.varint(rows)
  for (const [name, type, data] of columns) {
    out.string(name)
    out.string(type)
    out.append(data)
  }
  return Buffer.from(out.copy())
}

const bytesOf = (numbers: BigUint64Array | Int32Array | Uint16Array): Uint8Array =>
  new Uint8Array(numbers.buffer)

test('columns of several blocks are read as what they are', async (t) => {
  const text = Uint8Array.from([2, 0x61, 0xc3, 0, 3, 0x62, 0x63, 0x64])
  const first = writeBlock(3, [
    ['name', 'String', text],
    ['id', 'UInt64', bytesOf(BigUint64Array.from([1n, 2n ** 64n - 1n, 0n]))],
    ['n', 'Int32', bytesOf(Int32Array.from([-1, 0, 2_147_483_647]))],
  ])
  const ends = bytesOf(BigUint64Array.from([2n, 2n, 3n]))
  const items = bytesOf(Uint16Array.from([7, 65_535, 9]))
  const second = writeBlock(3, [['at', 'Array(UInt16)', Buffer.concat([ends, items])]])
  const empty = writeBlock(0, [['at', 'Array(UInt16)', new Uint8Array(0)]])
  const [one, two, ...none] = readBlocks(Buffer.concat([first, empty, second]))
  t.same(none, [], 'a block without rows has no values')
  t.equal(one?.rows, 3)
  t.same(one?.texts('name'), ['a�', '', 'bcd'])
  t.same(one?.hexIds('id'), [`${'0'.repeat(15)}1`, 'f'.repeat(16), '0'.repeat(16)])
  t.same([...(one?.numbers('n') ?? [])], [-1, 0, 2_147_483_647])
  t.match(two?.lists('at'), { ends: [2, 2, 3], items: [7, 65_535, 9] })
  t.throws(() => one?.numbers('name'), /bug: .*name/, 'a column is of the kind that is asked for')
  t.throws(() => one?.texts('at'), /bug: .*at/, 'and is there')
})

test('a truncated answer is refused at every length', async (t) => {
  const whole = writeBlock(2, [['n', 'Int32', bytesOf(Int32Array.from([1, 2]))]])
  for (let length = 1; length < whole.length; length++)
    t.throws(() => readBlocks(whole.subarray(0, length)), RangeError, `${length} bytes`)
  t.same(readBlocks(new Uint8Array(0)), [])
})

test('a type that is not read is a mistake of the statement', async (t) => {
  t.throws(() => readBlocks(writeBlock(1, [['n', 'Decimal(9, 2)', new Uint8Array(4)]])), /Decimal/)
})
