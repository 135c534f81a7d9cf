import {
  array,
  assert,
  integer,
  maxSafeNat,
  nat,
  oneof,
  property,
  string,
  uint8Array,
} from 'fast-check'
import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'

// Every UTF-16 unit: control characters, surrogates alone and in pairs.
const anyText = string({ unit: 'binary', maxLength: 300, size: 'max' })
const unpaired = array(oneof(nat(0xffff), integer({ min: 0xd800, max: 0xdfff })), {
  maxLength: 200,
}).map((units) => String.fromCharCode(...units))

function readVarint(bytes: Uint8Array, at: number): { value: number; next: number } {
  let value = 0
  for (let scale = 1, next = at; ; scale *= 128) {
    const byte = bytes[next++] ?? 0
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return { value, next }
  }
}

void test('texts come back as UTF-8 behind their length, in a row and from any capacity', async () => {
  assert(
    property(array(oneof(anyText, unpaired)), nat(64), (texts, capacity) => {
      const buffer = new ByteBuffer(capacity)
      const starts = texts.map((text) => buffer.string(text))
      const bytes = buffer.copy()
      let at = 0
      texts.forEach((text, i) => {
        const { value, next } = readVarint(bytes, at)
        const expected = Buffer.from(text)
        if (next !== starts[i] || value !== expected.length) throw new Error('the prefix differs')
        if (expected.compare(bytes, next, next + value) !== 0) throw new Error('the text differs')
        at = next + value
      })
      return at === bytes.length
    }),
  )
})

void test('texts around the lengths at which the prefix grows come back', async (t) => {
  for (const length of [0, 1, 42, 43, 127, 128, 5461, 5462, 16_383, 16_384, 699_051, 2_097_152]) {
    for (const letter of ['a', 'é', '€', '\ud800']) {
      const buffer = new ByteBuffer(1)
      const start = buffer.string(letter.repeat(length))
      const { value, next } = readVarint(buffer.bytes, 0)
      t.equal(next, start)
      t.equal(buffer.length, start + value)
      const text = Buffer.from(buffer.bytes.subarray(start, buffer.length)).toString()
      t.ok(text === Buffer.from(letter.repeat(length)).toString(), `${length} times ${letter}`)
    }
  }
})

void test('numbers come back little-endian, also those above 32 bits', async () => {
  assert(
    property(
      array(maxSafeNat()),
      array(integer({ min: -(2 ** 31), max: 2 ** 32 - 1 })),
      (longs, words) => {
        const buffer = new ByteBuffer(0)
        for (const value of longs) buffer.u64(value)
        for (const value of words) buffer.u32(value)
        const bytes = Buffer.from(buffer.copy())
        return (
          longs.every((value, i) => bytes.readBigUInt64LE(i * 8) === BigInt(value)) &&
          words.every((value, i) => bytes.readUInt32LE(longs.length * 8 + i * 4) === value >>> 0)
        )
      },
    ),
  )
})

void test('variable-length numbers come back up to 2^32 - 1', async () => {
  assert(
    property(array(nat(2 ** 32 - 1)), (values) => {
      const buffer = new ByteBuffer(0)
      for (const value of values) buffer.varint(value)
      let at = 0
      for (const expected of values) {
        const { value, next } = readVarint(buffer.bytes, at)
        if (value !== expected) return false
        at = next
      }
      return at === buffer.length
    }),
  )
})

void test('what is appended stands in order, and clearing starts anew', async () => {
  assert(
    property(array(uint8Array()), array(uint8Array()), (first, second) => {
      const buffer = new ByteBuffer(1)
      for (const bytes of first) buffer.append(bytes)
      const before = buffer.copy()
      buffer.clear()
      for (const bytes of second) buffer.append(bytes)
      return Buffer.concat(first).equals(before) && Buffer.concat(second).equals(buffer.copy())
    }),
  )
})
