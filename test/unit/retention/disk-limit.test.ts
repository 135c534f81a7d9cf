import { test } from 'tap'
import { DAY_MS } from '../../../src/model/time.js'
import { createDiskLimit, type DiskLimit } from '../../../src/retention/disk-limit.js'
import type { Partition } from '../../../src/retention/partitions.js'

const TODAY = 100

/** Each of 10 bytes: table, day, class. */
const STORED: readonly (readonly [Partition['table'], number, number | null])[] = [
  ['events', 98, 0],
  ['events', 99, 7],
  ['event_occurrences', 99, 7],
  ['events', 98, 7],
  ['dead_letters', 97, null],
  ['events', TODAY, 7],
]

function rigOf(limit: DiskLimit, usedShare = 0) {
  let left: readonly Partition[] = STORED.map(([table, day, keptDays]) => ({
    table,
    id: `${day}-${keptDays}`,
    dayMs: day * DAY_MS,
    keptDays,
    rows: 1,
    bytes: 10,
  }))
  const drop = createDiskLimit({
    limit,
    usedShare: async () => usedShare,
    policy: { limited: (days) => (days === 0 ? 90 : Math.min(days, 90)) },
    partitions: {
      list: async () => left,
      drop: async (one) => {
        left = left.filter((other) => other !== one)
      },
    },
  })
  return async (): Promise<readonly string[]> =>
    (await drop(TODAY * DAY_MS + 1)).map(({ table, id }) => `${table} ${id}`)
}

void test('the oldest day of the shortest retention goes first, and today stays', async (t) => {
  const drop = rigOf({ kind: 'share', share: 0.85 }, 0.86)
  t.same(await drop(), ['events 98-7'])
  t.same(await drop(), ['events 99-7', 'event_occurrences 99-7'])
  t.same(await drop(), ['dead_letters 97-null'])
  t.same(await drop(), ['events 98-0'])
  t.same(await drop(), [])
})

void test('nothing goes below the limit', async (t) => {
  t.same(await rigOf({ kind: 'share', share: 0.85 }, 0.85)(), [])
  t.same(await rigOf({ kind: 'bytes', bytes: 60 })(), [])
  const drop = rigOf({ kind: 'bytes', bytes: 59 })
  t.same(await drop(), ['events 98-7'])
  t.same(await drop(), [])
})
