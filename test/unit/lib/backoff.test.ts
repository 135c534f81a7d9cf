import fc from 'fast-check'
import t from 'tap'
import { backoffMs } from '../../../src/lib/backoff.js'

const range = { baseMs: 100, maxMs: 5_000 }

t.test('waits double up to `maxMs`', async (t) => {
  const longest = (attempt: number): number => backoffMs(attempt, range, () => 0)
  t.same([1, 2, 3, 6, 7, 1_000].map(longest), [100, 200, 400, 3_200, 5_000, 5_000])
  t.equal(longest(0), 100)
})

t.test('jitter shortens a wait by at most half', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (attempt, r) => {
        const full = backoffMs(attempt, range, () => 0)
        const some = backoffMs(attempt, range, () => r)
        return some <= full && some >= full / 2
      },
    ),
  )
})
