import { test } from 'tap'
import { array, assert, integer, oneof, property, record } from 'fast-check'
import { spend, type WindowLog } from '../../../src/coordination/sliding-window.js'

// Gaps short enough to share an entry, and gaps that let entries expire.
const gaps = oneof(integer({ min: 0, max: 60 }), integer({ min: 0, max: 3_000 }))
const anySteps = array(record({ afterMs: gaps, cost: integer({ min: 1, max: 40 }) }), {
  maxLength: 300,
  size: 'max',
})

void test('no span of the window ever holds more than the limit', async () => {
  assert(
    property(anySteps, integer({ min: 1, max: 2_000 }), (steps, limit) => {
      const log: WindowLog = []
      const granted: { atMs: number; cost: number }[] = []
      let nowMs = 1_000
      for (const { afterMs, cost } of steps) {
        nowMs += afterMs
        if (!spend(log, { nowMs, limit, windowMs: 10_000, cost }).allowed) continue
        granted.push({ atMs: nowMs, cost })
        const inWindow = granted.filter((g) => g.atMs > nowMs - 10_000)
        if (inWindow.reduce((sum, g) => sum + g.cost, 0) > limit) return false
      }
      return log.length <= 3 * 257
    }),
  )
})

void test('up to 256 the window refuses only what would exceed the limit', async () => {
  assert(
    property(anySteps, integer({ min: 1, max: 256 }), (steps, limit) => {
      const log: WindowLog = []
      const granted: { atMs: number; cost: number }[] = []
      let nowMs = 1_000
      for (const { afterMs, cost } of steps) {
        nowMs += afterMs
        const spent = granted.reduce((sum, g) => sum + (g.atMs > nowMs - 10_000 ? g.cost : 0), 0)
        const { allowed } = spend(log, { nowMs, limit, windowMs: 10_000, cost })
        if (allowed !== spent + cost <= limit) return false
        if (allowed) granted.push({ atMs: nowMs, cost })
      }
      return true
    }),
  )
})

void test('after retry-after seconds the same cost fits', async () => {
  assert(
    property(anySteps, integer({ min: 40, max: 2_000 }), (steps, limit) => {
      const log: WindowLog = []
      let nowMs = 1_000
      for (const { afterMs, cost } of steps) {
        nowMs += afterMs
        const window = { limit, windowMs: 10_000, cost }
        const verdict = spend(log, { nowMs, ...window })
        if (verdict.allowed) continue
        if (verdict.retryAfterS < 1 || verdict.retryAfterS > 10) return false
        const later = nowMs + verdict.retryAfterS * 1_000
        if (!spend([...log], { nowMs: later, ...window }).allowed) return false
      }
      return true
    }),
  )
})

void test('units that share an entry leave the window with the last of them', async (t) => {
  const log: WindowLog = []
  const at = (nowMs: number, cost: number) =>
    spend(log, { nowMs, limit: 300, windowMs: 10_000, cost }).allowed
  t.equal(at(1_000, 1), true)
  t.equal(at(1_030, 299), true)
  t.equal(log.length, 3, 'one entry')
  t.equal(at(11_000, 2), false)
  t.equal(at(11_029, 2), false)
  t.equal(at(11_030, 300), true)
})
