import { Value } from '@sinclair/typebox/value'
import { test } from 'tap'
import { groupsSql } from '../../../src/alerting/group-sql.js'
import { planRule } from '../../../src/alerting/rule.js'
import { checkedPlan } from '../../../src/alerting/rules.js'
import { RuleFields } from '../../../src/alerting/rule-fields.js'

const BASE = {
  name: 'x',
  severity: 'P3',
  kind: { type: 'threshold', window: '5m', op: '>', fire: 1 },
}

const planOf = (fields: unknown) => {
  if (!Value.Check(RuleFields, fields)) throw new Error('does not fit the schema')
  const facts = { id: 'r', version: 1, createdAtMs: 0, updatedAtMs: 0, updatedBy: '' }
  return planRule({ ...facts, fields })
}

void test('what is wrong with a rule is said with its field', async (t) => {
  const wrong = (change: object, path: string): void => {
    const plan = planOf({ ...BASE, ...change })
    t.match(plan, { path, message: /\S/ }, JSON.stringify(change))
  }
  const window = (text: string): object => ({ kind: { ...BASE.kind, window: text } })
  wrong({ q: 'severity:' }, 'q')
  wrong({ q: '/x/' }, 'q')
  wrong({ q: 'count>3' }, 'q')
  wrong({ q: 'NOT (source:a OR count>3)' }, 'q')
  wrong(window('9s'), 'kind.window')
  wrong(window('2d'), 'kind.window')
  wrong(window('15s'), 'kind.window')
  wrong({ every: '11m' }, 'every')
  wrong({ every: '1s', ...window('1h') }, 'kind.window')
  wrong({ n_of_m: [3, 2] }, 'n_of_m')
  wrong({ kind: { type: 'absence', for: '1h', known: '30m' } }, 'kind.known')
  wrong({ kind: { type: 'absence', for: '1h', known: '8d' } }, 'kind.known')
  wrong({ max_age: '8d' }, 'max_age')
  wrong({ for: '999999d' }, 'for')
  const ratio = { type: 'ratio', part: 'a', window: '5m', op: '>' }
  wrong({ kind: { ...ratio, fire: 5 } }, 'kind.fire')
  wrong({ kind: { ...ratio, fire: 0.5, recover: 3 } }, 'kind.recover')
  wrong({ keep_firing_for: '169h' }, 'keep_firing_for')
  wrong({ runbook: 'http://[bad' }, 'runbook')
  for (const name of ['priority', 'type', 'message', 'application', 'trace', 'id', 'count', 'new'])
    wrong({ group_by: ['host', name] }, 'group_by')
  wrong({ kind: { type: 'change', window: '13h', factor: 2 } }, 'kind.window')
  wrong({ kind: { type: 'ratio', part: '(', window: '5m', op: '>', fire: 1 } }, 'kind.part')
  wrong(
    { kind: { type: 'dead_letters', window: '5m', share: 0.1 }, group_by: ['host'] },
    'group_by',
  )
  wrong({ kind: { type: 'new_template', window: '5m' }, group_by: ['host'] }, 'group_by')
})

void test('a saved rule asks no more than a query may, and the clause beyond is marked', async (t) => {
  const words = (count: number, sign = 'w'): string =>
    Array.from({ length: count }, (_, at) => `${sign}${at + 10}`).join(' ')
  const attributes = (count: number): string =>
    Array.from({ length: count }, (_, at) => `a${at + 10}:1`).join(' ')
  const ratio = (part: string): object => ({
    kind: { type: 'ratio', part, window: '5m', op: '>', fire: 0.5 },
  })
  const fieldsOf = (change: object): RuleFields => {
    const fields = { ...BASE, ...change }
    if (!Value.Check(RuleFields, fields)) throw new Error('does not fit the schema')
    return fields
  }
  const refused = (change: object, fault: object): void => {
    const details = { errors: [{ in: 'body', ...fault }] }
    let error: unknown = null
    try {
      checkedPlan(fieldsOf(change))
    } catch (thrown) {
      error = thrown
    }
    t.match(error, { details }, JSON.stringify(change))
  }
  refused({ q: words(17) }, { path: 'q', position: 64, length: 3 })
  refused({ q: attributes(33) }, { path: 'q', position: 192, length: 5 })
  refused({ q: 'a* b* c*' }, { path: 'q', position: 6, length: 2 })
  refused({ q: 'new:1h new:2h new:3h new:4h new:5h' }, { path: 'q', position: 28, length: 6 })
  refused({ q: '-source:b OR /x/' }, { path: 'q', position: 13, length: 3 })
  refused({ q: 'source:a /a(/' }, { path: 'q', position: 9, length: 4 })
  refused({ q: 'severity:eror2' }, { path: 'q', position: 9, length: 5, suggestion: 'error' })
  refused(ratio('/x(/ a'), { path: 'kind.part', position: 0, length: 4 })
  refused({ q: words(10), ...ratio(words(7, 'p')) }, { path: 'kind.part', position: 24, length: 3 })
  for (const q of [words(16), attributes(32), 'a* b*', 'source:b a* b* c*'])
    t.equal(checkedPlan(fieldsOf({ q })).rule.fields.q, q)
  t.ok(checkedPlan(fieldsOf({ q: words(10), ...ratio(words(6, 'p')) })))
  t.match(planOf({ ...BASE, q: words(17) }), { windowMs: 300_000 }, 'an earlier one is evaluated')
})

void test('a rule is grouped by some fields and any attribute', async (t) => {
  for (const name of [
    'source',
    'host',
    'template',
    'environment',
    'severity',
    'tag.type',
    'user.id',
  ])
    t.match(planOf({ ...BASE, group_by: [name] }), { groupBy: [name] })
  const asked = (name: string): readonly unknown[] => {
    const values: unknown[] = []
    groupsSql([name], (_, value) => String(values.push(value)), [])
    return [...new Set(values)]
  }
  t.same(asked('tag.type'), asked('type'), 'the mark is no part of the name')
  t.same(asked('host'), [])
})

void test('a long window has longer slots', async (t) => {
  t.match(planOf(BASE), { everyMs: 10_000, windowMs: 300_000, spanMs: 300_000 })
  t.match(planOf({ ...BASE, kind: { ...BASE.kind, window: '4h' } }), { everyMs: 10_000 })
  t.match(planOf({ ...BASE, kind: { ...BASE.kind, window: '24h' } }), { everyMs: 60_000 })
  t.match(planOf({ ...BASE, n_of_m: [1, 4] }), { spanMs: 330_000 })
  const change = { type: 'change', window: '5m', factor: 2 }
  t.match(planOf({ ...BASE, kind: change }), { everyMs: 10_000, spanMs: 600_000 })
  const yesterday = { ...change, against: 'day' }
  t.match(planOf({ ...BASE, kind: yesterday }), { everyMs: 60_000, spanMs: 300_000 })
  t.match(planOf({ ...BASE, kind: { type: 'absence', for: '5m' } }), { spanMs: 604_800_000 })
})
