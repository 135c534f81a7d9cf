import { test } from 'tap'
import { Inhibition } from '../../../src/alerting/inhibition.js'
import type { LoggedTransition } from '../../../src/alerting/alert-log.js'
import { INACTIVE } from '../../../src/alerting/machine.js'
import { labelsOf } from '../../../src/alerting/matchers.js'

const one = (change: Partial<LoggedTransition>): LoggedTransition => ({
  id: 't',
  ruleId: 'r',
  ruleVersion: 1,
  ruleName: 'gone',
  severity: 'P2',
  groupBy: ['source'],
  group: ['shop'],
  from: 'inactive',
  to: 'firing',
  atMs: 1,
  alertId: 'a',
  value: 1,
  q: '',
  windowFromMs: 0,
  windowToMs: 1,
  reason: null,
  status: { ...INACTIVE, state: 'firing', flips: [] },
  ...change,
})
const resolved = (fired: LoggedTransition): LoggedTransition => ({
  ...fired,
  to: 'resolved',
  status: { ...INACTIVE, flips: [] },
})

void test('a silent source keeps its templates back, until it is heard again', async (t) => {
  const inhibition = new Inhibition()
  const silent = one({ kind: 'absence' })
  const template = labelsOf(one({ groupBy: ['template', 'source'], group: ['ab', 'shop'] }))
  t.equal(inhibition.of(template), null)
  inhibition.note(silent)
  t.same(inhibition.of(template), { by: 'alert', id: 'a', reason: '"gone" fires' })
  const ofOther = { ...template, group: { ...template.group, source: 'other' } }
  t.equal(inhibition.of(ofOther), null)
  t.equal(inhibition.of(labelsOf(silent)), null, 'itself')
  inhibition.note(resolved(silent))
  t.equal(inhibition.of(template), null)
})

void test('a P1 of a group keeps P3 and P4 of the group back', async (t) => {
  const inhibition = new Inhibition()
  const grave = one({ severity: 'P1' })
  inhibition.note(grave)
  t.ok(inhibition.of(labelsOf(one({ severity: 'P3', alertId: 'b' }))))
  t.ok(inhibition.of(labelsOf(one({ severity: 'P4', alertId: 'b' }))))
  t.equal(inhibition.of(labelsOf(one({ severity: 'P2' }))), null)
  t.equal(inhibition.of(labelsOf(one({ severity: 'P3', group: ['other'] }))), null)
  inhibition.note(one({ severity: 'P1', groupBy: [], group: [], alertId: 'c' }))
  const none = labelsOf(one({ severity: 'P3', groupBy: [], group: [] }))
  t.equal(inhibition.of(none), null, 'a rule without groups is of no group')
  inhibition.note(resolved(grave))
  t.equal(inhibition.of(labelsOf(one({ severity: 'P3' }))), null)
})

void test('an alert of another severity of events is of another group', async (t) => {
  const inhibition = new Inhibition()
  const groupBy = ['source', 'severity']
  inhibition.note(one({ severity: 'P1', groupBy, group: ['shop', 'CRITICAL'] }))
  const labels = (severity: string) =>
    labelsOf(one({ severity: 'P3', groupBy, group: ['shop', severity], alertId: 'b' }))
  t.equal(inhibition.of(labels('INFO')), null)
  t.ok(inhibition.of(labels('CRITICAL')))
})

void test('a silent source of P1 keeps the P3 of the source back too', async (t) => {
  const inhibition = new Inhibition()
  inhibition.note(one({ kind: 'absence', severity: 'P1' }))
  t.ok(inhibition.of(labelsOf(one({ severity: 'P3', alertId: 'b' }))))
})
