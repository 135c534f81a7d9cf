import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import { readNative } from '../../../src/clickhouse/native-reader.js'

/** A block as ClickHouse writes it: width, rows, then name, type and data of each column. */
function block(rows: number, columns: readonly (readonly [string, string, Uint8Array])[]): Buffer {
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
  const first = block(3, [
    ['name', 'String', text],
    ['id', 'UInt64', bytesOf(BigUint64Array.from([1n, 2n ** 64n - 1n, 0n]))],
    ['n', 'Int32', bytesOf(Int32Array.from([-1, 0, 2_147_483_647]))],
  ])
  const ends = bytesOf(BigUint64Array.from([2n, 2n, 3n]))
  const items = bytesOf(Uint16Array.from([7, 65_535, 9]))
  const second = block(3, [['at', 'Array(UInt16)', Buffer.concat([ends, items])]])
  const empty = block(0, [['at', 'Array(UInt16)', new Uint8Array(0)]])
  const [one, two, ...none] = readNative(Buffer.concat([first, empty, second]))
  t.same(none, [], 'a block without rows tells nothing')
  t.equal(one?.rows, 3)
  t.same(one?.columns.get('name'), { kind: 'text', values: ['a�', '', 'bcd'] })
  t.match(one?.columns.get('id'), { kind: 'ids', values: [1n, 2n ** 64n - 1n, 0n] })
  t.match(one?.columns.get('n'), { kind: 'numbers', values: [-1, 0, 2_147_483_647] })
  t.match(two?.columns.get('at'), { kind: 'lists', ends: [2, 2, 3], items: [7, 65_535, 9] })
})

test('an answer that was cut off is refused at every length', async (t) => {
  const whole = block(2, [['n', 'Int32', bytesOf(Int32Array.from([1, 2]))]])
  for (let length = 1; length < whole.length; length++)
    t.throws(() => readNative(whole.subarray(0, length)), RangeError, `${length} bytes`)
  t.same(readNative(new Uint8Array(0)), [])
})

test('a type that is not read is a mistake of the statement', async (t) => {
  t.throws(
    () => readNative(block(1, [['n', 'Decimal(9, 2)', new Uint8Array(4)]])),
    /bug: .*Decimal/,
  )
})
