/* Builds logged transitions, and the titles of their alerts. */

import type { Priority } from '../model/event.js'
import { alertIdOf, transitionId, type LoggedFinding, type LoggedTransition } from './alert-log.js'
import { step, type Transition } from './machine.js'
import type { Plan, Rule } from './rule.js'
import type { RuleFields } from './rule-fields.js'
import type { GroupTransition, State } from './tracked-rule.js'

export function toLogged(
  plan: Plan,
  { group, transition, status, before, value, finding }: GroupTransition,
): LoggedTransition {
  const { rule } = plan
  const firingSeq = status.firingSeq === 0 ? before.firingSeq : status.firingSeq
  return {
    id: transitionId(rule, group, status.seq),
    ruleId: rule.id,
    ruleVersion: rule.version,
    ruleName: rule.fields.name,
    severity: severityOf(rule.fields, finding),
    groupBy: [...plan.groupBy],
    group: [...group],
    from: transition.from,
    to: transition.to,
    atMs: transition.atMs,
    alertId: firingSeq === 0 ? null : alertIdOf(rule.id, group, firingSeq),
    value,
    q: rule.fields.q ?? '',
    ...optionalOf(rule.fields),
    ...ofFinding(finding),
    windowFromMs: finding?.startedAtMs ?? transition.atMs - plan.windowMs,
    windowToMs: transition.atMs,
    reason: null,
    startedAtMs: status.firingSinceMs || before.firingSinceMs || null,
    ...toNotify(plan),
    kind: rule.fields.kind.type,
    status: { ...status, flips: [...status.flips] },
  }
}

/** An alert of an anomaly has the anomaly's priority, but at most the severity of its rule. */
const severityOf = ({ severity }: RuleFields, finding: LoggedFinding | null): Priority =>
  finding === null || finding.priority < severity ? severity : finding.priority

function ofFinding(finding: LoggedFinding | null) {
  if (finding === null) return {}
  const { title, priority, startedAtMs } = finding
  return { finding: { title, priority, startedAtMs } }
}

const toNotify = ({ rule, notify }: Plan) => ({
  channels: rule.fields.notify?.channels ?? [],
  tellsResolved: rule.fields.notify?.on_resolve ?? true,
  ...notify,
})

function optionalOf({ kind, runbook, opens }: RuleFields) {
  return {
    ...(runbook === undefined ? {} : { runbook }),
    ...(opens === undefined ? {} : { opens }),
    ...(kind.type === 'ratio' ? { part: kind.part } : {}),
  }
}

/**
 * A transition with the rule name, severity and channels that the alert began with: an edit of the rule does not
 * rename an alert that channels were told of.
 *
 * @param before the last transition of the alert
 */
export function ofAlert(
  one: LoggedTransition,
  before: LoggedTransition | undefined,
): LoggedTransition {
  if (before === undefined || one.from === one.to) return one
  const { ruleName, severity, channels = [], formerChannels = [] } = before
  return { ...one, ruleName, severity, channels, formerChannels }
}

/**
 * The transition that gives a firing alert the other channels of its changed rule.
 *
 * @returns none when they are the same
 */
export function channelChangeOf(
  plan: Plan,
  before: LoggedTransition,
  atMs: number,
): readonly LoggedTransition[] {
  const { rule } = plan
  const notify = toNotify(plan)
  const { channels: had = [], formerChannels = [], status, group } = before
  const notified = [...had, ...formerChannels]
  const isSame = had.join() === notify.channels.join() && before.repeatMs === notify.repeatMs
  if (isSame) return []
  const seq = status.seq + 1
  return [
    {
      ...before,
      ...notify,
      formerChannels: notified.filter((id) => !notify.channels.includes(id)),
      newChannels: notify.channels.filter((id) => !notified.includes(id)),
      id: transitionId(rule, group, seq),
      ruleVersion: rule.version,
      from: status.state,
      to: status.state,
      atMs,
      reason: 'the notices of the rule were changed',
      status: { ...status, seq },
    },
  ]
}

/** The state of a group in the form of its last transition. */
export function toState(plan: Plan, { group, status, finding }: State): LoggedTransition {
  const { state, sinceMs } = status
  const transition: Transition = { from: state, to: state, atMs: sinceMs }
  return toLogged(plan, { group, transition, status, before: status, value: 0, finding })
}

/**
 * Splits transitions into inserts with at most one of each group. The next instance reads only the
 * last transition of a group, and that must name the alert.
 */
export function atMostOneOfEachGroup(
  made: readonly LoggedTransition[],
): readonly (readonly LoggedTransition[])[] {
  const turns: LoggedTransition[][] = []
  const counts = new Map<string, number>()
  for (const one of made) {
    const group = JSON.stringify([one.ruleId, one.group])
    const turn = counts.get(group) ?? 0
    counts.set(group, turn + 1)
    const some = turns[turn]
    if (some === undefined) turns.push([one])
    else some.push(one)
  }
  return turns
}

/**
 * The transition that ends a group's alert regardless of its counts.
 *
 * @returns none for an inactive group
 */
export function ended(last: LoggedTransition, reason: string): readonly LoggedTransition[] {
  const { state } = last.status
  if (state === 'inactive') return []
  const atMs = Math.max(Date.now(), last.status.sinceMs + 1)
  const isFiring = state !== 'pending'
  const calm = {
    ...last.status,
    state: isFiring ? ('recovering' as const) : state,
    isFlapping: false,
  }
  const { status } = step(
    { ...calm, sinceMs: 0 },
    { forMs: 0, keepFiringMs: 0 },
    { atMs, verdict: 'calm' },
  )
  const id = transitionId({ id: last.ruleId, version: last.ruleVersion }, last.group, status.seq)
  const to = isFiring ? 'resolved' : 'inactive'
  const rest = { value: null, reason, windowFromMs: atMs, windowToMs: atMs }
  return [
    {
      ...last,
      ...rest,
      id,
      from: state,
      to,
      atMs,
      status: { ...status, flips: [...status.flips] },
    },
  ]
}

/** Why the alerts of a rule end. @param rule the rule as it is now; undefined where it was deleted or disabled */
export const reasonOf = (rule: Rule | undefined): string =>
  rule === undefined ? 'the rule was deleted or disabled' : 'the rule was changed'

export function titleOf(one: LoggedTransition): string {
  const { ruleName, groupBy, group, value, finding, kind } = one
  if (finding !== undefined) return finding.title
  const where = groupBy
    .map((name, i) => `${name} ${group[i] === '' ? '(none)' : group[i]}`)
    .join(', ')
  const amount = value === null ? '' : `${Number(value.toPrecision(6))}`
  const shown = amount === '' ? '' : `: ${kind === 'absence' ? `nothing for ${amount} s` : amount}`
  return `${ruleName}${where === '' ? '' : ` (${where})`}${shown}`.slice(0, 300)
}
