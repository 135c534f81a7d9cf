import { test } from 'tap'
import { alignDown, monthBefore, startOfWindow } from '../../../src/model/window.js'

const at = (text: string): number => Date.parse(text) / 1000

void test('a month before is the same day, or the last of a shorter month', async (t) => {
  const before = (text: string): string => new Date(monthBefore(at(text)) * 1000).toISOString()
  t.equal(before('2024-05-15T10:11:12Z'), '2024-04-15T10:11:12.000Z')
  t.equal(before('2024-03-31T23:59:59Z'), '2024-02-29T23:59:59.000Z', 'leap year')
  t.equal(before('2023-03-29T00:00:00Z'), '2023-02-28T00:00:00.000Z')
  t.equal(before('2024-01-31T00:00:01Z'), '2023-12-31T00:00:01.000Z', 'over the year')
  t.equal(before('2024-07-31T12:00:00Z'), '2024-06-30T12:00:00.000Z')
  t.equal(before('1970-01-15T00:00:00Z'), '1969-12-15T00:00:00.000Z')
})

void test('a window begins its length before its end', async (t) => {
  const end = at('2024-03-31T12:00:00Z')
  t.equal(end - startOfWindow('5s', end), 5)
  t.equal(end - startOfWindow('24h', end), 86_400)
  t.equal(end - startOfWindow('30d', end), 30 * 86_400)
  t.equal(startOfWindow('1mo', end), at('2024-02-29T12:00:00Z'))
})

void test('times are aligned to multiples of the step, before 1970 too', async (t) => {
  t.equal(alignDown(125, 60), 120)
  t.equal(alignDown(120, 60), 120)
  t.equal(alignDown(-1, 60), -60)
})
