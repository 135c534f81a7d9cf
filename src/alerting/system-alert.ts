/*
 * The system alert says that rules are not evaluated, because messages are not stored yet,
 * ClickHouse does not answer, or the query of a rule fails. Meanwhile no rule fires or resolves.
 */

import { randomUUID } from 'node:crypto'

import { counted } from '../lib/counted.js'
import { MINUTE_MS } from '../model/time.js'
import type { Alerts } from '../records/alerts.js'

/** The rule id of the system alert. */
export const SYSTEM_RULE_ID = '00000000-0000-8000-a000-000000000001'
const BEHIND_MS = 2 * MINUTE_MS

export interface Evaluated {
  /** Messages that arrived before this time are evaluated; at first the start of the evaluation. */
  readonly untilMs: number
  /** The names of the rules that cannot be evaluated. */
  readonly unknown: readonly string[]
}

export const isBehind = (untilMs: number, nowMs: number): boolean => nowMs - untilMs > BEHIND_MS

export type SystemAlert = ReturnType<typeof createSystemAlert>

/** @throws AppError dependency_unavailable; the next call tries again */
export const createSystemAlert =
  (alerts: Pick<Alerts, 'create' | 'resolve' | 'firingOf'>) =>
  async (evaluated: Evaluated, nowMs: number): Promise<void> => {
    const why = reasonOf(evaluated, nowMs)
    const firing = alerts.firingOf(SYSTEM_RULE_ID)
    if (why === null) {
      for (const id of firing) await alerts.resolve(id, nowMs, null)
      return
    }
    if (firing.length > 0) return
    await alerts.create({
      id: randomUUID(),
      title: `Alert rules are not evaluated: ${why}`,
      severity: 'P2',
      eventIds: [],
      relatedSource: null,
      rule: {
        ruleId: SYSTEM_RULE_ID,
        group: {},
        state: 'firing',
        value: Math.round((nowMs - evaluated.untilMs) / 1_000),
        startedAtMs: nowMs,
        resolvedAtMs: null,
      },
    })
  }

function reasonOf({ untilMs, unknown }: Evaluated, nowMs: number): string | null {
  if (isBehind(untilMs, nowMs)) return 'what arrived in the last two minutes is not known'
  const [first, ...others] = unknown
  if (first === undefined) return null
  const more = others.length === 0 ? '' : ` and ${counted(others.length, 'other rule')}`
  return `"${first}"${more} cannot be evaluated`
}
