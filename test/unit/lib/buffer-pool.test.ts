import { array, assert, boolean, integer, property, tuple } from 'fast-check'
import { test } from 'tap'
import { BufferPool } from '../../../src/lib/buffer-pool.js'

void test('a buffer is large enough, in use once at a time, and used again after its release', async (t) => {
  const pool = new BufferPool(4 * 1024 * 1024)
  const first = pool.acquire(1024 * 1024)
  t.equal(first.byteLength, 1024 * 1024)
  t.not(pool.acquire(1024 * 1024), first)
  pool.release(first)
  t.equal(pool.acquire(600_000), first)
  t.equal(pool.acquire(100).byteLength, 100, 'a small buffer is allocated at its size')
  t.equal(pool.acquire(40 * 1024 * 1024).byteLength, 40 * 1024 * 1024, 'so is a huge one')
  t.equal(pool.acquire(0).byteLength, 0)

  const steps = array(tuple(boolean(), integer({ min: 0, max: 17 * 1024 * 1024 })), {
    maxLength: 40,
  })
  assert(
    property(steps, (all) => {
      const shared = new BufferPool(2 * 1024 * 1024)
      const inUse = new Set<ArrayBufferLike>()
      return all.every(([isRelease, bytes]) => {
        const [oldest] = inUse
        if (isRelease && oldest !== undefined) {
          inUse.delete(oldest)
          shared.release(oldest)
          return true
        }
        const buffer = shared.acquire(bytes)
        const ok = buffer.byteLength >= bytes && !inUse.has(buffer)
        inUse.add(buffer)
        return ok
      })
    }),
    { numRuns: 50 },
  )
})

const MIB = 1024 * 1024

void test('the bytes of free buffers are bounded, and unused sizes are dropped first', async (t) => {
  const pool = new BufferPool(2 * MIB)
  const large = [1, 2, 3].map(() => pool.acquire(MIB))
  t.same([pool.bytes, pool.freeBytes], [3 * MIB, 0])
  for (const buffer of large) pool.release(buffer)
  t.same([pool.bytes, pool.freeBytes], [2 * MIB, 2 * MIB])
  const small = Array.from({ length: 16 }, () => pool.acquire(128 * 1024))
  for (const buffer of small) pool.release(buffer)
  t.same([pool.bytes, pool.freeBytes], [2 * MIB, 2 * MIB])
  const again = small.map(() => pool.acquire(128 * 1024))
  t.ok(
    again.every((buffer) => small.includes(buffer)),
    'the unused size is dropped',
  )
})

void test('a trim drops the free buffers only', async (t) => {
  const pool = new BufferPool(4 * MIB)
  const [kept, ...free] = [1, 2, 3].map(() => pool.acquire(MIB))
  for (const buffer of free) pool.release(buffer)
  pool.trim()
  t.same([pool.bytes, pool.freeBytes], [MIB, 0])
  t.notOk(free.includes(pool.acquire(MIB)))
  pool.release(kept ?? new ArrayBuffer(0))
  t.equal(pool.acquire(MIB), kept, 'the pool goes on')
})
