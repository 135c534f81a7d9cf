import t from 'tap'

import type { Histogram } from '../../../src/ui/explore/answers.js'
import { colorsOf, orderOf, partOf } from '../../../src/ui/explore/stack.js'

const histogramOf = (by: string, value: string): Histogram => ({
  line: '',
  start: '2026-11-21T09:00:00.000Z',
  end: '2026-11-21T09:02:00.000Z',
  step_s: 60,
  total: 3,
  unique_events: 3,
  by,
  values: [{ value, count: 3 }],
  buckets: [
    { t: '2026-11-21T09:00:00.000Z', total: 3, values: { [value]: 3 } },
    { t: '2026-11-21T09:01:00.000Z', total: 0, values: {} },
  ],
  answered_from: 'events',
  complete_from: '2026-11-21T09:00:00.000Z',
})

void t.test(
  'bars can be stacked by a field or value that is named like a member of objects',
  async (t) => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'region']) {
      const histogram = histogramOf(name, name)
      t.same(orderOf(histogram), [name])
      t.same([...colorsOf(histogram)], [[name, 'var(--series-0)']])
      t.same(
        histogram.buckets.map((bucket) => partOf(bucket, name)),
        [3, 0],
        name,
      )
    }
  },
)

void t.test('severities have their own order and colours', async (t) => {
  const histogram = histogramOf('severity', 'ERROR')
  t.same(orderOf(histogram), ['ERROR'])
  t.same([...colorsOf(histogram)], [['ERROR', 'var(--error)']])
})
