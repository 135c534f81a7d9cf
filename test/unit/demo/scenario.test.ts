import t from 'tap'

import {
  DRY_MS,
  LENGTH_MS,
  ROLLBACK_MS,
  ROLLOUT_MS,
  demoRecords,
} from '../../../src/demo/scenario.js'

const END_MS = Date.parse('2026-05-04T10:00:00.000Z')
const records = demoRecords(END_MS)
const sinceStart = (timestamp: string): number => Date.parse(timestamp) - (END_MS - LENGTH_MS)

t.test('an hour before a moment, in order, and the same each time', async (t) => {
  t.ok(records.length > 20_000 && records.length < 60_000, `${records.length}`)
  const times = records.map(({ timestamp }) => Date.parse(timestamp))
  t.same(
    times,
    times.toSorted((a, b) => a - b),
  )
  t.ok(sinceStart(records[0]?.timestamp ?? '') < 5000)
  t.ok(times.every((ms) => ms <= END_MS))
  t.same(demoRecords(END_MS), records)
  t.not(demoRecords(END_MS, 8)[100]?.message, records[100]?.message)
})

t.test('the incident is in eu-west, with the new version, while it is out', async (t) => {
  const failed = records.filter(({ message }) => message.startsWith('connection pool exhausted'))
  t.ok(failed.length > 100)
  for (const { timestamp, tags } of failed) {
    t.ok(sinceStart(timestamp) >= DRY_MS)
    t.match(tags, { region: 'eu-west' })
  }
  const during = failed.filter(({ timestamp }) => sinceStart(timestamp) < ROLLBACK_MS)
  t.ok(during.every(({ tags }) => tags?.['version'] === '2.8.1'))
  const early = records.filter(({ timestamp }) => sinceStart(timestamp) < ROLLOUT_MS)
  t.notOk(early.some(({ tags }) => tags?.['version'] === '2.8.1'))
  t.notOk(early.some(({ severity }) => severity === 'CRITICAL'))
})

t.test('a failed checkout is followed from gateway to payments by its trace', async (t) => {
  const failed = records.find(({ message }) => message.startsWith('payment for order'))
  const trace = records.filter(({ trace_id: id }) => id === failed?.trace_id)
  t.same(new Set(trace.map(({ source }) => source)), new Set(['gateway', 'checkout', 'payments']))
})
