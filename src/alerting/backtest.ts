/*
 * Back-tests a rule: evaluates its windows over stored events with the function and the state
 * machine of the live evaluation. It assumes that collection had no gap.
 */

import { AppError } from '../model/errors.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import { TooManyGroups, type CountReader } from './counts.js'
import { isNotified } from './machine.js'
import { planRule, type Plan } from './rule.js'
import type { RuleFields } from './rule-fields.js'
import { asRule, checkedPlan } from './rules.js'
import { TrackedRule, type GroupTransition } from './tracked-rule.js'

export interface Backtest {
  readonly fromMs: number
  /** The evaluation reached this time. */
  readonly untilMs: number
  readonly isComplete: boolean
  readonly everyMs: number
  /** The number of times that a group began to fire. */
  readonly firing: number
  readonly groups: number
  readonly leftOut: number
  /** The first ones. */
  readonly transitions: readonly GroupTransition[]
  readonly transitionCount: number
}

export const MAX_TRANSITIONS = 1_000
const BUDGET_MS = 25 * SECOND_MS
const QUESTION_MS = 30 * SECOND_MS
const CHUNK_MS = 3 * HOUR_MS
const MAX_CHUNK_SLOTS = 10_000

export const createBacktest =
  (counts: CountReader) =>
  async (fields: RuleFields, days: number, signal: AbortSignal): Promise<Backtest> => {
    const plan = coarsePlan(checkedPlan(fields, 'rule.'))
    const endMs = Math.floor(Date.now() / plan.everyMs) * plan.everyMs
    const fromMs = endMs - days * DAY_MS
    // All events are stored already, so no range has to be read again for late ones.
    const tracked = new TrackedRule({ ...plan, isByEventTime: false }, fromMs - 1)
    const read = createReading(counts, tracked, signal)
    const until = performance.now() + BUDGET_MS
    const transitions: GroupTransition[] = []
    let [count, firing, leftOut] = [0, 0, 0]
    const known = { aliveSinceMs: 0 }
    let atMs = fromMs
    let chunkMs = chunkOf(plan)
    const longestMs = Math.min(DAY_MS, MAX_CHUNK_SLOTS * plan.everyMs)
    // Of the past, anomalies count only while they last, so none is read from before the range.
    if (plan.rule.fields.kind.type !== 'anomaly') await read(fromMs - plan.spanMs, fromMs)
    while (atMs < endMs && performance.now() < until) {
      const nextMs = Math.min(endMs, atMs + chunkMs)
      const begunMs = performance.now()
      await read(atMs, nextMs)
      // A query that took less than a second reads little, so the next one may cover a longer range.
      const isQuick = performance.now() - begunMs < SECOND_MS
      if (isQuick && 2 * chunkMs <= longestMs) chunkMs *= 2
      for (const one of tracked.evaluate(nextMs, known)) {
        count++
        if (isNotified(one.transition) && one.transition.to === 'firing') firing++
        if (transitions.length < MAX_TRANSITIONS) transitions.push(one)
      }
      leftOut = Math.max(leftOut, tracked.leftOut)
      tracked.leftOut = 0
      atMs = nextMs
    }
    const groups = new Set(transitions.map(({ group }) => JSON.stringify(group))).size
    const { everyMs } = plan
    const range = { fromMs, untilMs: atMs, isComplete: atMs === endMs, everyMs }
    return { ...range, firing, groups, leftOut, transitions, transitionCount: count }
  }

/**
 * Evaluates a rule at most once a minute, because 30 days have 259,200 intervals of ten seconds. A
 * metric is computed over its whole window each time, so a long window is evaluated every ten
 * minutes.
 */
function coarsePlan(plan: Plan): Plan {
  const { fields } = plan.rule
  const isLong = fields.kind.type === 'value' && plan.windowMs % (10 * MINUTE_MS) === 0
  const everyMs = isLong ? 10 * MINUTE_MS : MINUTE_MS
  const isCoarse = plan.everyMs < everyMs && plan.windowMs % everyMs === 0
  if (!isCoarse || fields.n_of_m !== undefined) return plan
  const coarse = planRule(asRule({ ...fields, every: `${everyMs / SECOND_MS}s` }))
  return 'path' in coarse ? plan : coarse
}

const chunkOf = ({ everyMs }: Plan): number =>
  Math.max(everyMs, Math.floor(CHUNK_MS / everyMs) * everyMs)

/** Reads a range in one query, or in several when one would return too many groups. */
function createReading(counts: CountReader, tracked: TrackedRule, signal: AbortSignal) {
  const { counters, groupBy, everyMs, maxAgeMs, rule } = tracked.plan
  const isByEventTime = rule.fields.time === 'event'
  const common = { groupBy, everyMs, maxAgeMs, isByEventTime, isLast: false }
  const requests = counters.map((counter) => ({ counter, ...common }))
  const read = async (fromMs: number, toMs: number): Promise<void> => {
    signal.throwIfAborted()
    if (fromMs >= toMs) return
    const range = { fromMs, toMs, isPast: true }
    const answers = await counts.read(requests, range, { timeoutMs: QUESTION_MS, isSearch: true })
    const slots = Math.floor((toMs - fromMs) / everyMs)
    if (answers.some((answer) => answer instanceof TooManyGroups) && slots > 1) {
      const middleMs = fromMs + Math.ceil(slots / 2) * everyMs
      await read(fromMs, middleMs)
      return await read(middleMs, toMs)
    }
    answers.forEach((answer, counter) => {
      if (answer instanceof Error) throw refusal(answer)
      tracked.add(counter, answer)
    })
  }
  return read
}

const refusal = (cause: Error): AppError =>
  new AppError('validation_error', `the rule cannot be tested: ${cause.message}`, {
    cause,
    details: { errors: [{ in: 'body', path: 'rule.q', message: cause.message }] },
  })
