import { test } from 'tap'
import { planRule, type Plan, type Rule } from '../../../src/alerting/rule.js'
import type { RuleFields } from '../../../src/alerting/rule-fields.js'
import { TrackedRule } from '../../../src/alerting/tracked-rule.js'

/** A whole number of every slot. */
const T0 = Date.UTC(2026, 0, 1)
const S = 1000
const ALIVE = { aliveSinceMs: 0 }

function planOf(fields: Omit<RuleFields, 'name' | 'severity'>): Plan {
  const facts = { id: 'r', version: 1, createdAtMs: 0, updatedAtMs: 0, updatedBy: 'u' }
  const rule: Rule = { ...facts, fields: { name: 'rule', severity: 'P2', ...fields } }
  const plan = planRule(rule)
  if ('path' in plan) throw new Error(`${plan.path} ${plan.message}`)
  return plan
}

/** Counts by the second of their arrival after T0. */
const at = (plan: Plan, counts: Readonly<Record<number, number>>, group: readonly string[] = []) =>
  Object.entries(counts).map(([second, count]) => ({
    slot: Math.floor((T0 + Number(second) * S) / plan.everyMs),
    group,
    count,
  }))

const told = (made: ReturnType<TrackedRule['evaluate']>): readonly string[] =>
  made.map(
    ({ group, transition: { from, to, atMs }, value }) =>
      `${(atMs - T0) / S}s ${group.join()} ${from}>${to} ${value}`,
  )

const threshold = (more: Partial<RuleFields> = {}): Plan =>
  planOf({
    kind: { type: 'threshold', window: '1m', op: '>', fire: 10, recover: 3 },
    keep_firing_for: '0s',
    ...more,
  })

void test('a count fires when it crosses its line, and resolves behind the other', async (t) => {
  const plan = threshold()
  const tracked = new TrackedRule(plan, T0)
  tracked.add(0, at(plan, { 1: 5, 12: 5 }))
  t.same(told(tracked.evaluate(T0 + 20 * S, ALIVE)), [])
  tracked.add(0, at(plan, { 21: 1 }))
  t.same(
    told(tracked.evaluate(T0 + 22 * S, ALIVE)),
    ['22s  inactive>firing 11'],
    'before its slot is over',
  )
  // 5 and 1 are in the window until 70 s.
  t.same(told(tracked.evaluate(T0 + 200 * S, ALIVE)), ['80s  firing>resolved 1'])
})

void test('moments are judged in order, however late', async (t) => {
  const plan = threshold()
  const counts = at(plan, { 5: 11, 95: 11 })
  const late = new TrackedRule(plan, T0)
  late.add(0, counts)
  const all = told(late.evaluate(T0 + 300 * S, ALIVE))
  t.same(all, [
    '10s  inactive>firing 11',
    '70s  firing>resolved 0',
    '100s  inactive>firing 11',
    '160s  firing>resolved 0',
  ])
})

void test('a restart goes on from the last transition', async (t) => {
  const plan = threshold({ for: '30s' })
  const counts = at(plan, { 5: 20, 30: 20, 50: 20 })
  const whole = new TrackedRule(plan, T0)
  whole.add(0, counts)
  const expected = told(whole.evaluate(T0 + 200 * S, ALIVE))
  t.match(expected, ['10s  inactive>pending 20', '40s  pending>firing 40'])
  for (let cutS = 10; cutS < 200; cutS += 10) {
    const before = new TrackedRule(plan, T0)
    before.add(0, counts)
    const first = told(before.evaluate(T0 + cutS * S, ALIVE))
    const after = new TrackedRule(plan, T0)
    for (const state of before.states) after.restore(state)
    after.add(0, counts)
    t.same([...first, ...told(after.evaluate(T0 + 200 * S, ALIVE))], expected, `cut at ${cutS} s`)
  }
})

void test('groups are judged by themselves, up to a number of them', async (t) => {
  const plan = threshold({ group_by: ['host'], max_groups: 2 })
  const tracked = new TrackedRule(plan, T0)
  tracked.add(0, at(plan, { 1: 11 }, ['a']))
  tracked.add(0, at(plan, { 1: 1 }, ['b']))
  tracked.add(0, at(plan, { 1: 99 }, ['c']))
  t.same(told(tracked.evaluate(T0 + 10 * S, ALIVE)), ['10s a inactive>firing 11'])
  t.equal(tracked.leftOut, 1)
  tracked.evaluate(T0 + 300 * S, ALIVE)
  tracked.add(0, at(plan, { 301: 99 }, ['c']))
  t.same(
    told(tracked.evaluate(T0 + 310 * S, ALIVE)),
    ['310s c inactive>firing 99'],
    'there is room again',
  )
})

void test('absence waits for what could not arrive', async (t) => {
  const plan = planOf({
    kind: { type: 'absence', for: '1m', known: '1h' },
    group_by: ['source'],
    keep_firing_for: '0s',
  })
  const make = (): TrackedRule => {
    const tracked = new TrackedRule(plan, T0)
    tracked.add(0, at(plan, { 5: 1 }, ['shop']))
    return tracked
  }
  t.same(told(make().evaluate(T0 + 100 * S, ALIVE)), ['70s shop inactive>firing 60'])
  const restarted = { aliveSinceMs: T0 + 50 * S }
  t.same(told(make().evaluate(T0 + 100 * S, restarted)), [], 'the service was away')
  t.same(told(make().evaluate(T0 + 110 * S, restarted)), ['110s shop inactive>firing 100'])
  const back = make()
  back.evaluate(T0 + 100 * S, ALIVE)
  back.add(0, at(plan, { 101: 1 }, ['shop']))
  t.same(told(back.evaluate(T0 + 110 * S, ALIVE)), ['110s shop firing>resolved 0'])
})

void test('what was never seen is not missing', async (t) => {
  const plan = planOf({ q: 'source:shop', kind: { type: 'absence', for: '1m', known: '1h' } })
  const tracked = new TrackedRule(plan, T0)
  t.same(told(tracked.evaluate(T0 + 300 * S, ALIVE)), [])
  tracked.add(0, at(plan, { 301: 1 }))
  t.same(told(tracked.evaluate(T0 + 400 * S, ALIVE)), ['370s  inactive>firing 60'])
})

void test('a low count counts only where the whole window could arrive', async (t) => {
  const plan = planOf({ kind: { type: 'threshold', window: '1m', op: '<', fire: 5 } })
  t.same(told(new TrackedRule(plan, T0).evaluate(T0 + 50 * S, { aliveSinceMs: T0 })), [])
  t.same(told(new TrackedRule(plan, T0).evaluate(T0 + 60 * S, { aliveSinceMs: T0 })), [
    '60s  inactive>firing 0',
  ])
})

void test('a ratio needs enough', async (t) => {
  const plan = planOf({
    kind: { type: 'ratio', part: 'severity:error', window: '1m', op: '>', fire: 0.1, at_least: 50 },
  })
  const few = new TrackedRule(plan, T0)
  few.add(0, at(plan, { 1: 10 }))
  few.add(1, at(plan, { 1: 49 }))
  t.same(told(few.evaluate(T0 + 10 * S, ALIVE)), [])
  few.add(1, at(plan, { 11: 1 }))
  t.same(told(few.evaluate(T0 + 20 * S, ALIVE)), ['20s  inactive>firing 0.2'])
})

void test('a change is beside the window before', async (t) => {
  const plan = planOf({ kind: { type: 'change', window: '1m', factor: 3 }, keep_firing_for: '0s' })
  const tracked = new TrackedRule(plan, T0 + 110 * S)
  tracked.add(0, at(plan, { 5: 20, 65: 59 }))
  t.same(told(tracked.evaluate(T0 + 120 * S, ALIVE)), [])
  tracked.add(0, at(plan, { 122: 118 }))
  t.same(told(tracked.evaluate(T0 + 130 * S, ALIVE)), [])
  tracked.add(0, at(plan, { 131: 59 }))
  t.same(told(tracked.evaluate(T0 + 140 * S, ALIVE)), ['140s  inactive>firing 3'])
})

void test('n of m evaluations make a line crossed', async (t) => {
  const plan = threshold({
    kind: { type: 'threshold', window: '10s', op: '>', fire: 10 },
    n_of_m: [2, 3],
  })
  const tracked = new TrackedRule(plan, T0)
  tracked.add(0, at(plan, { 1: 11, 21: 11 }))
  t.same(told(tracked.evaluate(T0 + 30 * S, ALIVE)), ['30s  inactive>firing 11'])
})
