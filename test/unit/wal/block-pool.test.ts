import { array, assert, integer, property, tuple } from 'fast-check'
import { test } from 'tap'
import { BlockPool, type BlockSlice } from '../../../src/wal/block-pool.js'

const MIB = 1024 * 1024

const viewOf = ({ buffer, at }: BlockSlice, bytes: number): Uint8Array =>
  new Uint8Array(buffer, at, bytes)

void test('slices lie one behind the other, and released memory is used again', async (t) => {
  const pool = new BlockPool(64 * MIB)
  const first = pool.acquire(1000)
  pool.retain(first, 1000)
  const second = pool.acquire(1000)
  t.equal(second.buffer, first.buffer)
  t.equal(second.at, 1024)
  const other = pool.acquire(1000)
  t.not(other.buffer, second.buffer, 'a buffer has one acquired slice at a time')
  pool.release(second)
  t.equal(pool.acquire(1000).at, 1024, 'a slice that was not retained takes no space')
  pool.release(first)
  pool.release(other)
  t.equal(pool.acquire(20 * MIB).bytes, 32 * MIB, 'a large slice has a buffer of its own')
})

void test('the bytes of free buffers are bounded', async (t) => {
  const pool = new BlockPool(16 * MIB)
  const slices = [1, 2, 3].map(() => pool.acquire(5 * MIB))
  for (const slice of slices) pool.retain(slice, 5 * MIB)
  t.same([pool.bytes, pool.freeBytes], [24 * MIB, 0])
  for (const slice of slices) pool.release(slice)
  t.same([pool.bytes, pool.freeBytes], [16 * MIB, 16 * MIB])
})

void test('a trim drops the free buffers only', async (t) => {
  const pool = new BlockPool(64 * MIB)
  const [kept, free] = [pool.acquire(5 * MIB), pool.acquire(5 * MIB)]
  pool.retain(kept, 5 * MIB)
  pool.release(free)
  pool.trim()
  t.same([pool.bytes, pool.freeBytes], [8 * MIB, 0])
  pool.release(kept)
  t.equal(pool.acquire(5 * MIB).buffer, kept.buffer, 'the pool goes on')
})

void test('a slice is retained once and released once', async (t) => {
  const pool = new BlockPool(MIB)
  const slice = pool.acquire(10)
  pool.retain(slice, 10)
  t.throws(() => pool.retain(slice, 10), { message: 'bug' })
  pool.release(slice)
  t.throws(() => pool.release(slice), { message: 'bug' })
})

interface Written {
  readonly slice: BlockSlice
  readonly bytes: number
  readonly value: number
}

void test('slices never overlap', async () => {
  const steps = array(tuple(integer({ min: 0, max: 9 }), integer({ min: 1, max: 3 * MIB })), {
    maxLength: 60,
  })
  assert(
    property(steps, (all) => {
      const pool = new BlockPool(16 * MIB)
      const acquired: Written[] = []
      const retained: Written[] = []
      const isIntact = ({ slice, bytes, value }: Written): boolean => {
        const view = viewOf(slice, bytes)
        return view[0] === value && view.at(-1) === value
      }
      return all.every(([step, bytes], i) => {
        if (step < 4) {
          const slice = pool.acquire(bytes)
          for (const at of [0, bytes - 1]) viewOf(slice, bytes)[at] = i + 1
          acquired.push({ slice, bytes, value: i + 1 })
          return slice.bytes >= bytes && slice.at % 64 === 0
        }
        if (step < 8) {
          const one = acquired.splice(bytes % Math.max(1, acquired.length), 1)[0]
          if (one === undefined) return true
          if (step === 4) pool.release(one.slice)
          else {
            pool.retain(one.slice, one.bytes)
            retained.push(one)
          }
          return isIntact(one)
        }
        const one = retained.splice(bytes % Math.max(1, retained.length), 1)[0]
        if (one === undefined) return true
        pool.release(one.slice)
        return isIntact(one) && retained.every(isIntact) && acquired.every(isIntact)
      })
    }),
    { numRuns: 100 },
  )
})
