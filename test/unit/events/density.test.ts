import { test } from 'tap'
import type { Store } from '../../../src/clickhouse/client.js'
import { createDensityReader } from '../../../src/events/density.js'

const MINUTE_S = 60
const HOUR_S = 3_600
const START_S = 100 * HOUR_S

const bucket = (start_s: number, length_s: number, occurrences: number) => ({
  start_s,
  length_s,
  occurrences,
})

void test('a time range is as long as it has to be to hold so many events', async (t) => {
  const buckets = [
    bucket(START_S + MINUTE_S, MINUTE_S, 600),
    bucket(START_S, MINUTE_S, 60),
    bucket(START_S - 2 * HOUR_S, HOUR_S, 3_600),
  ]
  let asked = 0
  const query = async (): Promise<unknown[]> => {
    asked++
    return buckets
  }
  // The reader asks one query only.
  const reader = createDensityReader({ query: query as Store['query'] })
  const density = await reader.read({})
  const ms = (s: number): number => (START_S + s) * 1000
  t.equal(density.startOf(Infinity, 300), ms(90), 'half of the newest minute')
  t.equal(density.startOf(ms(90), 300), ms(60), 'before a time')
  t.equal(density.startOf(Infinity, 630), ms(30), 'of two minutes')
  t.equal(density.startOf(Infinity, 660 + 1_800), ms(-1.5 * HOUR_S), 'across an empty hour')
  t.equal(density.startOf(Infinity, 1_000_000), 0, 'more than are known')
  t.equal(density.count(0, Infinity), 4_260)
  t.equal(density.count(ms(30), ms(90)), 330)
  await reader.read({})
  t.equal(asked, 1, 'the counts are remembered')
})
