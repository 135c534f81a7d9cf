import { test } from 'tap'
import { matchersOfGroup, parseMatchers, printMatchers } from '../../../src/query/matcher-line.js'
import { matchesAll } from '../../../src/alerting/matchers.js'
import {
  createSuppressionOf,
  isOpen,
  type MaintenanceWindow,
  silenceState,
} from '../../../src/alerting/suppression.js'

void test('matchers compare fields with wildcards', async (t) => {
  const group = { host: 'web-12.eu', severity: 'ERROR' }
  const labels = { own: { severity: 'P1', rule: 'a*b' }, group }
  const is = (field: string, value: string, op: '=' | '!=' = '='): boolean =>
    matchesAll([{ field, op, value }], labels)
  t.ok(is('host', 'web-12.eu'))
  t.ok(is('host', 'web-*'))
  t.ok(is('host', '*.eu'))
  t.ok(is('host', 'w*-*.e*'))
  t.ok(is('host', '*'))
  t.notOk(is('host', 'web'))
  t.notOk(is('host', 'web-12.eu*u'))
  t.notOk(is('host', 'web-1*12.eu'), 'parts do not overlap')
  t.notOk(is('host', '*web-12.eu.eu'))
  t.ok(is('severity', 'P2', '!='))
  t.notOk(is('severity', 'P*', '!='))
  t.ok(is('severity', 'ERROR'), 'of the events of its group')
  t.notOk(is('severity', 'ERROR', '!='))
  t.ok(is('zone', ''), 'a field that is not there is empty')
  t.notOk(is('__proto__', 'x'))
  t.notOk(is('__proto__', 'x*'))
  const both = [
    { field: 'host', value: 'web-*' },
    { field: 'severity', value: 'P2' },
  ]
  t.notOk(matchesAll(both, labels), 'all have to match')
})

void test('matchers are one line, in which quotes make a value exact', async (t) => {
  const parsed = (text: string) =>
    parseMatchers(text)?.map(({ field, op, value, exact }) => [field + op, value, exact === true])
  t.same(parsed('host=web-*, zone != x'), undefined, 'no blank around the operator')
  t.same(parsed(' host=web-* ,\n a.b!=c d ,, e='), [
    ['host=', 'web-*', false],
    ['a.b!=', 'c d', false],
    ['e=', '', false],
  ])
  t.same(parsed('a="x, *\\n\\"y" , b=c"d'), [
    ['a=', 'x, *\n"y', true],
    ['b=', 'c"d', false],
  ])
  t.same(parsed('a="b'), [['a=', '"b', false]], 'it is a quote')
  for (const text of ['', ' , ', 'a', 'a=1, b', 'a="b, c', '=a']) t.equal(parseMatchers(text), null)
})

void test('a mute of a group means that group, whatever its values are', async (t) => {
  const texts = ['web-1', '', 'a, b=c', '*', 'a*b', '"q"', ' x ', 'a\\*', 'two\nlines', '"', ',']
  for (const value of texts) {
    const matchers = parseMatchers(printMatchers(matchersOfGroup('r', { host: value, zone: '' })))
    const means = (host: string): boolean =>
      matchesAll(matchers ?? [], { own: { rule_id: 'r' }, group: { host, zone: '' } })
    t.same(texts.filter(means), [value], JSON.stringify(value))
  }
  t.equal(printMatchers([{ field: 'host', op: '!=', value: 'web-*' }]), 'host!=web-*')
})

void test('a maintenance window is open by the clock of its zone', async (t) => {
  const fields = {
    name: 'w',
    reason: 'r',
    matchers: [{ field: 'rule', value: '*' }],
    time_zone: 'Europe/Berlin',
    days: ['sat' as const],
    from: '22:00',
    to: '02:30',
  }
  const open = (iso: string, change: object = {}): boolean =>
    isOpen({ ...fields, ...change }, Date.parse(iso))
  // 2026-10-24 is a Saturday; in its night the clock goes back from 3:00 to 2:00.
  t.notOk(open('2026-10-24T19:59:59Z'))
  t.ok(open('2026-10-24T20:00:00Z'))
  t.ok(open('2026-10-25T00:29:59Z'), '2:29 in summer')
  t.notOk(open('2026-10-25T00:30:00Z'), '2:30 in summer')
  t.ok(open('2026-10-25T01:29:59Z'), '2:29 in winter')
  t.notOk(open('2026-10-25T01:30:00Z'))
  t.notOk(open('2026-10-23T21:00:00Z'), 'a Friday')
  t.notOk(open('2026-10-24T00:30:00Z'), 'the morning of the Saturday belongs to the Friday')
  t.notOk(open('2026-10-24T20:00:00Z', { enabled: false }))
  const whole = { from: '00:00', to: '00:00', days: ['sun' as const] }
  t.ok(open('2026-10-25T12:00:00Z', whole), 'a whole day')
  t.notOk(open('2026-10-26T12:00:00Z', whole))
  t.ok(open('2026-10-24T10:00:00Z', { time_zone: 'Asia/Tokyo', from: '18:00', to: '20:00' }))
})

void test('many maintenance windows hold up no notices', (t) => {
  const windowOf = (no: number, timeZone: string): MaintenanceWindow => ({
    id: `w${no}`,
    version: 1,
    createdAtMs: 0,
    updatedAtMs: 0,
    updatedBy: '',
    fields: {
      name: 'w',
      reason: 'r',
      matchers: [{ field: 'rule', value: '*' }],
      time_zone: timeZone,
      days: ['sat'],
      from: '22:00',
      to: '23:00',
    },
  })
  const windows = Array.from({ length: 500 }, (_, no) => windowOf(no, 'UTC'))
  const suppressionOf = createSuppressionOf({ list: () => [] }, { list: () => windows })
  const labels = { own: { rule: 'a' }, group: {} }
  const before = process.cpuUsage()
  const nowMs = Date.parse('2026-10-24T20:30:00Z')
  for (let notice = 0; notice < 100; notice++) t.equal(suppressionOf(labels, nowMs), null)
  const { user } = process.cpuUsage(before)
  t.ok(user < 2_000_000, `${user / 1000} ms`)
  windows[7] = windowOf(7, 'Europe/Berlin')
  t.match(suppressionOf(labels, nowMs), { by: 'maintenance window', id: 'w7' })
  t.end()
})

void test('a silence is pending, active and expired', async (t) => {
  const fields = { matchers: [], reason: 'r', startsAtMs: 10, endsAtMs: 20 }
  t.same(
    [9, 10, 19, 20].map((nowMs) => silenceState(fields, nowMs)),
    ['pending', 'active', 'active', 'expired'],
  )
})
