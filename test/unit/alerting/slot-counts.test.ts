import fc from 'fast-check'
import { test } from 'tap'
import { SlotCounts } from '../../../src/alerting/slot-counts.js'

void test('sums are those of adding up every slot', async (t) => {
  const slot = fc.integer({ min: 0, max: 30 })
  const step = fc.record({ slot, count: fc.integer({ min: 1, max: 9 }), forget: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), slot, slot, (steps, a, b) => {
      const counts = new SlotCounts()
      const model = new Map<number, number>()
      for (const { slot: at, count, forget } of steps) {
        counts.add(at, count)
        model.set(at, (model.get(at) ?? 0) + count)
        if (!forget) continue
        counts.forgetBefore(at)
        for (const known of model.keys()) if (known < at) model.delete(known)
      }
      const [from, until] = a < b ? [a, b] : [b, a]
      const sum = [...model].reduce((all, [at, n]) => (at >= from && at < until ? all + n : all), 0)
      return (
        counts.sum(from, until) === sum &&
        counts.at(a) === (model.get(a) ?? null) &&
        counts.isEmpty === (model.size === 0)
      )
    }),
  )
  t.pass('compared with a model')
})
