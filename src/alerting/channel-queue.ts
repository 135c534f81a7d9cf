/*
 * The queue of notices for one channel. Notices of one alert keep their order; a notice that fails
 * or is silenced delays no other alert. The queue does no I/O and reads no clock.
 *
 * The first notice of a rule waits for `group_wait`. A later one that says that an alert fires
 * waits until `group_interval` has passed since the rule's last message. All notices of the rule
 * that wait by then are sent together: as one message (a digest), or one by one on channels whose
 * messages are about one alert. A channel that has sent `max_per_minute` messages waits, and then
 * sends everything that is due as one digest.
 */

import { MINUTE_MS, SECOND_MS } from '../model/time.js'
import { labelsOf } from './matchers.js'
import type { Notice } from './notices.js'
import type { Suppression, SuppressionOf } from './suppression.js'

export interface Waiting {
  readonly notice: Notice
  attempts: number
  /** The time of the next attempt after a failure; 0 before the first attempt. */
  retryMs: number
  /** What holds the notice back, as text: its kind, id and reason; null for nothing. */
  heldBy: string | null
  /** The silences are checked again at this time. */
  heldUntilMs: number
  /** Whether it is sent without waiting for other notices of its rule. */
  isReleased: boolean
  /** Whether the fallback channel got it. */
  isDiverted: boolean
}

export interface QueueLimits {
  /** When several alerts share one message: never, only after the rate limit was reached, or whenever they are due together. */
  readonly digests: 'never' | 'behind' | 'always'
  readonly perMinute: number
}

interface Taken {
  /** The notices to send now as one message. */
  readonly batch: readonly Waiting[]
  /** Notices that this call began to hold back. */
  readonly held: readonly Waiting[]
  /** The time of the next call when there is nothing to send. */
  readonly nextMs: number
}

export const MAX_WAITING = 10_000
const MAX_DIGEST = 50
/** How often silences are checked for a notice that is held back. */
const HELD_RECHECK_MS = 5 * SECOND_MS

export const toWaiting = (notice: Notice, attempts = 0, heldBy: string | null = null): Waiting => ({
  notice,
  attempts,
  retryMs: 0,
  heldBy,
  heldUntilMs: 0,
  isReleased: attempts > 0 || notice.kind !== 'transition',
  isDiverted: false,
})

const alertOf = ({ notice }: Waiting): string => notice.transition.alertId ?? notice.id
const ruleOf = ({ notice }: Waiting): string => notice.transition.ruleId

export class ChannelQueue {
  readonly #waiting = new Map<string, Waiting>()
  /** By alert, how many of its notices wait. */
  readonly #alerts = new Map<string, number>()
  /** When a rule sent its last message. */
  readonly #ruleSentMs = new Map<string, number>()
  #sentMs: number[] = []
  #isBehind = false

  get size(): number {
    return this.#waiting.size
  }

  /** @returns false when the queue is full */
  add(one: Waiting): boolean {
    if (this.#waiting.size >= MAX_WAITING) return false
    if (this.#waiting.has(one.notice.id)) return true
    this.#waiting.set(one.notice.id, one)
    this.#alerts.set(alertOf(one), (this.#alerts.get(alertOf(one)) ?? 0) + 1)
    return true
  }

  remove({ notice: { id } }: Waiting): void {
    const one = this.#waiting.get(id)
    if (one === undefined) return
    this.#waiting.delete(id)
    const left = (this.#alerts.get(alertOf(one)) ?? 0) - 1
    if (left > 0) this.#alerts.set(alertOf(one), left)
    else this.#alerts.delete(alertOf(one))
  }

  /** Whether a notice of the alert waits. */
  hasAlert(alertId: string): boolean {
    return this.#alerts.has(alertId)
  }

  /** The queued notices of the same alert as `one`. */
  ofAlert(one: Waiting): readonly Waiting[] {
    if (!this.hasAlert(alertOf(one))) return []
    return [...this.#waiting.values()].filter((each) => alertOf(each) === alertOf(one))
  }

  /** Whether the fallback channel got a queued notice of the same alert. */
  hasDiverted(one: Waiting): boolean {
    return this.ofAlert(one).some(({ isDiverted }) => isDiverted)
  }

  /** Finds the notices of an alert that are held back and were never tried. */
  heldOf(alertId: string): readonly Waiting[] {
    return [...this.#waiting.values()].filter(
      (one) => one.heldBy !== null && one.attempts === 0 && alertOf(one) === alertId,
    )
  }

  take(nowMs: number, limits: QueueLimits, suppressionOf: SuppressionOf): Taken {
    const freeMs = this.#freeMs(nowMs, limits.perMinute)
    if (freeMs > nowMs) {
      this.#isBehind = true
      return { batch: [], held: [], nextMs: freeMs }
    }
    const taken = { batch: [], held: [], nextMs: nowMs + HELD_RECHECK_MS }
    this.#collect(taken, { nowMs, limits, suppressionOf })
    return taken
  }

  #collect(
    taken: { readonly batch: Waiting[]; readonly held: Waiting[]; nextMs: number },
    now: {
      readonly nowMs: number
      readonly limits: QueueLimits
      readonly suppressionOf: SuppressionOf
    },
  ): void {
    const { batch, held } = taken
    const { nowMs, limits, suppressionOf } = now
    const blocked = new Set<string>()
    const { digests } = limits
    const canDigest = digests === 'always' || (digests === 'behind' && this.#isBehind)
    for (const one of this.#waiting.values()) {
      const [first] = batch
      if (blocked.has(alertOf(one)) || !this.#goesWith(first, one)) continue
      const dueMs = this.#dueMs(one, first)
      if (dueMs > nowMs || isSuppressed(one, nowMs, { suppressionOf, held })) {
        blocked.add(alertOf(one))
        if (dueMs > nowMs) taken.nextMs = Math.min(taken.nextMs, dueMs)
        continue
      }
      batch.push(one)
      if (canDigest && batch.length < MAX_DIGEST) continue
      if (!canDigest) this.#release(one)
      return
    }
  }

  /** Counts a message that was sent towards the rate limit and the interval of its rules. */
  sent(batch: readonly Waiting[], nowMs: number): void {
    this.#sentMs.push(nowMs)
    for (const one of batch) this.#ruleSentMs.set(ruleOf(one), nowMs)
    if (batch.length < MAX_DIGEST) this.#isBehind = false
    if (this.#ruleSentMs.size <= MAX_WAITING) return
    const [oldest] = this.#ruleSentMs.keys()
    if (oldest !== undefined) this.#ruleSentMs.delete(oldest)
  }

  /** When the channel may send the next message. */
  #freeMs(nowMs: number, perMinute: number): number {
    this.#sentMs = this.#sentMs.filter((sentMs) => sentMs > nowMs - MINUTE_MS)
    const blocking = this.#sentMs.at(-perMinute)
    return blocking === undefined ? 0 : blocking + MINUTE_MS
  }

  #goesWith(first: Waiting | undefined, one: Waiting): boolean {
    return first === undefined || this.#isBehind || ruleOf(first) === ruleOf(one)
  }

  #dueMs(one: Waiting, first: Waiting | undefined): number {
    if (one.retryMs > 0) return one.retryMs
    const isWith = first !== undefined && ruleOf(first) === ruleOf(one)
    if (one.isReleased || isWith) return 0
    const { to, atMs, waitMs = 0, intervalMs = 0 } = one.notice.transition
    // The notice of a resolved alert does not wait for `group_interval`.
    if (to === 'resolved') return atMs + waitMs
    return Math.max(atMs + waitMs, (this.#ruleSentMs.get(ruleOf(one)) ?? 0) + intervalMs)
  }

  /** Marks all queued notices of the rule as due, so that they are sent one after the other. */
  #release(first: Waiting): void {
    if (first.isReleased) return
    for (const one of this.#waiting.values())
      if (ruleOf(one) === ruleOf(first)) one.isReleased = true
  }
}

function isSuppressed(
  one: Waiting,
  nowMs: number,
  { suppressionOf, held }: { readonly suppressionOf: SuppressionOf; readonly held: Waiting[] },
): boolean {
  if (nowMs < one.heldUntilMs) return true
  const quiet = suppressionOf(labelsOf(one.notice.transition), nowMs)
  if (quiet === null) return false
  one.heldUntilMs = nowMs + HELD_RECHECK_MS
  const by = textOf(quiet)
  if (one.heldBy !== by) held.push(one)
  one.heldBy = by
  return true
}

const textOf = ({ by, id, reason }: Suppression): string => `${by} ${id}: ${reason}`
