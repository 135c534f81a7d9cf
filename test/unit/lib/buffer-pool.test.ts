import { array, assert, boolean, integer, property, tuple } from 'fast-check'
import { test } from 'tap'
import { BufferPool } from '../../../src/lib/buffer-pool.js'

void test('a buffer is large enough, nobody else has it, and it is used again', async (t) => {
  const pool = new BufferPool(4 * 1024 * 1024)
  const first = pool.take(1024 * 1024)
  t.equal(first.byteLength, 1024 * 1024)
  t.not(pool.take(1024 * 1024), first)
  pool.give(first)
  t.equal(pool.take(600_000), first)
  t.equal(pool.take(100).byteLength, 100, 'a small one is made for its size')
  t.equal(pool.take(20 * 1024 * 1024).byteLength, 20 * 1024 * 1024, 'so is a huge one')
  t.equal(pool.take(0).byteLength, 0)

  const steps = array(tuple(boolean(), integer({ min: 0, max: 17 * 1024 * 1024 })), {
    maxLength: 40,
  })
  assert(
    property(steps, (all) => {
      const shared = new BufferPool(2 * 1024 * 1024)
      const held = new Set<ArrayBufferLike>()
      return all.every(([gives, bytes]) => {
        const [oldest] = held
        if (gives && oldest !== undefined) {
          held.delete(oldest)
          shared.give(oldest)
          return true
        }
        const buffer = shared.take(bytes)
        const ok = buffer.byteLength >= bytes && !held.has(buffer)
        held.add(buffer)
        return ok
      })
    }),
    { numRuns: 50 },
  )
})

const MIB = 1024 * 1024

void test('what waits for use is bounded, and of the sizes that are asked for', async (t) => {
  const pool = new BufferPool(2 * MIB)
  const large = [1, 2, 3].map(() => pool.take(MIB))
  t.same([pool.bytes, pool.freeBytes], [3 * MIB, 0])
  for (const buffer of large) pool.give(buffer)
  t.same([pool.bytes, pool.freeBytes], [2 * MIB, 2 * MIB])
  const small = Array.from({ length: 16 }, () => pool.take(128 * 1024))
  for (const buffer of small) pool.give(buffer)
  t.same([pool.bytes, pool.freeBytes], [2 * MIB, 2 * MIB])
  const again = small.map(() => pool.take(128 * 1024))
  t.ok(
    again.every((buffer) => small.includes(buffer)),
    'what nobody asks for any more made room for them',
  )
})
