/*
 * A rule as the evaluator follows it: the counts of its groups, and their states. Counts are added as they arrive; every
 * `every` each group is judged at that moment, in order. A count that only grows may fire before its slot is over.
 */

import type { Count } from './count.js'
import type { CountRequest } from './counts.js'
import type { LoggedFinding } from './log.js'
import { INACTIVE, step, type GroupStatus, type Transition } from './machine.js'
import type { Plan } from './rule.js'
import { SlotCounts } from './slot-counts.js'
import { judge, type GroupCounts, type KnownTime } from './verdict.js'

interface Group {
  readonly values: readonly string[]
  readonly slots: readonly SlotCounts[]
  lastSlot: number
  status: GroupStatus
  /** Whether anything was counted since it was last judged early. */
  isTouched: boolean
  finding: LoggedFinding | null
}

/** A transition of a group of a rule. */
export interface GroupTransition {
  readonly group: readonly string[]
  readonly transition: Transition
  /** After it. */
  readonly status: GroupStatus
  /** The status before, which tells when a resolved group had begun to fire. */
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
  /** Groups that were left out since the last call, because there are too many. */
  leftOut = 0
  /** Everything that arrived before is counted. */
  countedMs = 0
  readonly #groups = new Map<string, Group>()
  #nextTickMs: number

  /** Whether the rule is evaluated by the ClickHouse query that many rules share. */
  readonly isShared: boolean

  /** @param startMs evaluations after it are made */
  constructor(plan: Plan, startMs: number, isShared = true) {
    this.plan = plan
    this.isShared = isShared
    this.#nextTickMs = (Math.floor(startMs / plan.everyMs) + 1) * plan.everyMs
    if (plan.groupBy.length === 0) this.#groupOf([])
  }

  /** Whether the rule has to be counted now: at its own times, or earlier where it may fire before them. */
  isDue(untilMs: number, isEarly: boolean): boolean {
    return (isEarly && this.#mayFireEarly) || this.#nextTickMs <= untilMs
  }

  /** What has to be counted now: what arrived since the last time, or the whole past of the last moment anew. */
  rangeAt(untilMs: number) {
    const { isByEventTime, everyMs, spanMs } = this.plan
    const how = { isByEventTime, isShared: this.isShared }
    if (!isByEventTime) return { fromMs: this.countedMs, toMs: untilMs, ...how }
    const toMs = Math.floor(untilMs / everyMs) * everyMs
    return { fromMs: Math.max(0, toMs - spanMs), toMs, ...how }
  }

  /** Takes over the state of a group. */
  restore({ group: values, status, finding = null }: Restored): void {
    const group = this.#groupOf(values, true)
    if (group === null) return
    group.status = status
    group.finding = finding
  }

  /** Counts of the group begin anew. */
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
    // Messages that came late are among those of earlier slots.
    if (this.plan.isByEventTime)
      for (const { slots } of this.#groups.values()) slots[counter]?.clear()
    for (const count of counts) {
      const group = this.#groupOf(count.group)
      if (group !== null) note(group, counter, count)
    }
  }

  /** Judges every group at each moment that is due. @param untilMs everything that arrived before is counted */
  evaluate(untilMs: number, known: KnownTime): readonly GroupTransition[] {
    const made: GroupTransition[] = []
    const { everyMs } = this.plan
    // By event time only the newest moment is judged: nothing records which messages had arrived at an earlier one.
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
    // An evaluation that is repeated after a restart begins after the last transition.
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

  /** Counts of slots that are not over can only grow. */
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

  /** Drops counts that no window reaches any more, and groups without any. */
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

/** The requests of a rule's counters, in their order. @param isLoad whether whole windows are counted from what is stored */
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
