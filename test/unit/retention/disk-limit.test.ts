import { test } from 'tap'
import { DAY_MS } from '../../../src/model/time.js'
import {
  createDiskLimit,
  heldLimit,
  type Disk,
  type DiskLimit,
} from '../../../src/retention/disk-limit.js'
import type { Partition } from '../../../src/retention/partitions.js'

const TODAY = 100

/** Each of 10 bytes on the disk, or 1 beside those in cold storage: table, day, class, bytes in cold storage. */
const STORED: readonly (readonly [Partition['table'], number, number | null, number?])[] = [
  ['events', 97, 7, 50],
  ['events', 98, 0],
  ['events', 99, 7],
  ['event_occurrences', 99, 7],
  ['events', 98, 7],
  ['dead_letters', 97, null],
  ['events', TODAY, 7],
]

/** @param disk Default: so small that events are what fills it. */
function rigOf(limit: DiskLimit, disk: Disk = { usedBytes: 0, bytes: 100 }) {
  let left: readonly Partition[] = STORED.map(([table, day, keptDays, coldBytes = 0]) => ({
    table,
    id: `${day}-${keptDays}`,
    dayMs: day * DAY_MS,
    keptDays,
    rows: 1,
    bytes: coldBytes === 0 ? 10 : coldBytes + 1,
    coldBytes,
  }))
  const drop = createDiskLimit({
    limit,
    disk: async () => disk,
    policy: { limited: (days) => (days === 0 ? 90 : Math.min(days, 90)) },
    partitions: {
      list: async () => left,
      drop: async (one) => {
        left = left.filter((other) => other !== one)
      },
    },
  })
  return async (): Promise<readonly string[] | string> => {
    const { dropped, nothingDropped } = await drop(TODAY * DAY_MS + 1)
    return nothingDropped ?? dropped.map(({ table, id }) => `${table} ${id}`)
  }
}

void test('the oldest day of the shortest retention goes first; today stays, and what is cold', async (t) => {
  const drop = rigOf({ kind: 'share', share: 0.85 }, { usedBytes: 10.3, bytes: 12 })
  t.same(await drop(), ['events 98-7'])
  t.same(await drop(), ['events 99-7', 'event_occurrences 99-7'])
  t.same(await drop(), ['dead_letters 97-null'])
  t.same(await drop(), ['events 98-0'])
  t.match(await drop(), /exceeded by the events of today, which are not dropped/)
})

void test('a share of the disk of a server is not held, and the log says so', async (t) => {
  const told: string[] = []
  const log = { warn: (_: object, text: string) => void told.push(text) }
  const share = { kind: 'share', share: 0.85 } as const
  const bytes = { kind: 'bytes', bytes: 60 } as const
  t.equal(heldLimit(share, true, log), share)
  t.equal(heldLimit(bytes, false, log), bytes)
  t.equal(heldLimit(null, false, log), null)
  t.same(told, [])
  t.equal(heldLimit(share, false, log), null)
  t.match(told, [/^MAX_DISK in per cent has no effect with CLICKHOUSE_URL/])
})

void test('nothing goes below the limit', async (t) => {
  const unasked = createDiskLimit({
    limit: { kind: 'share', share: 0.85 },
    disk: async () => ({ usedBytes: 85, bytes: 100 }),
    policy: { limited: (days) => days },
    partitions: {
      list: async () => {
        throw new Error('a ClickHouse at rest is asked')
      },
      drop: async () => {},
    },
  })
  t.same(await unasked(0), { dropped: [], nothingDropped: null })
  t.same(await rigOf({ kind: 'share', share: 0.85 }, { usedBytes: 85, bytes: 100 })(), [])
  t.same(await rigOf({ kind: 'bytes', bytes: 61 })(), [], 'what is cold does not count')
  const drop = rigOf({ kind: 'bytes', bytes: 60 })
  t.same(await drop(), ['events 98-7'])
  t.same(await drop(), [])
})

void test('events are dropped for others down to half of the limit, and no further', async (t) => {
  const drop = rigOf({ kind: 'share', share: 0.8 }, { usedBytes: 90, bytes: 140 })
  t.same(await drop(), [])
  const full = rigOf({ kind: 'share', share: 0.8 }, { usedBytes: 134, bytes: 140 })
  t.same(await full(), ['events 98-7'])
  t.equal(
    await full(),
    'the disk is 96 % full, above MAX_DISK=80%, and events take 36 % of it: other files fill it, so no events are dropped',
  )
})
