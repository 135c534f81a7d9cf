import { test } from 'tap'
import { numbersOf } from '../../../src/events/template-samples.js'

const counts = (values: readonly string[]): ReadonlyMap<string, number> =>
  new Map(values.map((value) => [value, values.filter((one) => one === value).length]))

test('percentiles of a variable are those of all its values', async (t) => {
  const hundred = Array.from({ length: 100 }, (_, i) => `${i + 1}ms`)
  t.same(numbersOf(counts(hundred)), { p50: 50, p95: 95, unit: 'ms' })
  t.same(numbersOf(counts(['3', '3', '3', '100'])), { p50: 3, p95: 100, unit: '' })
  t.same(numbersOf(counts(['-0.5'])), { p50: -0.5, p95: -0.5, unit: '' })
})

test('what is not a number of one unit has none', async (t) => {
  for (const values of [[], ['1', 'two'], ['1ms', '1s'], ['10.0.0.1'], ['1e9x9'], ['0x10']])
    t.equal(numbersOf(counts(values)), null, values.join())
})
