import t from 'tap'

import { count, percent, perSecond, short } from '../../../src/ui/lib/format.js'
import { oneLine, pieces, templatePieces } from '../../../src/ui/lib/message.js'
import { flatten, tagOf } from '../../../src/ui/lib/tags.js'
import { duration, rangeLabel, toMs, toRange, toSpan } from '../../../src/ui/lib/time.js'

const drawn = (message: string, template: string): string =>
  pieces(message, template)
    .map(({ text, isVariable }) => (isVariable ? `[${text}]` : text))
    .join('')

t.test('the variables of a message are found by its template', async (t) => {
  t.equal(
    drawn('order 7 placed with 2 items', 'order <*> placed with <*> items'),
    'order [7] placed with [2] items',
  )
  t.equal(drawn('GET /a 200', 'GET <*> <*>'), 'GET [/a] [200]')
  t.equal(drawn('7 left', '<*> left'), '[7] left')
  t.equal(drawn('used 9%', 'used <*>'), 'used [9%]')
  t.equal(drawn('another text', 'order <*> placed'), 'another text', 'a template that does not fit')
  t.equal(drawn('order 7 lost', 'order <*> placed'), 'order 7 lost')
  t.equal(drawn('no variables', ''), 'no variables')
  t.equal(drawn('<*>', '<*>'), '[<*>]')
  t.equal(
    templatePieces('a <*> b')
      .map(({ text }) => text)
      .join(''),
    'a ∗ b',
  )
})

t.test('whatever a message and a template are, the pieces are the message', async (t) => {
  const parts = ['<*>', 'a', ' ', 'bb', '<script>', '7', '\u202e', '\n', '']
  let seed = 3
  const pick = (): string => parts[(seed = (seed * 48271) % 2147483647) % parts.length] ?? ''
  for (let i = 0; i < 2000; i++) {
    const message = Array.from({ length: 6 }, pick).join('')
    const template = Array.from({ length: 6 }, pick).join('')
    const whole = pieces(message, template)
      .map(({ text }) => text)
      .join('')
    if (whole !== message) t.fail(JSON.stringify([message, template, whole]))
  }
})

t.test('a row shows a message without colours of terminals, cut', async (t) => {
  t.equal(oneLine('\u001b[31mred\u001b[0m'), 'red')
  t.equal(oneLine('to \u202ethe left'), 'to ‹U+202E›the left')
  t.equal(oneLine('x'.repeat(5000)).length, 800)
})

t.test('attributes are listed by their paths', async (t) => {
  const tags = { user: { id: 42, name: 'x' }, list: [1, 2], flat: true, nothing: null, 'a.b': 'c' }
  t.same(flatten(tags), [
    ['user.id', '42'],
    ['user.name', 'x'],
    ['list', '[1,2]'],
    ['flat', 'true'],
    ['nothing', 'null'],
    ['a.b', 'c'],
  ])
  t.equal(tagOf(tags, 'user.id'), '42')
  t.equal(tagOf(tags, 'user.missing'), '')
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i]))
  t.equal(flatten(many).length, 500)
  const deep: Record<string, unknown> = {}
  let inner = deep
  for (let i = 0; i < 200; i++) inner = inner['x'] = {} as Record<string, unknown>
  t.equal(flatten(deep).length, 1)
})

t.test('times in an address are relative or ISO 8601', async (t) => {
  const now = Date.parse('2026-05-04T10:00:00.000Z')
  t.equal(toMs('now', now), now)
  t.equal(toMs('now-2h', now), now - 7_200_000)
  t.equal(toMs('2026-05-04T09:00:00Z', now), now - 3_600_000)
  t.equal(toMs('soon', now), null)
  t.same(toSpan({ from: 'now-1h', to: 'now' }, now), { fromMs: now - 3_600_000, toMs: now })
  t.same(toSpan({ from: 'now-1h', to: 'now' }, now + 1), {
    fromMs: now - 3_599_000,
    toMs: now + 1000,
  })
  t.same(toSpan({ from: 'x', to: 'now' }, now), { fromMs: now - 3_600_000, toMs: now })
  t.same(toSpan({ from: 'now', to: 'now-1h' }, now), { fromMs: now - 3_600_000, toMs: now })
  t.same(toRange({ fromMs: now, toMs: now + 1 }), {
    from: '2026-05-04T10:00:00.000Z',
    to: '2026-05-04T10:00:00.001Z',
  })
  t.equal(rangeLabel({ from: 'now-15m', to: 'now' }, 'UTC', now), 'Last 15 minutes')
  t.equal(rangeLabel({ from: 'now-90m', to: 'now' }, 'UTC', now), 'Last 1 h 30 min')
  const fixed = { from: '2026-05-04T09:00:00Z', to: '2026-05-04T09:30:00Z' }
  t.equal(rangeLabel(fixed, 'UTC', now), '04 May, 09:00:00 – 09:30:00')
  t.equal(rangeLabel(fixed, 'Asia/Kolkata', now), '04 May, 14:30:00 – 15:00:00')
  t.equal(duration(90_061_000), '1 d 1 h')
})

t.test('numbers', async (t) => {
  t.equal(count(1204233), '1,204,233')
  t.equal(short(1204233), '1.2M')
  t.equal(short(9999), '9,999')
  t.same([0, 0.0004, 0.012, 0.5].map(percent), ['0 %', '< 0.1 %', '1.2 %', '50 %'])
  t.same([0, 0.02, 0.3, 12.4].map(perSecond), ['0.0', '< 0.1', '0.3', '12'])
})
