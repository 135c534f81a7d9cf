import fc from 'fast-check'
import { test } from 'tap'
import { HourCounts } from '../../../src/insights/hour-counts.js'

const START = 20_000 * 24
const HOURS = 33 * 24

const put = (
  counts: HourCounts,
  hours: readonly number[],
  rows: readonly (readonly [key: string, hour: number, n: number])[],
  isNew = false,
): void => {
  const replacement = counts.replace(hours, () => isNew)
  for (const [key, hour, n] of rows)
    replacement.add(counts.slotOf(key), {
      from: START,
      at: [hour - START],
      n: [n],
      begin: 0,
      end: 1,
    })
  replacement.end()
}

const read = (counts: HourCounts, key: string, from: number, length: number): number[] => {
  const into = new Float64Array(length)
  counts.addTo(into, counts.slotOf(key), from)
  return [...into]
}

test('hours that are replaced hold what was counted last, whatever the frame', async (t) => {
  const hour = fc.integer({ min: 0, max: HOURS - 1 })
  const rows = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), hour, fc.nat(1000)))
  fc.assert(
    fc.property(fc.array(rows, { minLength: 1, maxLength: 6 }), (looks) => {
      const counts = new HourCounts()
      const model = new Map<string, Map<number, number>>()
      for (const [look, told] of looks.entries()) {
        const shift = look * 24 + START
        const hours = [...new Set(told.map(([, at]) => at + shift))].toSorted((a, b) => a - b)
        for (const known of model.values()) for (const each of hours) known.delete(each)
        put(
          counts,
          hours,
          told.map(([key, at, n]) => [key, at + shift, n] as const),
        )
        for (const [key, at, n] of told) {
          const known = model.get(key) ?? new Map<number, number>()
          known.set(at + shift, (known.get(at + shift) ?? 0) + n)
          model.set(key, known)
        }
        for (const [key, known] of model) {
          const inFrame = Array.from({ length: HOURS }, (_, i) => known.get(shift + i) ?? 0)
          const gone = Array.from({ length: 24 }, (_, i) => shift + HOURS + i)
          put(counts, gone, [])
          t.same(read(counts, key, shift, HOURS), inFrame)
        }
      }
    }),
    { numRuns: 30 },
  )
})

test('parts of an hour add up, also negative ones', async (t) => {
  const counts = new HourCounts()
  put(
    counts,
    [START],
    [
      ['a', START, -5],
      ['a', START, 9],
    ],
  )
  t.same(read(counts, 'a', START, 2), [4, 0])
})

test('a series tells from which hour on it has changed', async (t) => {
  const counts = new HourCounts()
  const hours = [START, START + 1, START + 2]
  const rows = hours.flatMap((hour) => [['a', hour, 3] as const, ['b', hour, 4] as const])
  put(counts, hours, rows, true)
  const changed = (key: string): number => counts.changedFrom(counts.slotOf(key))
  t.ok(changed('a') <= START, 'a new series is new from the first hour on')
  counts.forgetChanges()
  put(counts, hours, rows)
  t.ok(changed('a') > START + HOURS, 'the same counts again')
  put(
    counts,
    [START + 1],
    [
      ['a', START + 1, 3],
      ['b', START + 1, 5],
    ],
  )
  t.ok(changed('a') > START + HOURS)
  t.equal(changed('b'), START + 1)
  put(counts, [START + 3], [], true)
  t.equal(changed('a'), START + 3, 'an hour that was not counted before')
  t.equal(changed('b'), START + 1)
})

test('many series and the first days of 1970 fit', async (t) => {
  const counts = new HourCounts()
  for (let i = 0; i < 1100; i++) {
    const replacement = counts.replace([3], () => false)
    replacement.add(counts.slotOf(`s${i}`), { from: 0, at: [3], n: [i], begin: 0, end: 1 })
    replacement.end()
  }
  t.equal(counts.size, 1100)
  t.same(read(counts, 's1099', -24 * 32, HOURS).slice(32 * 24, 32 * 24 + 4), [0, 0, 0, 1099])
})
