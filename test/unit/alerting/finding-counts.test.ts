import { test } from 'tap'
import { countersOf } from '../../../src/alerting/counter.js'
import { countFindings } from '../../../src/alerting/finding-counts.js'
import { planRule, type Plan } from '../../../src/alerting/rule.js'
import type { RuleFields } from '../../../src/alerting/rule-fields.js'
import { TrackedRule } from '../../../src/alerting/tracked-rule.js'
import { toLogged } from '../../../src/alerting/transitions.js'
import type { Finding } from '../../../src/insights/findings.js'
import { HOUR_MS, MINUTE_MS } from '../../../src/model/time.js'
import { EVERYTHING } from '../../../src/query/ast.js'

const T0 = 500_000 * HOUR_MS
const ALIVE = { aliveSinceMs: 0 }

function planOf(fields: Partial<RuleFields> = {}): Plan {
  const facts = { id: 'r', version: 1, createdAtMs: 0, updatedAtMs: 0, updatedBy: 'u' }
  const common = { name: 'anomalies', severity: 'P2', keep_firing_for: '6h' } as const
  const kind = { type: 'anomaly' } as const
  const plan = planRule({ ...facts, fields: { ...common, kind, ...fields } })
  if ('path' in plan) throw new Error(`${plan.path} ${plan.message}`)
  return plan
}

const finding = (fields: Partial<Finding> = {}): Finding => ({
  scope: 'severity',
  kind: 'spike',
  source: 'web',
  severity: 'ERROR',
  templateId: '',
  gravity: 20,
  isOver: false,
  startedAtMs: T0 - HOUR_MS,
  endedAtMs: T0,
  detectedAtMs: T0,
  priority: 'P3',
  title: 'Spike of ERROR in web',
  ...fields,
})

/** Judges every minute from one hour to another what the insights have found at that time. */
async function follow(
  tracked: TrackedRule,
  [fromH, toH]: readonly [number, number],
  at: (hour: number) => readonly Finding[],
) {
  const made: string[] = []
  const [counter] = tracked.plan.counters
  if (counter?.kind !== 'findings') throw new Error('no counter of findings')
  for (let fromMs = T0 + fromH * HOUR_MS; fromMs < T0 + toH * HOUR_MS; fromMs += MINUTE_MS) {
    const toMs = fromMs + MINUTE_MS
    const deps = {
      findings: async () => at((toMs - T0) / HOUR_MS),
      resolve: () => counter.query,
    }
    const asked = { fromMs, toMs, isPast: false, everyMs: tracked.plan.everyMs }
    tracked.add(0, await countFindings(deps, counter, asked))
    for (const one of tracked.evaluate(toMs, ALIVE)) {
      const { from, to, atMs, severity, value, group } = {
        ...toLogged(tracked.plan, one),
        ...one.transition,
      }
      const hour = Math.round(((atMs - T0) / HOUR_MS) * 10) / 10
      made.push(`${hour} ${group.join()} ${severity} ${from}>${to} ${value}`)
    }
  }
  return made
}

const start = (plan = planOf()): TrackedRule => new TrackedRule(plan, T0)

test('an anomaly fires while it goes on, and resolves after the hold-down', async (t) => {
  const found = await follow(start(), [0, 12], (hour) => [
    finding({ isOver: hour > 3, endedAtMs: T0 + Math.min(2, Math.ceil(hour)) * HOUR_MS }),
  ])
  t.same(found, [
    '0 web,ERROR,,rise P3 inactive>firing 20',
    '3 web,ERROR,,rise P3 firing>recovering 0',
    '9 web,ERROR,,rise P3 recovering>resolved 0',
  ])
})

test('the same series within the hold-down is the same alert, later another', async (t) => {
  const again = (startH: number) => (hour: number) => [
    finding({ isOver: hour > 1 }),
    ...(hour < startH ? [] : [finding({ startedAtMs: T0 + startH * HOUR_MS, kind: 'new' })]),
  ]
  const news = (all: readonly string[]) => all.filter((one) => one.includes('inactive>firing'))
  t.equal(news(await follow(start(), [0, 12], again(4))).length, 1)
  t.equal(news(await follow(start(), [0, 14], again(9))).length, 2)
})

test('one that was over when it was found fires once, also over a restart', async (t) => {
  const late = (hoursAgo: number) => () => [
    finding({ isOver: true, endedAtMs: T0 - hoursAgo * HOUR_MS }),
  ]
  const tracked = start()
  t.match(await follow(tracked, [0, 1], late(20)), [/inactive>firing 20/, /firing>recovering/])
  const restarted = new TrackedRule(planOf(), T0 + HOUR_MS)
  for (const state of tracked.states) restarted.restore(state)
  t.match(await follow(restarted, [1, 30], late(20)), [/recovering>resolved/])
  t.same(await follow(start(), [0, 30], late(25)), [], 'it was over for more than a day')
})

test('score, kinds, query and severity of the rule choose', async (t) => {
  const firstOf = async (fields: Partial<RuleFields>, one: Partial<Finding> = {}) =>
    (await follow(start(planOf(fields)), [0, 0.1], () => [finding(one)])).join()
  t.match(await firstOf({ severity: 'P4' }), / P4 /, 'no graver than the rule')
  t.equal(await firstOf({ kind: { type: 'anomaly', min_score: 20.1 } }), '')
  t.match(await firstOf({ kind: { type: 'anomaly', kinds: ['spike', 'new'] } }), /firing 20/)
  t.equal(await firstOf({ kind: { type: 'anomaly', kinds: ['silence'] } }), '')
  t.match(await firstOf({ q: 'source:we* severity>=error' }), /firing 20/)
  t.equal(await firstOf({ q: '-source:web' }), '')
  const ofSource = await firstOf({}, { scope: 'source', kind: 'drop' })
  t.match(ofSource, / web,,,fall /, 'the severity of a source is not of its group')
  for (const q of ['host:a', 'timeout', 'has:took_ms', 'priority:P1'])
    t.match(planFault({ q }), { path: 'q' }, q)
  t.match(planFault({ group_by: ['source'] }), { path: 'group_by' })
})

const planFault = (fields: Partial<RuleFields>) => {
  const kind = { type: 'anomaly' } as const
  const facts = { id: 'r', version: 1, createdAtMs: 0, updatedAtMs: 0, updatedBy: 'u' }
  return planRule({ ...facts, fields: { name: 'x', severity: 'P1', kind, ...fields } })
}

test('a rule has one counter of findings', async (t) => {
  t.match(countersOf({ type: 'anomaly', min_score: 5, kinds: ['drop'] }, EVERYTHING), [
    { kind: 'findings', leastGravity: 5, kinds: ['drop'] },
  ])
})
