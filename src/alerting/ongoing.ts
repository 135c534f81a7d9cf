/*
 * The firing alerts, by the last transition of each. Channels that got a notice that an alert fires
 * also get that of its end, under the name and severity that it began with, even when its rule was
 * changed or deleted.
 */

import type { LoggedTransition } from './alert-log.js'
import { MINUTE_MS } from '../model/time.js'
import type { TrackedRule } from './tracked-rule.js'
import { channelChangeOf, ofAlert, toState } from './transitions.js'

/** The longest time until an instance sees a source that another one registered. */
const KNOWN_WITHIN_MS = MINUTE_MS

export class Ongoing {
  readonly #alerts = new Map<string, LoggedTransition>()
  readonly #hasSource: (name: string) => boolean

  constructor(hasSource: (name: string) => boolean) {
    this.#hasSource = hasSource
  }

  follow(one: LoggedTransition): void {
    if (one.alertId === null) return
    if (one.status.state === 'inactive') this.#alerts.delete(one.alertId)
    else this.#alerts.set(one.alertId, one)
  }

  /** The transition under the name and severity of the notices that were sent. */
  asKnown(one: LoggedTransition): LoggedTransition {
    return ofAlert(one, this.#alerts.get(one.alertId ?? ''))
  }

  /** The firing alerts of groups whose source was deleted. */
  get ofDeletedSources(): readonly LoggedTransition[] {
    return [...this.#alerts.values()].filter((one) => this.#isGone(one, one.startedAtMs ?? 0))
  }

  /** Whether a transition says that a deleted source is silent. */
  isOfDeletedSource(one: LoggedTransition): boolean {
    return one.kind === 'absence' && this.#isGone(one, one.windowFromMs)
  }

  /** Whether the source of the group was deleted. A source whose records were all rejected is not registered either. */
  #isGone({ kind, groupBy, group }: LoggedTransition, knownSinceMs: number): boolean {
    const source = kind === 'dead_letters' ? '' : (group[groupBy.indexOf('source')] ?? '')
    const isKnown = source === '' || knownSinceMs > Date.now() - KNOWN_WITHIN_MS
    return !isKnown && !this.#hasSource(source)
  }

  /** The transitions that give firing alerts the other channels of their changed rule. */
  changesOf(tracked: TrackedRule, untilMs: number): readonly LoggedTransition[] {
    const { plan } = tracked
    const atMs = Math.max(untilMs, plan.rule.updatedAtMs)
    return tracked.states.flatMap((state) => {
      const before = this.#alerts.get(toState(plan, state).alertId ?? '')
      const changes = before === undefined ? [] : channelChangeOf(plan, before, atMs)
      for (const { status } of changes) tracked.restore({ ...state, status })
      return changes
    })
  }
}
