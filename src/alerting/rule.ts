/*
 * An alert rule: the events that it counts, their groups, and when it fires. A rule is stored in
 * the form of the API; its version grows with each change.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import { DocumentOf, type Document } from '../records/documents.js'
import { FINDING_GROUP, NEWS_MS } from './finding-counts.js'
import { countersOf, readLine, type Counter, type RuleFault } from './counter.js'
import { toField } from '../query/fields.js'
import { GROUP_FIELDS, RuleFields } from './rule-fields.js'
import { toMs, type Kind } from './rule-kind.js'

/** A rule as it is stored. */
export const RuleDoc = DocumentOf(RuleFields)
export type Rule = Document<RuleFields>

/** A rule prepared for evaluation: durations in ms, queries parsed. */
export interface Plan {
  readonly rule: Rule
  readonly counters: readonly Counter[]
  readonly groupBy: readonly string[]
  readonly maxGroups: number
  readonly everyMs: number
  readonly windowMs: number
  /** The greatest age on arrival of a message that is counted. */
  readonly maxAgeMs: number
  /** The time range that an evaluation covers. */
  readonly spanMs: number
  readonly forMs: number
  readonly keepFiringMs: number
  /** Whether messages are counted by their own time instead of their arrival. */
  readonly isByEventTime: boolean
  readonly nOfM: readonly [n: number, m: number]
  readonly notify: {
    readonly waitMs: number
    readonly intervalMs: number
    /** 0 for never. */
    readonly repeatMs: number
  }
}

const DEFAULT_EVERY_MS = 10 * SECOND_MS
const MAX_WINDOW_MS = DAY_MS
const MIN_WINDOW_MS = 10 * SECOND_MS
const MAX_KNOWN_MS = 7 * DAY_MS
const MAX_EVERY_MS = 10 * MINUTE_MS
/** The most slots of a window. */
const MAX_SLOTS = 1_440
/** @returns the plan, or what is wrong with the rule */
export function planRule(rule: Rule): Plan | RuleFault {
  const { fields } = rule
  const query = readLine('q', fields.q ?? '')
  if ('path' in query) return query
  const counters = countersOf(fields.kind, query.query)
  if ('path' in counters) return counters
  const plan = {
    rule,
    counters,
    groupBy: GROUPS[fields.kind.type] ?? fields.group_by ?? [],
    maxGroups: fields.max_groups ?? 500,
    isByEventTime: fields.time === 'event',
    ...timesOf(fields),
    notify: notifyOf(fields),
  }
  return faultOf(plan) ?? plan
}

const faultOf = (plan: Plan): RuleFault | null =>
  delayFault(plan) ??
  everyFault(plan) ??
  notifyFault(plan) ??
  spanFault(plan) ??
  shareFault(plan.rule.fields) ??
  groupFault(plan.rule.fields) ??
  timeFault(plan.rule.fields)

function timeFault({ time, kind }: RuleFields): RuleFault | null {
  const isCounted = kind.type === 'threshold' || kind.type === 'ratio' || kind.type === 'change'
  if (time !== 'event' || (isCounted && !isAgainstPast(kind))) return null
  return { path: 'time', message: 'is for threshold, ratio and change against the window before' }
}

/** Kinds that have groups of their own. */
const GROUPS: Readonly<Partial<Record<Kind['type'], readonly string[]>>> = {
  new_template: ['template'],
  anomaly: FINDING_GROUP,
}

function timesOf(fields: RuleFields) {
  const { kind, every, for: pending = '0s', keep_firing_for: keep = '5m' } = fields
  const ownMs = toMs(windowOf(kind) ?? '0s')
  const everyMs = every === undefined ? everyFor(kind, ownMs) : toMs(every)
  // Anomalies have no window: each evaluation covers the ones that last then.
  const windowMs = kind.type === 'anomaly' ? everyMs : ownMs
  const [n, m] = fields.n_of_m ?? [1, 1]
  const spanMs = spanOf(fields, windowMs) + (m - 1) * everyMs
  const nOfM = [n, m] as const
  const maxAgeMs = toMs(fields.max_age ?? '1h')
  const delays = { forMs: toMs(pending), keepFiringMs: toMs(keep) }
  return { windowMs, everyMs, spanMs, maxAgeMs, ...delays, nOfM }
}

function delayFault({ rule, maxAgeMs, forMs, keepFiringMs }: Plan): RuleFault | null {
  const { runbook } = rule.fields
  if (runbook !== undefined && !URL.canParse(runbook))
    return { path: 'runbook', message: 'is not a URL' }
  const delays = { max_age: maxAgeMs, for: forMs, keep_firing_for: keepFiringMs }
  for (const [path, ms] of Object.entries(delays))
    if (ms > MAX_KNOWN_MS) return { path, message: 'is at most 7d' }
  return null
}

/** The default window of a rule of the kind `new_template`; no other kind has a default. */
const NEW_TEMPLATE_WINDOW = '15m'

const windowOf = (kind: Kind): string | null => {
  if (kind.type === 'anomaly') return null
  if (kind.type === 'absence') return kind.for
  return kind.window ?? NEW_TEMPLATE_WINDOW
}

function notifyOf({ notify }: RuleFields): Plan['notify'] {
  const { group_wait: wait = '10s', group_interval: interval = '5m', repeat = '4h' } = notify ?? {}
  const repeatMs = repeat === 'never' ? 0 : toMs(repeat)
  return { waitMs: toMs(wait), intervalMs: toMs(interval), repeatMs }
}

function notifyFault({ notify }: Plan): RuleFault | null {
  const { waitMs, intervalMs, repeatMs } = notify
  if (waitMs > HOUR_MS) return { path: 'notify.group_wait', message: 'is at most 1h' }
  if (intervalMs > DAY_MS) return { path: 'notify.group_interval', message: 'is at most 1d' }
  if (repeatMs > 0 && (repeatMs < MINUTE_MS || repeatMs > 30 * DAY_MS))
    return { path: 'notify.repeat', message: 'is from 1m to 30d, or `never`' }
  return null
}

function spanOf({ kind }: RuleFields, windowMs: number): number {
  if (kind.type === 'anomaly') return NEWS_MS + HOUR_MS
  // A metric is queried over its whole window.
  if (kind.type === 'value') return 0
  if (kind.type === 'change') return isAgainstPast(kind) ? windowMs : 2 * windowMs
  return kind.type === 'absence' ? toMs(kind.known ?? '7d') : windowMs
}

const everyFor = (kind: Kind, windowMs: number): number => {
  const isLong = windowMs > MAX_SLOTS * DEFAULT_EVERY_MS || kind.type === 'anomaly'
  return isLong || (isAgainstPast(kind) && windowMs % MINUTE_MS === 0)
    ? MINUTE_MS
    : DEFAULT_EVERY_MS
}

/** Whether each evaluation queries a window of a day or a week ago. */
export const isAgainstPast = (kind: Kind): boolean =>
  kind.type === 'change' && (kind.against ?? 'before') !== 'before'

const windowPath = ({ rule: { fields } }: Plan): string =>
  fields.kind.type === 'absence' ? 'kind.for' : 'kind.window'

function everyFault(plan: Plan): RuleFault | null {
  const { everyMs, windowMs, nOfM } = plan
  const path = windowPath(plan)
  if (everyMs > MAX_EVERY_MS) return { path: 'every', message: 'is at most 10m' }
  if (isAgainstPast(plan.rule.fields.kind) && DAY_MS % everyMs !== 0)
    return { path: 'every', message: 'must divide a day' }
  if (windowMs % everyMs !== 0) return { path, message: 'must be a multiple of `every`' }
  if (windowMs / everyMs > MAX_SLOTS)
    return { path, message: `is at most ${MAX_SLOTS} times \`every\`` }
  return nOfM[0] > nOfM[1] ? { path: 'n_of_m', message: 'n is at most m' } : null
}

function spanFault(plan: Plan): RuleFault | null {
  const { windowMs, rule } = plan
  const { kind } = rule.fields
  const path = windowPath(plan)
  const spanMs = spanOf(rule.fields, windowMs)
  if (kind.type === 'anomaly') return null
  if (windowMs < MIN_WINDOW_MS || windowMs > MAX_WINDOW_MS)
    return { path, message: 'is from 10s to 24h' }
  if (kind.type === 'absence')
    return spanMs > MAX_KNOWN_MS || spanMs < windowMs
      ? { path: 'kind.known', message: 'is from `for` to 7d' }
      : null
  return spanMs > MAX_WINDOW_MS ? { path, message: 'is at most 12h' } : null
}

/** Rejects a share above 1, which is probably meant as a percentage and would never be reached. */
function shareFault({ kind }: RuleFields): RuleFault | null {
  if (kind.type !== 'ratio') return null
  const { fire, recover = fire } = kind
  const isShare = (value: number): boolean => value >= 0 && value <= 1
  if (isShare(fire) && isShare(recover)) return null
  return { path: isShare(fire) ? 'kind.recover' : 'kind.fire', message: 'is a share, from 0 to 1' }
}

function groupFault({ kind, group_by: groupBy = [] }: RuleFields): RuleFault | null {
  for (const name of groupBy)
    if (toField(name).kind === 'builtin' && !GROUP_FIELDS.includes(name))
      return {
        path: 'group_by',
        message: `\`${name}\` is not one of ${GROUP_FIELDS.join(', ')}; an attribute of that name is \`tag.${name}\``,
      }
  const isDead = kind.type === 'dead_letters'
  if (isDead && groupBy.some((name) => name !== 'source'))
    return { path: 'group_by', message: 'dead letters are grouped by source alone' }
  const own = GROUPS[kind.type]
  if (own !== undefined && groupBy.length > 0)
    return { path: 'group_by', message: `its groups are by ${own.join(', ')}` }
  return null
}

/** The settings that decide when a rule fires. A change of others keeps the states of its groups. */
export const meaningOf = ({
  fields: { q, kind, group_by: groupBy, max_age: maxAge, time },
}: Pick<Rule, 'fields'>): string => JSON.stringify([q, kind, groupBy, maxAge, time])

/** Whether `meaningOf` a rule is known to be the same as in an earlier version. */
export function isStill(rule: Rule | undefined, version: number): boolean {
  if (rule === undefined) return false
  const before = rule.earlier?.find((one) => one.version === version)
  return before === undefined || meaningOf(before) === meaningOf(rule)
}
