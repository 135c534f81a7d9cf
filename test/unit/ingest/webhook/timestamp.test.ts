import { assert, date, property } from 'fast-check'
import { test } from 'tap'
import { eventTimeMs, parseTime } from '../../../../src/ingest/webhook/timestamp.js'
import { DAY_MS } from '../../../../src/model/time.js'

const at = Date.UTC(2026, 10, 21, 9, 28, 19)

void test('all forms of platforms are read as the same time', async (t) => {
  const forms = [
    '2026-11-21 09:28:19 UTC',
    '2026-11-21T09:28:19Z',
    '2026-11-21T09:28:19.000Z',
    '2026-11-21T11:28:19+02:00',
    '2026-11-21T01:28:19-0800',
    '2026-11-21 11:28:19 +0200',
    '2026-11-21 10:28:19+01',
    '2026-11-21T14:58:19.000000000+05:30',
    '2026-11-21T09:28:19',
    ' 2026-11-21t09:28:19z ',
  ]
  for (const form of forms) t.equal(parseTime(form), at, form)
  t.equal(parseTime('2026-11-21T09:28:19.1Z'), at + 100)
  t.equal(parseTime('2026-11-21T09:28:19,123456Z'), at + 123)
  t.equal(parseTime('2026-11-21'), Date.UTC(2026, 10, 21))
  t.equal(parseTime('2024-02-29 00:00 UTC'), Date.UTC(2024, 1, 29))
})

void test('a text that is no time gives null', async (t) => {
  const broken = [
    '',
    'yesterday',
    '2026-13-01T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2023-02-29T00:00:00Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T09:60:00Z',
    '2026-11-21T09:28:19+24:00',
    '2026-11-21T09:28:19+02:60',
    '2026-11-21T09:28:19 CEST',
    '0050-11-21T09:28:19Z',
    `2026-11-21T09:28:19Z${' '.repeat(100)}`,
    1_700_000_000,
    null,
    undefined,
    {},
    ['2026-11-21'],
  ]
  for (const value of broken) t.equal(parseTime(value), null, JSON.stringify(value))
})

void test('every millisecond of the years 1970 to 2099 is read back from ISO 8601', async () => {
  const max = new Date('2099-12-31T23:59:59.999Z')
  assert(
    property(date({ min: new Date(0), max, noInvalidDate: true }), (time) => {
      return parseTime(time.toISOString()) === time.getTime()
    }),
  )
})

void test('an event has the first valid time between 1970 and tomorrow', async (t) => {
  t.equal(eventTimeMs([null, 'soon', '2026-11-21T09:28:19Z', '2020-01-01'], at), at)
  t.equal(eventTimeMs(['1969-12-31T23:59:59Z', '1970-01-01T00:00:00Z'], at), 0)
  t.equal(eventTimeMs(['2026-11-22T09:28:19Z'], at), at + DAY_MS, 'a day ahead')
  t.equal(eventTimeMs(['2026-11-22T09:28:20Z'], at), at, 'further ahead is the arrival')
  t.equal(eventTimeMs([], at), at)
})
