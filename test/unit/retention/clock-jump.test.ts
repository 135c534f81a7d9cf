import { test } from 'tap'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/model/time.js'
import { createClockJump } from '../../../src/retention/clock-jump.js'

void test('a clock that is put forward is noticed once, each time', (t) => {
  const clock = { nowMs: 0, passedMs: 5 }
  const hasJumped = createClockJump(
    () => clock.nowMs,
    () => clock.passedMs,
  )
  const after = (passedMs: number, jumpMs: number): boolean => {
    clock.passedMs += passedMs
    clock.nowMs += passedMs + jumpMs
    return hasJumped()
  }
  t.notOk(after(30 * DAY_MS, 0), 'time that passed')
  t.notOk(after(HOUR_MS, 59 * MINUTE_MS), 'a small step')
  t.ok(after(HOUR_MS, 365 * DAY_MS))
  t.notOk(after(HOUR_MS, 0), 'it stayed for an hour')
  t.notOk(after(HOUR_MS, -365 * DAY_MS), 'put back')
  t.ok(after(0, 2 * HOUR_MS))
  t.end()
})
