import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { whileAny } from '../../../src/lib/while-any.js'
import { eventually } from '../../support/live-service.js'

void test('work is repeated while there is any, and nothing looks for it at rest', async (t) => {
  let [left, looks] = [0, 0]
  const some = whileAny({
    everyMs: 5,
    any: () => {
      looks++
      return left > 0
    },
    work: () => left--,
  })
  for (let time = 1; time <= 2; time++) {
    left = 3
    some.begin()
    some.begin()
    await eventually(
      async () => looks,
      (now) => now >= time * 4,
    )
    await sleep(50)
    t.same([left, looks], [0, time * 4], 'three times with work, once without')
  }
  left = 3
  some.begin()
  some.end()
  await sleep(50)
  t.equal(left, 3)
})
