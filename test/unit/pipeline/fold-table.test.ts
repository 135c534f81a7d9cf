import {
  array,
  assert,
  constantFrom,
  integer,
  maxSafeNat,
  oneof,
  property,
  tuple,
} from 'fast-check'
import { test } from 'tap'
import { FoldTable } from '../../../src/pipeline/fold-table.js'

// few enough that many are equal, in one part or in all
const part = oneof(constantFrom(0, 1, -1, 2 ** 31 - 1, -(2 ** 31)), integer())
const time = oneof(constantFrom(0, 1, 2 ** 30, 2 ** 31, 1_700_000_000_000), maxSafeNat())
const blocks = array(array(tuple(part, part, time), { maxLength: 3000, size: 'max' }), {
  maxLength: 3,
})

void test('equal messages of a block are counted as a Map counts them', async () => {
  const table = new FoldTable()
  assert(
    property(blocks, (all) => {
      for (const block of all) {
        table.clear()
        const expected = new Map<string, number>()
        for (const [lo, hi, timeMs] of block) {
          const key = `${lo} ${hi} ${timeMs}`
          const hash = Int32Array.of(lo, hi)
          const row = table.find(hash, timeMs)
          if (row >= 0 !== expected.has(key)) return false
          if (row >= 0) table.count(row)
          else table.add(hash, timeMs)
          expected.set(key, (expected.get(key) ?? 0) + 1)
        }
        const rows = [...expected].map(([key, n], row) => {
          const hash = `${table.hashes[row * 2]} ${table.hashes[row * 2 + 1]} ${table.times[row]}`
          return hash === key && table.counts[row] === n
        })
        if (table.rows !== expected.size || rows.includes(false)) return false
      }
      return true
    }),
    { numRuns: 60 },
  )
})
