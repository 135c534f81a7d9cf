/*
 * A rule under evaluation with the counts and states of its groups. Counts are added as they are
 * read; at each multiple of `every` all groups are evaluated. A rule whose counts can only grow may
 * fire before its slot is over.
 */

import type { Count } from './count.js'
import type { CountRequest } from './counts.js'
import type { LoggedFinding } from './alert-log.js'
import { INACTIVE, step, type GroupStatus, type Transition } from './machine.js'
import type { Plan } from './rule.js'
import { SlotCounts } from './slot-counts.js'
import { judge, type GroupCounts, type KnownTime } from './verdict.js'

interface Group {
  readonly values: readonly string[]
  readonly slots: readonly SlotCounts[]
  lastSlot: number
  status: GroupStatus
  /** Whether counts were added since the last early evaluation. */
  isTouched: boolean
  finding: LoggedFinding | null
}

/** A transition of a group of a rule. */
export interface GroupTransition {
  readonly group: readonly string[]
  readonly transition: Transition
  /** The status after the transition. */
  readonly status: GroupStatus
  /** The status before the transition, which has the time when a resolved group began to fire. */
  readonly before: GroupStatus
  readonly value: number
  /** The anomaly that it is about. */
  readonly finding: LoggedFinding | null
}

/** The state of a group. */
export interface State {
  readonly group: readonly string[]
  readonly status: GroupStatus
  readonly finding: LoggedFinding | null
}
type Restored = Pick<State, 'group' | 'status'> & {
  readonly finding?: LoggedFinding | null | undefined
}

export class TrackedRule {
  readonly plan: Plan
  /** Groups beyond the limit that were left out; the evaluator resets it. */
  leftOut = 0
  /** Messages that arrived before this time are counted. */
  countedMs = 0
  readonly #groups = new Map<string, Group>()
  #nextTickMs: number

  /** Whether the rule uses the query that many rules share. */
  readonly isShared: boolean

  /** @param startMs the first evaluation is later */
  constructor(plan: Plan, startMs: number, isShared = true) {
    this.plan = plan
    this.isShared = isShared
    this.#nextTickMs = (Math.floor(startMs / plan.everyMs) + 1) * plan.everyMs
    if (plan.groupBy.length === 0) this.#groupOf([])
  }

  /** Whether counts are to be read now: at the regular times, or earlier when the rule may fire before them. */
  isDue(untilMs: number, isEarly: boolean): boolean {
    return (isEarly && this.#mayFireEarly) || this.#nextTickMs <= untilMs
  }

  /** The range to count now: since the last time, or the whole window again for rules that count by event time. */
  rangeAt(untilMs: number) {
    const { isByEventTime, everyMs, spanMs } = this.plan
    const how = { isByEventTime, isShared: this.isShared }
    if (!isByEventTime) return { fromMs: this.countedMs, toMs: untilMs, ...how }
    const toMs = Math.floor(untilMs / everyMs) * everyMs
    return { fromMs: Math.max(0, toMs - spanMs), toMs, ...how }
  }

  /** Restores the state of a group. */
  restore({ group: values, status, finding = null }: Restored): void {
    const group = this.#groupOf(values, true)
    if (group === null) return
    group.status = status
    group.finding = finding
  }

  /** Drops the counts and the state of a group. */
  forget(values: readonly string[]): void {
    this.#groups.delete(JSON.stringify(values))
  }

  get states(): readonly State[] {
    return [...this.#groups.values()]
      .filter(({ status }) => status.seq > 0)
      .map(({ values, status, finding }) => ({ group: values, status, finding }))
  }

  /** @param counter index of the plan's counter */
  add(counter: number, counts: readonly Count[]): void {
    // Late messages change the counts of earlier slots, so all counts are replaced.
    if (this.plan.isByEventTime)
      for (const { slots } of this.#groups.values()) slots[counter]?.clear()
    for (const count of counts) {
      const group = this.#groupOf(count.group)
      if (group !== null) note(group, counter, count)
    }
  }

  /**
   * Evaluates every group at each due time.
   *
   * @param untilMs messages that arrived before this time are counted
   */
  evaluate(untilMs: number, known: KnownTime): readonly GroupTransition[] {
    const made: GroupTransition[] = []
    const { everyMs } = this.plan
    // By event time only the newest due time is evaluated, because the counts as of an earlier one are not known.
    if (this.plan.isByEventTime)
      this.#nextTickMs = Math.max(this.#nextTickMs, Math.floor(untilMs / everyMs) * everyMs)
    const isTick = this.#nextTickMs <= untilMs
    for (; this.#nextTickMs <= untilMs; this.#nextTickMs += everyMs) {
      const endSlot = this.#nextTickMs / everyMs
      for (const group of this.#groups.values())
        this.#judge(group, { endSlot, atMs: this.#nextTickMs, known, isEarly: false }, made)
    }
    if (this.#mayFireEarly)
      for (const group of this.#groups.values()) {
        if (!group.isTouched) continue
        group.isTouched = false
        const endSlot = Math.floor(untilMs / everyMs) + 1
        this.#judge(group, { endSlot, atMs: untilMs, known, isEarly: true }, made)
      }
    if (isTick) this.#forget(Math.floor(untilMs / everyMs))
    return made
  }

  #judge(
    group: Group,
    moment: {
      readonly endSlot: number
      readonly atMs: number
      readonly known: KnownTime
      readonly isEarly: boolean
    },
    made: GroupTransition[],
  ): void {
    const { endSlot, atMs, known, isEarly } = moment
    // After a restart, times before the last transition are not evaluated again.
    if (atMs <= group.status.sinceMs) return
    const judged = judge(this.plan, group satisfies GroupCounts, endSlot, known)
    if (judged === null || (isEarly && judged.verdict !== 'crossed')) return
    const before = group.status
    const { status, transition } = step(before, this.plan, { atMs, verdict: judged.verdict })
    if (transition === null) return
    group.status = status
    const { values, finding } = group
    made.push({ group: values, transition, status, before, value: judged.value, finding })
  }

  /** Whether the rule may fire before its slot is over, because its counts can only grow. */
  get #mayFireEarly(): boolean {
    const { kind } = this.plan.rule.fields
    if (this.plan.isByEventTime) return false
    if (kind.type === 'new_template') return kind.also_reappeared_after === undefined
    return kind.type === 'threshold' && (kind.op === '>' || kind.op === '>=')
  }

  #groupOf(values: readonly string[], isKnown = false): Group | null {
    const key = JSON.stringify(values)
    const found = this.#groups.get(key)
    if (found !== undefined) return found
    if (!isKnown && this.#groups.size >= this.plan.maxGroups) {
      this.leftOut++
      return null
    }
    const slots = this.plan.counters.map(() => new SlotCounts())
    const fresh = { lastSlot: 0, status: INACTIVE, isTouched: false, finding: null }
    const group: Group = { values, slots, ...fresh }
    this.#groups.set(key, group)
    return group
  }

  /** Drops counts older than any window, and groups without counts. */
  #forget(slot: number): void {
    const { spanMs, everyMs, groupBy } = this.plan
    const oldest = slot - spanMs / everyMs
    for (const [key, { slots, status, lastSlot }] of this.#groups) {
      for (const counts of slots) counts.forgetBefore(oldest)
      const isEmpty = slots.every((counts) => counts.isEmpty) && lastSlot < oldest
      if (isEmpty && groupBy.length > 0 && status.state === 'inactive') this.#groups.delete(key)
    }
  }
}

function note(group: Group, counter: number, { slot, count, finding }: Count): void {
  const slots = group.slots[counter]
  if (finding === undefined) slots?.add(slot, count)
  else slots?.put(slot, count)
  if (finding !== undefined && (slot >= group.lastSlot || group.finding === null))
    group.finding = finding
  if (counter === 0) group.lastSlot = Math.max(group.lastSlot, slot)
  group.isTouched = true
}

/**
 * The count requests of a rule, in the order of its counters.
 *
 * @param isLoad whether whole windows are read at the start of tracking
 */
export function requestsOf(plan: Plan, isLoad: boolean): readonly CountRequest[] {
  const isLast = isLoad && plan.rule.fields.kind.type === 'absence'
  const { groupBy, everyMs, maxAgeMs, isByEventTime } = plan
  return plan.counters.map((counter) => ({
    counter,
    groupBy,
    everyMs,
    maxAgeMs,
    isLast,
    isByEventTime,
  }))
}
