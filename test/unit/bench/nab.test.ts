import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { gradeNab, readNab, toSeries } from '../../../bench/insights/nab.js'
import { precisionOf, recallOf } from '../../../bench/insights/grade.js'
import { seeded } from '../../support/landing.js'
import { MINUTE_MS, HOUR_MS } from '../../../src/model/time.js'

const START = Date.parse('2026-03-02T05:00:00Z')
const time = (hour: number, minute = 0): string =>
  new Date(START + hour * HOUR_MS + minute * MINUTE_MS).toISOString().slice(0, 19).replace('T', ' ')

/** Six weeks of half hours with a rhythm, and a burst of four hours in the last one. */
function csv(): string {
  const random = seeded(5)
  const lines = ['timestamp,value']
  for (let hour = 0; hour < 42 * 24; hour++)
    for (const minute of [0, 30]) {
      const usual = 300 + 150 * Math.cos((hour % 24) / 4) + 20 * random()
      const burst = hour >= 38 * 24 && hour < 38 * 24 + 4 ? 4000 : 0
      lines.push(`${time(hour, minute)},${Math.round(usual + burst)}`)
    }
  return `${lines.join('\r\n')}\r\n`
}
const windows = [[`${time(38 * 24 - 6)}.000000`, `${time(38 * 24 + 10)}.000000`]] as const

t.test('a series of the benchmark is summed by hour, with its windows', async (t) => {
  const { counts, labels, startHour, from } = toSeries('realTweets/x.csv', csv(), windows)
  t.equal(startHour * HOUR_MS, Date.parse('2026-03-02T00:00:00Z'), 'from a midnight on')
  t.same(Array.from(counts.slice(0, 5)), [0, 0, 0, 0, 0])
  const burst = counts[5 + 38 * 24] ?? 0
  t.ok(burst > 8000 && burst < 9000, 'two half hours')
  t.same(labels, [{ from: 5 + 38 * 24 - 6, to: 5 + 38 * 24 + 11 }])
  t.equal(from, 10 * 24)
})

t.test('a checkout is read and graded', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'nab-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  t.throws(() => readNab(folder), /no labels\/combined_windows\.json/)
  for (const name of ['labels', 'data/realTweets', 'data/artificialNoAnomaly'])
    mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, 'data/realTweets/x.csv'), csv())
  writeFileSync(join(folder, 'data/artificialNoAnomaly/y.csv'), csv())
  const file = join(folder, 'labels/combined_windows.json')
  writeFileSync(file, JSON.stringify({ 'realTweets/x.csv': windows }))
  const all = readNab(folder)
  t.same(
    all.map(({ name }) => name),
    ['realTweets/x'],
    'counts only',
  )
  const [ours] = gradeNab(all)
  t.equal(ours?.name, 'insights')
  t.same(
    ours?.sets.map((set) => [precisionOf(set), recallOf(set)]),
    [[1, 1]],
  )
})
