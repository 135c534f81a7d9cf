import { array, assert, integer, property, tuple } from 'fast-check'
import { test } from 'tap'
import { RoomPool, type Room } from '../../../src/lib/room-pool.js'

const MIB = 1024 * 1024

const viewOf = ({ buffer, at }: Room, bytes: number): Uint8Array =>
  new Uint8Array(buffer, at, bytes)

void test('parts lie one behind the other, and what is free is used again', async (t) => {
  const pool = new RoomPool(64 * MIB)
  const first = pool.lend(1000)
  pool.keep(first, 1000)
  const second = pool.lend(1000)
  t.equal(second.buffer, first.buffer)
  t.equal(second.at, 1024)
  const other = pool.lend(1000)
  t.not(other.buffer, second.buffer, 'a buffer is lent to one at a time')
  pool.keep(second, 0)
  t.equal(pool.lend(1000).at, 1024, 'nothing was kept of it')
  pool.release(first)
  pool.keep(other, 0)
  t.equal(pool.lend(20 * MIB).bytes, 32 * MIB, 'one for what is larger than the others')
})

void test('what waits for use is bounded', async (t) => {
  const pool = new RoomPool(16 * MIB)
  const rooms = [1, 2, 3].map(() => pool.lend(5 * MIB))
  for (const room of rooms) pool.keep(room, 5 * MIB)
  t.same([pool.bytes, pool.freeBytes], [24 * MIB, 0])
  for (const room of rooms) pool.release(room)
  t.same([pool.bytes, pool.freeBytes], [16 * MIB, 16 * MIB])
})

void test('nobody gives back what is not theirs', async (t) => {
  const pool = new RoomPool(MIB)
  const room = pool.lend(10)
  pool.keep(room, 10)
  t.throws(() => pool.keep(room, 10), { message: 'bug' })
  pool.release(room)
  t.throws(() => pool.release(room), { message: 'bug' })
})

void test('nobody writes into the part of another', async () => {
  const steps = array(tuple(integer({ min: 0, max: 9 }), integer({ min: 1, max: 3 * MIB })), {
    maxLength: 60,
  })
  assert(
    property(steps, (all) => {
      const pool = new RoomPool(16 * MIB)
      const lent: { room: Room; bytes: number; mark: number }[] = []
      const kept: typeof lent = []
      const isWhole = ({ room, bytes, mark }: (typeof lent)[number]): boolean => {
        const view = viewOf(room, bytes)
        return view[0] === mark && view.at(-1) === mark
      }
      return all.every(([step, bytes], i) => {
        if (step < 4) {
          const room = pool.lend(bytes)
          for (const at of [0, bytes - 1]) viewOf(room, bytes)[at] = i + 1
          lent.push({ room, bytes, mark: i + 1 })
          return room.bytes >= bytes && room.at % 64 === 0
        }
        if (step < 8) {
          const one = lent.splice(bytes % Math.max(1, lent.length), 1)[0]
          if (one === undefined) return true
          const isKept = step > 4
          pool.keep(one.room, isKept ? one.bytes : 0)
          if (isKept) kept.push(one)
          return isWhole(one)
        }
        const one = kept.splice(bytes % Math.max(1, kept.length), 1)[0]
        if (one === undefined) return true
        pool.release(one.room)
        return isWhole(one) && kept.every(isWhole) && lent.every(isWhole)
      })
    }),
    { numRuns: 100 },
  )
})
