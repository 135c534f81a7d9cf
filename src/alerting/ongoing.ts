/*
 * The alerts that fire, by the last transition of each. Whoever was told that one fires is told its end, under the name and the
 * severity that it began with, whatever its rule became meanwhile.
 */

import type { LoggedTransition } from './log.js'
import { MINUTE_MS } from '../model/time.js'
import type { TrackedRule } from './tracked-rule.js'
import { goneOn, ofAlert, toState } from './transitions.js'

/** An instance learns within this time that another instance registered a source. */
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

  /** A transition under the name and severity of which channels were told. */
  asKnown(one: LoggedTransition): LoggedTransition {
    return ofAlert(one, this.#alerts.get(one.alertId ?? ''))
  }

  /** The alerts of sources that were deleted. */
  get ofDeletedSources(): readonly LoggedTransition[] {
    return [...this.#alerts.values()].filter((one) => this.#isGone(one, one.startedAtMs ?? 0))
  }

  /** Whether a transition says that a deleted source is silent. */
  isOfDeletedSource(one: LoggedTransition): boolean {
    return one.kind === 'absence' && this.#isGone(one, one.windowFromMs)
  }

  /** A source whose records were all rejected is not registered either. */
  #isGone({ kind, groupBy, group }: LoggedTransition, knownSinceMs: number): boolean {
    const source = kind === 'dead_letters' ? '' : (group[groupBy.indexOf('source')] ?? '')
    const isKnown = source === '' || knownSinceMs > Date.now() - KNOWN_WITHIN_MS
    return !isKnown && !this.#hasSource(source)
  }

  /** The transitions by which alerts go on where their changed rule has other channels. */
  changesOf(tracked: TrackedRule, untilMs: number): readonly LoggedTransition[] {
    const { plan } = tracked
    const atMs = Math.max(untilMs, plan.rule.updatedAtMs)
    return tracked.states.flatMap((state) => {
      const before = this.#alerts.get(toState(plan, state).alertId ?? '')
      const changes = before === undefined ? [] : goneOn(plan, before, atMs)
      for (const { status } of changes) tracked.restore({ ...state, status })
      return changes
    })
  }
}
