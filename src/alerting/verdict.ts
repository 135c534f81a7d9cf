/*
 * The verdict of a rule on the counts of one group at one time. The time is a multiple of the slot
 * since 1970, so that the same counts give the same verdict later.
 */

import type { GroupStatus, Observation } from './machine.js'
import { isAgainstPast, type Plan } from './rule.js'
import type { SlotCounts } from './slot-counts.js'

/** The counts of a group, for each counter of the rule: a count by slot, without empty slots. */
export interface GroupCounts {
  readonly slots: readonly SlotCounts[]
  /** The last slot in which its first counter counted anything. */
  readonly lastSlot: number
  readonly status: Pick<GroupStatus, 'state' | 'sinceMs'>
}

interface Verdict {
  readonly verdict: Observation['verdict']
  readonly value: number
}

/** The time range in which no message can have been missed. */
export interface KnownTime {
  /** Since when messages could arrive without a gap; ms. */
  readonly aliveSinceMs: number
}

/**
 * @param endSlot the slot after the last one of the window
 * @returns null when nothing can be said
 */
export function judge(
  plan: Plan,
  counts: GroupCounts,
  endSlot: number,
  known: KnownTime,
): Verdict | null {
  const [n, m] = plan.nOfM
  const last = judgeOnce(plan, counts, endSlot, known)
  if (last === null || m === 1) return last
  let crossed = last.verdict === 'crossed' ? 1 : 0
  for (let back = 1; back < m; back++) {
    const verdict = judgeOnce(plan, counts, endSlot - back, known)?.verdict
    if (verdict === 'crossed') crossed++
  }
  if (crossed >= n) return { ...last, verdict: 'crossed' }
  return last.verdict === 'crossed' ? { ...last, verdict: 'between' } : last
}

function judgeOnce(
  plan: Plan,
  counts: GroupCounts,
  endSlot: number,
  known: KnownTime,
): Verdict | null {
  const { kind } = plan.rule.fields
  const length = plan.windowMs / plan.everyMs
  const sum = (counter: number): number =>
    counts.slots[counter]?.sum(endSlot - length, endSlot) ?? 0
  switch (kind.type) {
    case 'threshold':
      return compare(sum(0), kind, isWhole(plan, endSlot, known))
    case 'ratio':
      return share(sum(0), sum(1), leastOf(plan), (value) =>
        compare(value, kind, isWhole(plan, endSlot, known)),
      )
    case 'value':
      return metricVerdict(kind, counts, endSlot)
    case 'absence':
      return absence(plan, counts, endSlot, known)
    case 'change':
      return isWhole(plan, endSlot, known, isAgainstPast(kind) ? 1 : 2)
        ? change(kind, sum(0), countBefore(plan, counts, endSlot))
        : null
    case 'anomaly':
      return anomaly(plan, counts, endSlot)
    case 'new_template':
      return compare(sum(0), { op: '>=', fire: leastOf(plan) }, true)
    case 'dead_letters':
      return share(sum(0), sum(0) + sum(1), leastOf(plan), (value) =>
        compare(value, { op: '>=', fire: kind.share }, true),
      )
  }
}

/** The earlier count that a change is measured against. */
function countBefore(plan: Plan, { slots }: GroupCounts, endSlot: number): number {
  const length = plan.windowMs / plan.everyMs
  return isAgainstPast(plan.rule.fields.kind)
    ? (slots[1]?.at(endSlot - 1) ?? 0)
    : (slots[0]?.sum(endSlot - 2 * length, endSlot - length) ?? 0)
}

/** The verdict on a metric. A window without a value does not fire; rules of the kind `absence` detect silence. */
function metricVerdict(lines: Lines, counts: GroupCounts, endSlot: number): Verdict | null {
  const value = counts.slots[0]?.at(endSlot - 1) ?? null
  return value === null ? { verdict: 'calm', value: 0 } : compare(value, lines, true)
}

/** The least number of messages in a window; with fewer the group is calm. */
const leastOf = ({ rule }: Plan): number => {
  const { kind } = rule.fields
  const fallback = kind.type === 'dead_letters' ? 100 : 1
  return 'at_least' in kind ? (kind.at_least ?? fallback) : fallback
}

/** Whether messages could arrive during the whole window. Otherwise a low count means nothing. */
const isWhole = (
  { windowMs, everyMs }: Plan,
  endSlot: number,
  { aliveSinceMs }: KnownTime,
  windows = 1,
): boolean => endSlot * everyMs - windows * windowMs >= aliveSinceMs

type Op = '>' | '>=' | '<' | '<='

interface Lines {
  readonly op: Op
  readonly fire: number
  readonly recover?: number
}

const HOLDS: Readonly<Record<Op, (value: number, line: number) => boolean>> = {
  '>': (value, line) => value > line,
  '>=': (value, line) => value >= line,
  '<': (value, line) => value < line,
  '<=': (value, line) => value <= line,
}

function compare(
  value: number,
  { op, fire, recover = fire }: Lines,
  isFull: boolean,
): Verdict | null {
  const isBelow = op === '<' || op === '<='
  const holds = HOLDS[op]
  if (holds(value, fire)) return isBelow && !isFull ? null : { verdict: 'crossed', value }
  const isCalm = !holds(value, recover)
  return { verdict: isCalm ? 'calm' : 'between', value }
}

/** The verdict on a share of messages. With fewer than `atLeast` it is calm, because a share of few messages means nothing. */
const share = (
  part: number,
  total: number,
  atLeast: number,
  judged: (value: number) => Verdict | null,
): Verdict | null =>
  total < atLeast ? { verdict: 'calm', value: 0 } : judged(part / Math.max(1, total))

/** The value is the seconds since the last arrival. */
function absence(
  { windowMs, everyMs }: Plan,
  { lastSlot }: GroupCounts,
  endSlot: number,
  { aliveSinceMs }: KnownTime,
): Verdict | null {
  // A group without any message cannot be silent.
  if (lastSlot === 0) return null
  const silentMs = (endSlot - lastSlot - 1) * everyMs
  const value = silentMs / 1000
  if (silentMs < windowMs) return { verdict: 'calm', value }
  return endSlot * everyMs - aliveSinceMs >= windowMs ? { verdict: 'crossed', value } : null
}

/** An anomaly fires while it lasts, and once when it was over on detection. The value is its gravity. */
function anomaly(
  { everyMs }: Plan,
  { slots: [gravities], lastSlot, status: { state, sinceMs } }: GroupCounts,
  endSlot: number,
): Verdict {
  const now = gravities?.at(endSlot - 1) ?? null
  if (now !== null) return { verdict: 'crossed', value: now }
  const last = gravities?.at(lastSlot) ?? null
  const isOver = lastSlot < endSlot && (lastSlot + 1) * everyMs > sinceMs
  return last !== null && isOver && state === 'inactive'
    ? { verdict: 'crossed', value: last }
    : { verdict: 'calm', value: 0 }
}

/** The value is the count divided by the earlier one, or by 1 when that is 0. */
function change(
  { factor, at_least: atLeast = 10 }: { readonly factor: number; readonly at_least?: number },
  now: number,
  before: number,
): Verdict {
  const value = now / Math.max(1, before)
  if (Math.max(now, before) < atLeast) return { verdict: 'calm', value }
  return { verdict: value >= factor || value <= 1 / factor ? 'crossed' : 'calm', value }
}
