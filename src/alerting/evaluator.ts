/*
 * Evaluates the alert rules on one instance, which holds a lock for as long as it runs:
 *
 * 1. It reads the last transition of every group to restore its state.
 * 2. When another second is stored by the watermark, it counts what arrived up to there since the last time, for the rules that
 *    are due. A rule that is new or was changed has its windows counted from what is stored, so that nothing has to be
 *    remembered.
 * 3. It evaluates the groups (`tracked-rule.ts`). The transitions of a round are one insert (`alert-log.ts`), or several where a group
 *    has several; only then are they alerts. What a killed instance stored and did not carry out, the next one does in step 1.
 *
 * While the watermark is behind or ClickHouse does not answer, nothing fires and nothing resolves.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type { Lease, State } from '../coordination/state.js'
import { MINUTE_MS, SECOND_MS } from '../model/time.js'
import { groupedBy } from '../lib/grouped-by.js'
import type { Log } from '../telemetry/log.js'
import type { CountReader } from './counts.js'
import { Deliveries, type DeliveryDeps } from './delivery.js'
import type { Outcome } from './delivery-log.js'
import type { AlertLog, LoggedTransition } from './alert-log.js'
import { isNotified } from './machine.js'
import { Ongoing } from './ongoing.js'
import { isStill, meaningOf, planRule, type Rule } from './rule.js'
import type { Rules } from './rules.js'
import { shareStatus, type EvaluationStatus } from './status.js'
import type { Evaluated, SystemAlert } from './system-alert.js'
import { requestsOf, TrackedRule } from './tracked-rule.js'
import { ended, atMostOneOfEachGroup, reasonOf, toLogged, toState } from './transitions.js'
import type { Watermark } from './watermark.js'

export interface EvaluatorDeps {
  readonly state: Pick<State, 'kind' | 'withLock' | 'get' | 'set'>
  readonly log: Log
  readonly alertLog: AlertLog
  readonly counts: CountReader
  readonly watermark: Watermark
  readonly rules: Pick<Rules, 'list'>
  readonly hasSource: (name: string) => boolean
  readonly project: (transitions: readonly LoggedTransition[]) => Promise<void>
  readonly systemAlert: SystemAlert
  readonly delivery: DeliveryDeps
}

const LOCK = 'alerting:evaluator'
const LEASE_MS = 15_000
const ALIVE = 'alerting:alive-since'
/** After a longer time without an instance, messages may have been missed. */
const ALIVE_MS = 2 * MINUTE_MS
/** Pause between two evaluations of all due rules while messages arrive. */
const STEP_MS = SECOND_MS
/** The shortest pause between two reads of the watermark. */
const POLL_MS = 100
const MARKS_MS = 500
/** Rules that need a ClickHouse query of their own may be evaluated early for at most this share of the time. */
const OWN_SHARE = 0.05
const FAILED_MS = 2 * SECOND_MS
/** How far back before the start evaluations are made up for. */
const REPLAY_MS = 15 * MINUTE_MS
const QUESTION_MS = 20_000
const LOAD_MS = 120_000
const PROBLEM_PAUSE_MS = MINUTE_MS

export class Evaluator {
  readonly #deps: EvaluatorDeps
  readonly #closing = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #evaluation: Evaluation | null = null
  #marks: NodeJS.Timeout | null = null

  constructor(deps: EvaluatorDeps) {
    this.#deps = deps
  }

  /** The lag of the evaluation in seconds; 0 on an instance that does not evaluate. */
  get lagSeconds(): number {
    const untilMs = this.#evaluation?.untilMs ?? 0
    return untilMs === 0 ? 0 : Math.max(0, (Date.now() - untilMs) / 1000)
  }

  get firing(): number {
    return this.#evaluation?.firing ?? 0
  }

  /** The number of rules that cannot be evaluated. */
  get unknown(): number {
    return this.#evaluation?.evaluated.unknown.length ?? 0
  }

  /** The number of rules with more groups than are tracked. */
  get cut(): number {
    return this.#evaluation?.cut ?? 0
  }

  get noticesWaiting(): number {
    return this.#evaluation?.deliveries.waiting ?? 0
  }

  get channelsFailing(): number {
    return this.#evaluation?.deliveries.failing.size ?? 0
  }

  /** Attempts to send notices since this instance began to evaluate, by outcome. */
  get noticesByOutcome(): ReadonlyMap<Outcome, number> {
    return this.#evaluation?.deliveries.outcomes ?? new Map()
  }

  /** @param mayEvaluate false on an instance that only collects and publishes its watermark */
  start(mayEvaluate: boolean): void {
    const { state, watermark } = this.#deps
    if (state.kind === 'redis')
      this.#marks = setInterval(() => void watermark.now().catch(() => 0), MARKS_MS).unref()
    if (mayEvaluate) this.#running = this.#run()
  }

  /** Ends every firing alert after all events were deleted, and forgets which groups existed. */
  forgetAll(): void {
    if (this.#evaluation !== null) this.#evaluation.isCleared = true
  }

  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#marks !== null) clearInterval(this.#marks)
    await this.#running
    await this.#deps.delivery.deliveryLog.close()
  }

  async #run(): Promise<void> {
    const { state, log } = this.#deps
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await state.withLock(LOCK, LEASE_MS, (lease) => this.#lead(lease))
      } catch (error) {
        // Another instance evaluates, or the shared state is unavailable.
        log.debug({ err: error }, 'alert rules are not evaluated here')
      }
      this.#evaluation = null
      await sleep(FAILED_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  /** Raises or resolves the system alert; after an error the next round tries again. */
  async #updateSystemAlert({ evaluated }: Evaluation): Promise<void> {
    const { systemAlert, log } = this.#deps
    await systemAlert(evaluated, Date.now()).catch((error: unknown) => {
      log.debug({ err: error }, 'the system alert could not be written')
    })
  }

  async #lead(lease: Lease): Promise<void> {
    const { log } = this.#deps
    const { signal } = this.#closing
    const isOver = (): boolean => signal.aborted || lease.signal.aborted
    let failures = 0
    while (!isOver()) {
      if (this.#evaluation === null || this.#evaluation.isUncertain) {
        this.#evaluation?.end()
        this.#evaluation = new Evaluation(this.#deps, [signal, lease.signal])
      }
      const begunMs = performance.now()
      try {
        await this.#evaluation.round()
        failures = 0
      } catch (error) {
        if (isOver()) return
        failures++
        log[failures === 3 ? 'warn' : 'debug']({ err: error }, 'alert rules are evaluated late')
      }
      await this.#updateSystemAlert(this.#evaluation)
      // The watermark cannot pass a second before its end.
      const leftMs = Math.min(this.#evaluation.untilMs + STEP_MS - Date.now(), STEP_MS)
      // The pause is at least as long as the round, so that queries run at most half of the time.
      const tookMs = performance.now() - begunMs
      const pauseMs = Math.max(failures === 0 ? POLL_MS : FAILED_MS, leftMs, tookMs)
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }
}

/** The evaluation while this instance holds the lock. */
class Evaluation {
  /** Whether the states in memory may be ahead of the stored transitions. */
  isUncertain = false
  /** Whether all events were deleted; the next round then ends every alert. */
  isCleared = false
  readonly #deps: EvaluatorDeps
  readonly #signals: readonly AbortSignal[]
  readonly #ending = new AbortController()
  readonly deliveries: Deliveries
  #tracked = new Map<string, TrackedRule>()
  /** Rules that cannot be evaluated, each with the time of its next attempt. */
  readonly #problems = new Map<
    string,
    { readonly rule: Rule; readonly text: string; readonly untilMs: number }
  >()
  /** When groups of a rule were last left out, by rule. */
  readonly #leftOutMs = new Map<string, number>()
  /** The states of groups whose rules are not tracked yet, by rule. */
  #loaded: Map<string, LoggedTransition[]> | null = null
  readonly #ongoing: Ongoing
  /** Stored transitions whose alerts are not written yet. */
  #unprojected: LoggedTransition[] = []
  readonly #beganMs = Date.now()
  #aliveSinceMs = 0
  #aliveSetMs = 0
  /** The watermark of the last round. */
  #countedMs = 0
  /** Until this time, rules with a query of their own are evaluated at their regular times only. */
  #ownEarlyMs = 0

  constructor(deps: EvaluatorDeps, signals: readonly AbortSignal[]) {
    this.#deps = deps
    this.#signals = signals
    this.#ongoing = new Ongoing(deps.hasSource)
    this.deliveries = new Deliveries(deps.delivery, this.#ending.signal)
    for (const signal of signals)
      signal.addEventListener('abort', () => this.#ending.abort(), { once: true })
  }

  get untilMs(): number {
    return this.#countedMs
  }

  /** The progress of the evaluation, for the system alert. */
  get evaluated(): Evaluated {
    const unknown = [...this.#problems.values()].map(({ rule }) => rule.fields.name)
    return { untilMs: this.#countedMs || this.#beganMs, unknown }
  }

  get cut(): number {
    return this.#leftOutMs.size
  }

  end(): void {
    this.#ending.abort()
  }

  get firing(): number {
    let firing = 0
    for (const tracked of this.#tracked.values())
      for (const { status } of tracked.states) if (status.firingSinceMs > 0) firing++
    return firing
  }

  async round(): Promise<void> {
    await this.#project()
    await this.#stayAlive()
    this.#loaded ??= await this.#load()
    const markMs = await this.#deps.watermark.now()
    const untilMs = Math.floor(markMs / STEP_MS) * STEP_MS
    if (untilMs <= this.#countedMs) return
    if (this.isCleared) await this.#endAll()
    await this.#count(untilMs)
    await this.#sync(untilMs)
    await this.#endGone()
    this.#countedMs = untilMs
    const known = { aliveSinceMs: this.#aliveSinceMs }
    const made: LoggedTransition[] = []
    for (const tracked of this.#tracked.values())
      for (const transition of tracked.evaluate(untilMs, known)) {
        const one = toLogged(tracked.plan, transition)
        if (this.#ongoing.isOfDeletedSource(one)) tracked.forget(one.group)
        else made.push(one)
      }
    await this.#carryOut(made)
    this.deliveries.repeat(Date.now())
    await this.#shareStatus()
  }

  /**
   * Records in the shared state since when there has been an instance without a gap. Messages may
   * have been missed during a gap.
   */
  async #stayAlive(): Promise<void> {
    const { state } = this.#deps
    const nowMs = Date.now()
    if (this.#aliveSinceMs === 0) this.#aliveSinceMs = Number((await state.get(ALIVE)) ?? nowMs)
    if (nowMs - this.#aliveSetMs < ALIVE_MS / 4) return
    await state.set(ALIVE, String(this.#aliveSinceMs), ALIVE_MS)
    this.#aliveSetMs = nowMs
  }

  async #load(): Promise<Map<string, LoggedTransition[]>> {
    await this.deliveries.resume()
    const last = await this.#deps.alertLog.last()
    this.deliveries.follow(last, Date.now())
    await this.#deps.project(last)
    const byRule = new Map<string, LoggedTransition[]>()
    for (const one of last) {
      this.#ongoing.follow(one)
      byRule.set(one.ruleId, [...(byRule.get(one.ruleId) ?? []), one])
    }
    const rules = new Map(this.#enabledRules().map((rule) => [rule.id, rule]))
    for (const [ruleId, transitions] of byRule) {
      const rule = rules.get(ruleId)
      const isOver = (one: LoggedTransition): boolean => !isStill(rule, one.ruleVersion)
      const over = transitions.filter(isOver)
      await this.#carryOut(over.flatMap((one) => ended(one, reasonOf(rule))))
      byRule.set(
        ruleId,
        transitions.filter((one) => !isOver(one)),
      )
    }
    return byRule
  }

  #enabledRules = (): readonly Rule[] =>
    this.#deps.rules.list().filter(({ fields }) => fields.enabled !== false)

  /** Ends the alerts of deleted sources, because nothing else would end one about silence. */
  async #endGone(): Promise<void> {
    const over: LoggedTransition[] = []
    for (const one of this.#ongoing.ofDeletedSources) {
      const tracked = this.#tracked.get(one.ruleId)
      if (tracked === undefined) continue
      tracked.forget(one.group)
      over.push(...ended(one, 'the source was deleted'))
    }
    await this.#carryOut(over)
  }

  /** Ends all alerts and resets the states of all rules. */
  async #endAll(): Promise<void> {
    const tracked = [...this.#tracked.values()]
    const last = tracked.flatMap(({ plan, states }) => states.map((one) => toState(plan, one)))
    const kept = [...(this.#loaded?.values() ?? [])].flat()
    this.isCleared = false
    this.#tracked.clear()
    this.#loaded?.clear()
    await this.#carryOut([...last, ...kept].flatMap((one) => ended(one, 'everything was deleted')))
  }

  /** Counts what arrived since the last time, for the rules that are due. */
  async #count(untilMs: number): Promise<void> {
    const mayAskOwn = performance.now() >= this.#ownEarlyMs
    const due = [...this.#tracked.values()].filter((tracked) =>
      tracked.isDue(untilMs, tracked.isShared || mayAskOwn),
    )
    let ownMs = 0
    for (const some of groupedBy(due, (one) => JSON.stringify(one.rangeAt(untilMs)))) {
      const { fromMs, toMs, isShared } = some[0].rangeAt(untilMs)
      const begunMs = performance.now()
      await this.#read(some, { fromMs, toMs }, false)
      if (!isShared) ownMs += performance.now() - begunMs
    }
    if (ownMs > 0) this.#ownEarlyMs = performance.now() + ownMs * (1 / OWN_SHARE - 1)
  }

  /** Reads the counts of a range and adds them to the rules. */
  async #read(
    all: readonly TrackedRule[],
    range: { readonly fromMs: number; readonly toMs: number },
    isLoad: boolean,
  ): Promise<void> {
    const targets = all.flatMap((tracked) => tracked.plan.counters.map((_, i) => ({ tracked, i })))
    const requests = all.flatMap(({ plan }) => requestsOf(plan, isLoad))
    const options = isLoad ? { timeoutMs: LOAD_MS, isSearch: true } : { timeoutMs: QUESTION_MS }
    const answers = await this.#deps.counts.read(requests, range, options)
    targets.forEach(({ tracked, i }, at) => {
      const answer = answers[at]
      if (answer instanceof Error) this.#giveUp(tracked, answer.message)
      else if (answer !== undefined) tracked.add(i, answer)
    })
    for (const tracked of all) tracked.countedMs = range.toMs
  }

  /** Stops tracking a rule that cannot be evaluated, and keeps the states of its groups for the next attempt. */
  #giveUp({ plan, states }: TrackedRule, text: string): void {
    const { rule } = plan
    this.#fail(rule, text)
    this.#loaded?.set(
      rule.id,
      states.map((one) => toState(plan, one)),
    )
    this.#tracked.delete(rule.id)
  }

  #fail(rule: Rule, text: string): void {
    this.#problems.set(rule.id, { rule, text, untilMs: Date.now() + PROBLEM_PAUSE_MS })
  }

  /** Applies changes of the rules to what is tracked. */
  async #sync(untilMs: number): Promise<void> {
    const rules = this.#enabledRules()
    const byId = new Map(rules.map((rule) => [rule.id, rule]))
    for (const [id, tracked] of this.#tracked) {
      const rule = byId.get(id)
      if (rule?.version === tracked.plan.rule.version) continue
      const states = tracked.states
      this.#tracked.delete(id)
      const isSame = rule !== undefined && meaningOf(rule) === meaningOf(tracked.plan.rule)
      const last = states.map((one) => toState(tracked.plan, one))
      if (isSame) this.#loaded?.set(id, last)
      else await this.#carryOut(last.flatMap((one) => ended(one, reasonOf(rule))))
    }
    await this.#forgetProblems(byId)
    await this.#begin(
      rules.filter((rule) => !this.#tracked.has(rule.id) && !this.#isGivenUp(rule)),
      untilMs,
    )
  }

  /** Forgets the problems and the kept states of rules that were changed or deleted while they could not be evaluated. */
  async #forgetProblems(byId: ReadonlyMap<string, Rule>): Promise<void> {
    for (const [id, { rule: before }] of this.#problems) {
      const rule = byId.get(id)
      if (rule !== undefined && meaningOf(rule) === meaningOf(before)) continue
      const last = this.#loaded?.get(id) ?? []
      this.#problems.delete(id)
      this.#loaded?.delete(id)
      await this.#carryOut(last.flatMap((one) => ended(one, reasonOf(rule))))
    }
  }

  #isGivenUp(rule: Rule): boolean {
    const problem = this.#problems.get(rule.id)
    if (problem === undefined) return false
    if (problem.rule.version === rule.version && problem.untilMs > Date.now()) return true
    this.#problems.delete(rule.id)
    return false
  }

  /** Starts tracking rules, with the counts of their windows read from stored events. */
  async #begin(rules: readonly Rule[], untilMs: number): Promise<void> {
    const bySpan = new Map<number, TrackedRule[]>()
    for (const rule of rules) {
      const plan = planRule(rule)
      if ('path' in plan) {
        // An earlier version of the service accepted this rule.
        this.#fail(rule, `${plan.path}: ${plan.message}`)
        continue
      }
      const startMs = Math.max(untilMs - REPLAY_MS, rule.updatedAtMs)
      const isShared = requestsOf(plan, false).every(this.#deps.counts.canShare)
      const tracked = new TrackedRule(plan, startMs, isShared)
      for (const last of this.#loaded?.get(rule.id) ?? []) tracked.restore(last)
      bySpan.set(plan.spanMs, [...(bySpan.get(plan.spanMs) ?? []), tracked])
    }
    for (const [spanMs, some] of bySpan) {
      const fromMs = Math.max(0, untilMs - spanMs - REPLAY_MS)
      for (const { plan } of some) this.#tracked.delete(plan.rule.id)
      await this.#read(some, { fromMs, toMs: untilMs }, true)
      for (const tracked of some) {
        const { id } = tracked.plan.rule
        if (this.#problems.has(id)) continue
        this.#tracked.set(id, tracked)
        this.#loaded?.delete(id)
        await this.#carryOut(this.#ongoing.changesOf(tracked, untilMs))
      }
    }
  }

  /** Stores transitions, then updates alerts and queues notices for them. */
  async #carryOut(made: readonly LoggedTransition[]): Promise<void> {
    const inserts = atMostOneOfEachGroup(made)
    for (const [i, insert] of inserts.entries()) {
      const some = insert.map((one) => this.#ongoing.asKnown(one))
      for (const signal of this.#signals) signal.throwIfAborted()
      this.isUncertain = true
      this.deliveries.prepare(some)
      await this.#deps.alertLog.append(some, this.#ending.signal)
      this.isUncertain = i < inserts.length - 1
      for (const one of some) this.#ongoing.follow(one)
      this.#unprojected.push(...some.filter(isNotified))
      this.deliveries.add(some)
      await this.#project()
    }
  }

  async #project(): Promise<void> {
    await this.#deps.project(this.#unprojected)
    this.#unprojected = []
  }

  async #shareStatus(): Promise<void> {
    const problems = Object.fromEntries([...this.#problems].map(([id, { text }]) => [id, text]))
    for (const [id, tracked] of this.#tracked) {
      if (tracked.leftOut > 0) this.#leftOutMs.set(id, Date.now())
      tracked.leftOut = 0
      if (Date.now() - (this.#leftOutMs.get(id) ?? 0) > PROBLEM_PAUSE_MS) this.#leftOutMs.delete(id)
      else
        problems[id] = `it has more than ${tracked.plan.maxGroups} groups; the others are left out`
    }
    const failing = Object.fromEntries(this.deliveries.failing)
    const unknown = [...this.#problems.keys()]
    const { dropped } = this.deliveries
    const untilMs = this.#countedMs
    const status: EvaluationStatus = { untilMs, problems, unknown, failing, dropped }
    await shareStatus(this.#deps.state, status)
  }
}
