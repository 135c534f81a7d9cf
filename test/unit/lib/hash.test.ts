import { assert, nat, property, uint8Array } from 'fast-check'
import { test } from 'tap'
import { hashBytes, hashId } from '../../../src/lib/hash.js'

const hashOf = (bytes: Uint8Array, seed: readonly [number, number] = [1, 2]): string => {
  const out = Int32Array.from(seed)
  hashBytes(bytes, 0, bytes.length, out)
  return out.join()
}

void test('a range hashes the same wherever it stands', async () => {
  assert(
    property(uint8Array({ maxLength: 60 }), nat(9), nat(9), (bytes, before, after) => {
      const out = Int32Array.from([1, 2])
      const wide = Buffer.concat([Buffer.alloc(before, 7), bytes, Buffer.alloc(after, 7)])
      hashBytes(wide, before, before + bytes.length, out)
      return out.join() === hashOf(bytes)
    }),
  )
})

void test('one changed bit, one byte more and another seed change both hashes', async () => {
  assert(
    property(uint8Array({ minLength: 1, maxLength: 60 }), nat(), nat(7), (bytes, index, bit) => {
      const flipped = Uint8Array.from(bytes)
      const at = index % bytes.length
      flipped[at] = (flipped[at] ?? 0) ^ (1 << bit)
      const [lo, hi] = hashOf(bytes).split(',')
      const others = [
        hashOf(flipped),
        hashOf(Buffer.concat([bytes, Buffer.alloc(1)])),
        hashOf(bytes, [3, 4]),
      ]
      return others.every((other) => other.split(',')[0] !== lo && other.split(',')[1] !== hi)
    }),
  )
})

void test('a million short texts have a million pairs', async (t) => {
  const seen = new Set<number>()
  const out = new Int32Array(2)
  for (let i = 0; i < 1_000_000; i++) {
    const bytes = Buffer.from(`request ${i}`)
    out[0] = 5
    out[1] = 6
    hashBytes(bytes, 0, bytes.length, out)
    seen.add((out[0] ?? 0) * 2 ** 21 + ((out[1] ?? 0) >>> 11))
  }
  t.equal(seen.size, 1_000_000)
})

void test('the id of a text is the same in every process', async (t) => {
  t.equal(hashId('nginx\0GET <*>'), '2fed4d826418edd3')
  t.not(hashId('a'), hashId('b'))
})
