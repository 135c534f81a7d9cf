import { assert, constantFrom, date, integer, property, string } from 'fast-check'
import { test } from 'tap'
import { isAcceptedTime, parseTimestamp } from '../../../../src/ingest/formats/timestamp.js'
import { Zones } from '../../../../src/ingest/formats/zone.js'
import { ingestContext } from './collect.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../../../src/model/time.js'

const NOW = Date.UTC(2026, 10, 21, 12)
const AT = Date.UTC(2026, 10, 21, 9, 28, 19)
const parse = (value: string | number) => parseTimestamp(value, ingestContext)

void test('ISO 8601 is read with any separator, decimals and offset', async (t) => {
  const reads = (text: string, want: number | null) => t.equal(parse(text), want, text)
  reads('2026-11-21T09:28:19Z', AT)
  reads('2026-11-21t09:28:19z', AT)
  reads('2026-11-21 09:28:19', AT)
  reads('2026-11-21T09:28', AT - 19_000)
  reads('2026-11-21T09:28:19.1Z', AT + 100)
  reads('2026-11-21T09:28:19.123456789Z', AT + 123)
  reads('2026-11-21 09:28:19,999', AT + 999)
  reads('2026-11-21T10:28:19+01:00', AT)
  reads('2026-11-21T09:28:19+0000', AT)
  reads('2026-11-21T04:28:19-05', AT)
  reads('2026-11-21T14:58:19.5+05:30', AT + 500)
  reads(' 2026-11-21T09:28:19Z ', AT)
  reads('2026-11-21T09:28:19 UTC', AT)
  reads('2026-11-21', Date.UTC(2026, 10, 21))
  reads('20261121T092819Z', AT)
  reads('2026-12-31T23:59:60Z', Date.UTC(2027, 0, 1))
  reads('2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29))
})

void test('a date or time that does not exist is unreadable', async (t) => {
  for (const text of [
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-11-31T00:00:00Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T09:60:00Z',
    '2026-11-21T09:28:61Z',
    '2026-11-21T09:28:19+99:00',
    '2026-11-21T09:28:19.Z',
    '2026-11-21T09:28:19Zjunk',
    '2026-11-21Tab:cd:ef',
    '0000-01-01T00:00:00Z',
    'Foo 21 09:28:19',
    '31/Feb/2026:09:28:19 +0000',
    'yesterday',
    '',
    ' ',
    '12:30',
    'NaN',
    '1e300',
    `2026-11-21T09:28:19Z${' '.repeat(1_000_000)}x`,
  ]) {
    t.equal(parse(text), null, text.slice(0, 40))
  }
  t.equal(parse(Number.NaN), null)
  t.equal(parse(Number.POSITIVE_INFINITY), null)
})

void test('an epoch number is seconds, milli-, micro- or nanoseconds by its size', async (t) => {
  const ms = 1_795_253_350_042
  const reads = (value: string | number, want: number) => t.equal(parse(value), want, `${value}`)
  reads(1_795_253_350, 1_795_253_350_000)
  reads(1_795_253_350.042, ms)
  reads(ms, ms)
  reads(1_795_253_350_042_999, ms)
  reads(1.795253350042e18, ms)
  reads('1795253350', 1_795_253_350_000)
  reads('1795253350.042', ms)
  reads('1795253350042', ms)
  reads('1795253350042999', ms)
  reads('1795253350042999999', ms)
  reads(0, 0)
  reads(-1, -1000)
  reads('-1', -1000)
  reads('20261121092819', AT)
  reads('20261121', Date.UTC(2026, 10, 21))
  reads('20261399', 20_261_399_000)
})

void test('the unit of the field takes precedence over the size', async (t) => {
  t.equal(parseTimestamp('1000', ingestContext, 'ms'), 1000)
  t.equal(parseTimestamp(5_000_000, ingestContext, 'us'), 5000)
  t.equal(parseTimestamp('5999999', ingestContext, 'ns'), 5)
  t.equal(parseTimestamp('1795253350042999999', ingestContext, 'ns'), 1_795_253_350_042)
})

void test('the forms of loggers, web servers and exports are read', async (t) => {
  const reads = (text: string, want: number | null) => t.equal(parse(text), want, text)
  reads('21/Nov/2026:09:28:19 +0000', AT)
  reads('[21/Nov/2026:10:28:19 +0100]', AT)
  reads('Nov 21 09:28:19', AT)
  reads('Nov  1 09:28:19', Date.UTC(2026, 10, 1, 9, 28, 19))
  reads('Nov 21 2026 09:28:19.250', AT + 250)
  reads('Sat Nov 21 09:28:19 2026', AT)
  reads('[Sat Nov 21 09:28:19.123456 2026]', AT + 123)
  reads('Sat Sep 17 07:49:04 PDT 2005', Date.UTC(2005, 8, 17, 14, 49, 4))
  reads('Nov 21, 2026 @ 09:28:19.000', AT)
  reads('Nov 21, 2026 9:28:19 AM', AT)
  reads('Nov 21, 2026, 12:00:01 AM', Date.UTC(2026, 10, 21, 0, 0, 1))
  reads('November 21, 2026 9:28:19 PM', AT + 12 * HOUR_MS)
  reads('2026-11-21 @ 09:28:19.000', AT)
  reads('Sat, 21 Nov 2026 09:28:19 GMT', AT)
  reads('21 Nov 2026 09:28:19,000', AT)
  reads('21-Nov-2026 09:28:19.001', AT + 1)
  reads('2026/11/21 09:28:19', AT)
  reads('2005-06-03-15.42.50.363779', Date.UTC(2005, 5, 3, 15, 42, 50, 363))
  reads('17/06/09 20:10:40', Date.UTC(2017, 5, 9, 20, 10, 40))
  reads('081109 203518', Date.UTC(2008, 10, 9, 20, 35, 18))
  reads('E1121 09:28:19.000000', AT)
  reads('21.11.2026 09:28:19', AT)
  reads('11/21/2026 9:28:19 AM', AT)
  reads('21/11/2026 09:28:19', AT)
  reads('11/21/2026 13:28:19 PM', null)
  reads('Nov 21 09:28:19 XYZ 2026', null)
})

void test('a form without a year gets the latest one that is not over a day ahead', async (t) => {
  const reads = (text: string, nowMs: number, want: number) =>
    t.equal(parseTimestamp(text, { ...ingestContext, nowMs }), want, text)
  reads('Nov 22 11:00:00', NOW, Date.UTC(2026, 10, 22, 11))
  reads('Nov 22 13:00:00', NOW, Date.UTC(2025, 10, 22, 13))
  reads('Dec 31 23:59:59', Date.UTC(2026, 0, 1), Date.UTC(2025, 11, 31, 23, 59, 59))
  reads('Jan  1 00:00:30', Date.UTC(2026, 11, 31, 23, 59, 59), Date.UTC(2027, 0, 1, 0, 0, 30))
  reads('Feb 29 00:00:00', NOW, Date.UTC(2024, 1, 29))
})

void test('a formatted time is read as the same millisecond', async (t) => {
  const anyDate = date({
    min: new Date(0),
    max: new Date('2200-01-01T00:00:00Z'),
    noInvalidDate: true,
  })
  assert(property(anyDate, (d) => parse(d.toISOString()) === d.getTime()))
  assert(property(anyDate, (d) => parse(d.toUTCString()) === Math.floor(d.getTime() / 1000) * 1000))
  assert(
    property(anyDate, integer({ min: -1439, max: 1439 }), (d, offsetMin) => {
      const local = new Date(d.getTime() + offsetMin * MINUTE_MS).toISOString().slice(0, -1)
      const size = Math.abs(offsetMin)
      const hours = `${Math.floor(size / 60)}`.padStart(2, '0')
      const minutes = `${size % 60}`.padStart(2, '0')
      return parse(`${local}${offsetMin < 0 ? '-' : '+'}${hours}:${minutes}`) === d.getTime()
    }),
  )
  t.pass('held')
})

void test('no text makes the parser throw or return a fraction', async (t) => {
  const pieces = constantFrom(
    '2026',
    '-',
    '11',
    '/',
    'Nov',
    ':',
    ' ',
    '09',
    '.',
    '@',
    'Z',
    '+',
    ',',
  )
  const isSafe = (text: string) => {
    const ms = parse(text)
    return ms === null || Number.isInteger(ms)
  }
  assert(property(string(), isSafe))
  assert(property(string({ unit: pieces, maxLength: 16 }), isSafe), { numRuns: 1000 })
  t.pass('held')
})

void test('times from 1970 up to one day ahead are accepted', async (t) => {
  t.ok(isAcceptedTime(0, NOW))
  t.notOk(isAcceptedTime(-1, NOW))
  t.ok(isAcceptedTime(NOW + DAY_MS, NOW))
  t.notOk(isAcceptedTime(NOW + 86_400_001, NOW))
})

void test('a time without a zone is in the zone that is asked for, any other is not', async (t) => {
  const zones = new Zones()
  const reads = (zone: string, text: string, want: string) => {
    const ms = parseTimestamp(text, { ...ingestContext, toUtc: zones.of(zone) })
    t.equal(ms === null ? null : new Date(ms).toISOString(), want, `${zone} ${text}`)
  }
  for (const text of [
    '2026-07-01T10:00:00',
    '2026-07-01 10:00:00,000',
    '2026/07/01 10:00:00',
    '01/Jul/2026:10:00:00',
    'Jul  1 10:00:00',
    '20260701100000',
  ]) {
    reads('Europe/Vienna', text, '2026-07-01T08:00:00.000Z')
    reads('America/New_York', text, '2026-07-01T14:00:00.000Z')
    reads('Asia/Kolkata', text, '2026-07-01T04:30:00.000Z')
    reads('UTC', text, '2026-07-01T10:00:00.000Z')
  }
  for (const text of [
    '2026-07-01T10:00:00Z',
    '2026-07-01T12:00+02:00',
    '2026-07-01T05:00-0500',
    '2026-07-01 10:00:00 UTC',
    '01/Jul/2026:12:00:00 +0200',
    '20260701T100000Z',
    '1782900000',
  ])
    reads('Asia/Tokyo', text, '2026-07-01T10:00:00.000Z')
  reads('Europe/Vienna', '2026-01-31T23:30:00', '2026-01-31T22:30:00.000Z')
  reads('Europe/Vienna', '2026-03-29T01:59:59', '2026-03-29T00:59:59.000Z')
  reads('Europe/Vienna', '2026-03-29T03:00:00', '2026-03-29T01:00:00.000Z')
  reads('Europe/Vienna', '2026-10-25T02:30:00', '2026-10-25T00:30:00.000Z')
  reads('Europe/Vienna', '2026-10-25T03:00:00', '2026-10-25T02:00:00.000Z')
  reads('America/New_York', '2026-11-01T00:30:00', '2026-11-01T04:30:00.000Z')
  reads('America/New_York', '2026-11-01T02:00:00', '2026-11-01T07:00:00.000Z')
  reads('Australia/Lord_Howe', '2026-04-05T03:00:00', '2026-04-04T16:30:00.000Z')
  t.throws(() => zones.of('Mars/Olympus'), RangeError)
})

void test('what a clock shows is read back in every zone and season', async (t) => {
  const zones = new Zones()
  const names = [
    'Europe/London',
    'America/Sao_Paulo',
    'Pacific/Apia',
    'Asia/Kathmandu',
    'Africa/Cairo',
  ]
  assert(
    property(constantFrom(...names), integer({ min: 0, max: 2_000_000_000 }), (zone, seconds) => {
      const format = new Intl.DateTimeFormat('sv-SE', {
        timeZone: zone,
        dateStyle: 'short',
        timeStyle: 'medium',
      })
      const shown = format.format(seconds * 1000)
      const ms = parseTimestamp(shown, { ...ingestContext, toUtc: zones.of(zone) })
      // An hour that the clock shows twice is read as the first of the two.
      return ms !== null && format.format(ms) === shown && ms <= seconds * 1000
    }),
    { numRuns: 2000 },
  )
  t.pass('all are')
})
