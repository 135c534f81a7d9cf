/*
 * Sends the notices of transitions, on the instance that evaluates the rules. A failed attempt is
 * repeated for a day with growing pauses; a notice that the receiver refuses is not repeated. Every
 * attempt is recorded. Delivery is at least once: a notice that was sent but not recorded is sent
 * again with the same id.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { backoffMs } from '../lib/backoff.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import type { Log } from '../telemetry/log.js'
import { DIGESTS, type Channel, type Channels, type Target } from './channel.js'
import { isOpen, type Delivery, type DeliveryLog, type Outcome } from './delivery-log.js'
import { Inhibition } from './inhibition.js'
import { ChannelQueue, toWaiting, type QueueLimits, type Waiting } from './channel-queue.js'
import type { LoggedTransition } from './alert-log.js'
import type { Facts, FactsOf } from './facts.js'
import type { Notice } from './notices.js'
import { fallbackOf, noticesOf, repeatOf } from './notices.js'
import type { SuppressionOf } from './suppression.js'
import type { Attempt } from './attempt.js'
import type { Send } from './send.js'

const TRIES_FOR_MS = DAY_MS
const BACKOFF = { baseMs: SECOND_MS, maxMs: 15 * MINUTE_MS }
/** A channel is failing after this many failed attempts, which take about half a minute. */
const FAILING_ATTEMPTS = 5
/** With more notices than this in the queue, they are sent without samples and usual values, which need queries. */
const BUSY_FROM = 20

export interface DeliveryDeps {
  readonly deliveryLog: DeliveryLog
  readonly channels: Pick<Channels, 'find' | 'targetOf'>
  readonly suppressionOf: SuppressionOf
  readonly send: Send
  readonly factsOf: FactsOf
  readonly isAcknowledged: (alertId: string) => boolean
  readonly log: Log
}

/** The failure of a channel. */
export interface FailingChannel {
  readonly sinceMs: number
  readonly error: string
}

/** A firing alert whose notices are repeated. */
interface Firing {
  readonly transition: LoggedTransition
  /** The number of repeats that were due, by channel. */
  readonly repeats: Map<string, number>
  isAcknowledged: boolean
}

interface QueueEntry {
  readonly queue: ChannelQueue
  isDraining: boolean
  wake: () => void
}

export class Deliveries {
  readonly #deps: DeliveryDeps
  readonly #signal: AbortSignal
  /** The queues by channel. An empty queue is kept, because its rate limit needs the times of its last messages. */
  readonly #queues = new Map<string, QueueEntry>()
  readonly #failing = new Map<string, FailingChannel>()
  /** The firing alerts whose notices are repeated, by id. */
  readonly #firing = new Map<string, Firing>()
  readonly #inhibition = new Inhibition()
  #dropped = { count: 0, lastMs: 0 }
  /** The number of attempts by outcome. */
  readonly outcomes = new Map<Outcome, number>()

  /** @param signal stops the sending */
  constructor(deps: DeliveryDeps, signal: AbortSignal) {
    this.#deps = deps
    this.#signal = signal
    signal.addEventListener(
      'abort',
      () => {
        for (const { wake } of this.#queues.values()) wake()
      },
      { once: true },
    )
  }

  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, { queue }) => sum + queue.size, 0)
  }

  /** Notices that were dropped; 0 after an hour without another. */
  get dropped(): number {
    return this.#dropped.lastMs > Date.now() - HOUR_MS ? this.#dropped.count : 0
  }

  get failing(): ReadonlyMap<string, FailingChannel> {
    return this.#failing
  }

  /** Queues the notices that an earlier instance did not send. */
  async resume(): Promise<void> {
    const { deliveryLog } = this.#deps
    for await (const transitions of deliveryLog.recent()) {
      const own = transitions.flatMap(noticesOf)
      const handed = own.flatMap((notice) => this.#fallbacksOf(notice))
      const known = await deliveryLog.of([...own, ...handed].map(({ id }) => id))
      for (const notice of own) this.#resumeOne(notice, known)
      this.follow(transitions, Date.now())
    }
  }

  #resumeOne(notice: Notice, known: ReadonlyMap<string, Delivery>): void {
    const { outcome, attempts, error } = known.get(notice.id) ?? UNTRIED
    if (isOpen(outcome))
      this.#enqueue(toWaiting(notice, attempts, outcome === 'held' ? error : null))
    // A notice that was refused just before the instance ended may not have reached the fallback channel.
    if (outcome !== 'refused') return
    for (const to of this.#fallbacksOf(notice))
      if (isOpen((known.get(to.id) ?? UNTRIED).outcome)) this.#enqueue(toWaiting(to))
  }

  #fallbacksOf(notice: Notice): readonly Notice[] {
    const fallback = this.#deps.channels.find(notice.channelId)?.fields.fallback
    return fallback === undefined ? [] : [fallbackOf(notice, fallback)]
  }

  /** Starts the queries for the facts in the notices of transitions. */
  prepare(transitions: readonly LoggedTransition[]): void {
    const own = transitions.filter((one) => noticesOf(one).length > 0)
    if (own.length <= BUSY_FROM) for (const one of own) void this.#deps.factsOf(one, false)
  }

  add(transitions: readonly LoggedTransition[]): void {
    for (const one of transitions) this.#inhibition.note(one)
    for (const one of transitions) {
      for (const notice of noticesOf(one)) this.#enqueue(toWaiting(notice))
      this.#followRepeats(one, one.atMs)
    }
  }

  /** Registers the repeats of alerts that began to fire earlier than the transitions that `resume` reads. */
  follow(transitions: readonly LoggedTransition[], nowMs: number): void {
    for (const one of transitions) {
      this.#inhibition.note(one)
      this.#followRepeats(one, nowMs)
    }
  }

  /** Queues the due repeats for alerts that still fire. */
  repeat(nowMs: number): void {
    for (const [alertId, firing] of this.#firing) {
      const { transition, repeats } = firing
      if (!firing.isAcknowledged) this.#acknowledge(alertId, firing)
      for (const channelId of transition.channels ?? []) {
        const { kind, everyMs } = this.#repetitionOf(transition, channelId)
        const count = repeatsUntil(transition, everyMs, nowMs)
        if (count <= (repeats.get(channelId) ?? 0)) continue
        repeats.set(channelId, count)
        const isWaiting = this.#queues.get(channelId)?.queue.hasAlert(alertId) ?? false
        if (isWaiting || (kind === 'repeat' && this.#deps.isAcknowledged(alertId))) continue
        this.#enqueue(toWaiting(repeatOf(transition, channelId, { kind, count })))
      }
    }
  }

  /** Acknowledges the alert in PagerDuty, which then stops escalating. */
  #acknowledge(alertId: string, firing: Firing): void {
    if (!this.#deps.isAcknowledged(alertId)) return
    firing.isAcknowledged = true
    for (const channelId of firing.transition.channels ?? [])
      if (this.#typeOf(channelId) === 'pagerduty') {
        const due = { kind: 'acknowledge', count: 1 } as const
        this.#enqueue(toWaiting(repeatOf(firing.transition, channelId, due)))
      }
  }

  #typeOf(channelId: string): Target['type'] | null {
    const channel = this.#deps.channels.find(channelId)
    return channel === null ? null : (this.#deps.channels.targetOf(channel)?.type ?? null)
  }

  /** Alertmanager resolves an alert that is not sent again within some minutes, so it gets a refresh each minute. */
  #repetitionOf(transition: LoggedTransition, channelId: string) {
    return this.#typeOf(channelId) === 'alertmanager'
      ? ({ kind: 'refresh', everyMs: MINUTE_MS } as const)
      : ({ kind: 'repeat', everyMs: transition.repeatMs ?? 0 } as const)
  }

  #followRepeats(transition: LoggedTransition, nowMs: number): void {
    const { alertId, status, channels = [] } = transition
    if (alertId === null) return
    if (status.state === 'inactive' || channels.length === 0) {
      this.#firing.delete(alertId)
      return
    }
    const isChanged = transition.newChannels !== undefined
    if (this.#firing.has(alertId) && !isChanged) return
    const repeats = new Map<string, number>()
    for (const channelId of channels) {
      const { everyMs } = this.#repetitionOf(transition, channelId)
      repeats.set(channelId, repeatsUntil(transition, everyMs, nowMs))
    }
    // A channel that was added is notified of an acknowledgement too.
    const isAcknowledged = !isChanged && this.#deps.isAcknowledged(alertId)
    this.#firing.set(alertId, { transition, repeats, isAcknowledged })
  }

  readonly #suppressionOf: SuppressionOf = (labels, nowMs) =>
    this.#deps.suppressionOf(labels, nowMs) ?? this.#inhibition.of(labels)

  #enqueue(one: Waiting): void {
    const { channelId, transition } = one.notice
    const entry = this.#entryOf(channelId)
    const { queue } = entry
    const unsent = transition.to === 'resolved' ? queue.heldOf(transition.alertId ?? '') : []
    for (const each of unsent) this.#end(queue, each, 'silenced')
    // No notice of the firing alert was sent, so none says that it resolved.
    if (unsent.some(({ notice }) => notice.kind === 'transition')) {
      this.#end(queue, one, 'silenced')
      return
    }
    // A fallback channel that got the notice of a firing alert gets its later notices as well.
    const isDiverted = queue.hasDiverted(one)
    if (!queue.add(one)) {
      this.#deps.log.warn({ channel: channelId }, 'the queue of notices is full; one is dropped')
      this.#end(queue, one, 'dropped')
      this.#dropped = { count: this.dropped + 1, lastMs: Date.now() }
      return
    }
    if (isDiverted) this.#divert(one)
    if (entry.isDraining) return entry.wake()
    entry.isDraining = true
    void this.#drain(channelId, entry)
  }

  #entryOf(channelId: string): QueueEntry {
    const known = this.#queues.get(channelId)
    if (known !== undefined) return known
    const entry = { queue: new ChannelQueue(), isDraining: false, wake: () => undefined }
    this.#queues.set(channelId, entry)
    return entry
  }

  #end(queue: ChannelQueue, one: Waiting, outcome: Outcome): void {
    queue.remove(one)
    const error = outcome === 'dropped' ? 'the queue of notices was full' : one.heldBy
    this.#record(one, { outcome, status: null, latencyMs: 0, error, receipt: null })
  }

  async #drain(channelId: string, entry: QueueEntry): Promise<void> {
    const { queue } = entry
    // Yields first, so that all notices of a round are queued and can share a message.
    await Promise.resolve()
    while (queue.size > 0 && !this.#signal.aborted) {
      const channel = this.#deps.channels.find(channelId)
      const limits = limitsOf(channel, this.#deps.channels)
      const { batch, held, nextMs } = queue.take(Date.now(), limits, this.#suppressionOf)
      for (const one of held)
        this.#record(one, {
          outcome: 'held',
          status: null,
          latencyMs: 0,
          error: one.heldBy,
          receipt: null,
        })
      if (batch.length > 0) await this.#deliver(queue, channel, batch)
      else await this.#pause(entry, nextMs)
    }
    entry.isDraining = false
    if (this.#deps.channels.find(channelId) === null) this.#queues.delete(channelId)
  }

  /** Waits until a time or until another notice is queued. */
  async #pause(entry: { wake: () => void }, untilMs: number): Promise<void> {
    const early = new AbortController()
    entry.wake = () => early.abort()
    const waitMs = Math.max(1, untilMs - Date.now())
    await sleep(waitMs, undefined, { signal: early.signal, ref: false }).catch(() => undefined)
    entry.wake = () => undefined
  }

  async #deliver(
    queue: ChannelQueue,
    channel: Channel | null,
    batch: readonly Waiting[],
  ): Promise<void> {
    const attempt = await this.#attempt(queue, channel, batch)
    if (this.#signal.aborted && attempt.outcome === 'failed') return
    const nowMs = Date.now()
    queue.sent(batch, nowMs)
    for (const one of batch) {
      one.attempts++
      const isOver = nowMs > one.notice.transition.atMs + TRIES_FOR_MS
      const outcome = attempt.outcome === 'failed' && isOver ? 'refused' : attempt.outcome
      // The next refresh comes within a minute.
      const isRefresh = one.notice.kind === 'refresh'
      if (outcome === 'failed' && !isRefresh) one.retryMs = nowMs + backoffMs(one.attempts, BACKOFF)
      else queue.remove(one)
      if (!isRefresh) this.#record(one, { ...attempt, outcome })
      if (channel !== null && this.#isFailing(channel, one, { ...attempt, outcome }))
        for (const each of [one, ...queue.ofAlert(one)]) this.#divert(each)
    }
  }

  async #attempt(
    queue: ChannelQueue,
    channel: Channel | null,
    batch: readonly Waiting[],
  ): Promise<Attempt> {
    const refused = (error: string): Attempt => ({
      outcome: 'refused',
      status: null,
      latencyMs: 0,
      error,
      receipt: null,
    })
    if (channel === null) return refused('the channel was deleted')
    if (!channel.fields.enabled) return refused('the channel is disabled')
    const target = this.#deps.channels.targetOf(channel)
    if (target === null) return refused('the secret of the channel must be entered again')
    const notices = batch.map(({ notice }) => notice)
    const [receipt, facts] = await Promise.all([
      this.#receiptOf(target, notices),
      this.#factsOf(queue, notices),
    ])
    const { template = null } = channel.fields
    return await this.#deps.send(target, { notices, receipt, facts, template })
  }

  async #factsOf(
    queue: ChannelQueue,
    [notice, ...others]: readonly Notice[],
  ): Promise<Facts | null> {
    if (notice === undefined || others.length > 0 || notice.kind === 'refresh') return null
    return await this.#deps.factsOf(notice.transition, queue.size > BUSY_FROM)
  }

  /** The id of the first Slack message about an alert; null when there is none. */
  async #receiptOf({ type }: Target, [notice, ...others]: readonly Notice[]) {
    const alertId = notice?.transition.alertId ?? null
    const isFirst = notice?.kind === 'transition' && notice.transition.to === 'firing'
    if (type !== 'slack_bot' || notice === undefined || alertId === null) return null
    if (isFirst || others.length > 0) return null
    return await this.#deps.deliveryLog.receiptOf(alertId, notice.channelId).catch(() => null)
  }

  #isFailing({ id, fields }: Channel, one: Waiting, { outcome, error }: Attempt): boolean {
    if (outcome === 'sent') {
      this.#failing.delete(id)
      return false
    }
    if (!fields.enabled || (outcome === 'failed' && one.attempts < FAILING_ATTEMPTS)) return false
    const sinceMs = this.#failing.get(id)?.sinceMs ?? Date.now()
    this.#failing.set(id, { sinceMs, error: error ?? '' })
    return true
  }

  /** Queues a notice for the fallback channel, once. The fallback of a fallback is not used. */
  #divert(one: Waiting): void {
    if (one.isDiverted || one.notice.kind === 'fallback') return
    one.isDiverted = true
    for (const notice of this.#fallbacksOf(one.notice)) this.#enqueue(toWaiting(notice))
  }

  #record({ notice, attempts }: Waiting, attempt: Omit<Attempt, 'outcome'> & { outcome: Outcome }) {
    this.outcomes.set(attempt.outcome, (this.outcomes.get(attempt.outcome) ?? 0) + 1)
    this.#deps.deliveryLog.record({ notice, attempt: attempts, ...attempt })
  }
}

const UNTRIED = { outcome: 'waiting', attempts: 0, error: '' }

const repeatsUntil = (
  { startedAtMs, atMs }: LoggedTransition,
  everyMs: number,
  nowMs: number,
): number =>
  everyMs === 0 ? 0 : Math.max(0, Math.floor((nowMs - (startedAtMs ?? atMs)) / everyMs))

const PER_MINUTE_OF_PEOPLE = 20

function limitsOf(channel: Channel | null, channels: Pick<Channels, 'targetOf'>): QueueLimits {
  const type = (channel === null ? null : channels.targetOf(channel))?.type
  const digests = type === undefined ? 'never' : DIGESTS[type]
  const isForPeople = digests !== 'never' && type !== 'alertmanager'
  const perMinute =
    channel?.fields.maxPerMinute ?? (isForPeople ? PER_MINUTE_OF_PEOPLE : Number.MAX_SAFE_INTEGER)
  return { digests, perMinute }
}
