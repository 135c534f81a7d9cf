import type { LoggedTransition } from '../../src/alerting/alert-log.js'
import { INACTIVE } from '../../src/alerting/machine.js'

/** A group of a rule begins to fire. */
export const TRANSITION: LoggedTransition = {
  id: 'transition',
  ruleId: 'rule',
  ruleVersion: 1,
  ruleName: 'rule',
  severity: 'P2',
  groupBy: [],
  group: [],
  from: 'inactive',
  to: 'firing',
  atMs: 0,
  alertId: 'alert',
  value: 1,
  q: '',
  windowFromMs: 0,
  windowToMs: 0,
  reason: null,
  status: { ...INACTIVE, state: 'firing', seq: 1, flips: [] },
}
