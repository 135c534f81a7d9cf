/*
 * Alerts that keep the notices of others back while they fire: a silent source those of its templates, and a P1 of a group
 * those of P3 and P4 of the same group.
 */

import type { LoggedTransition } from './log.js'
import { labelsOf, type Labels } from './matchers.js'
import type { Quiet } from './quiet.js'

const FACTS: ReadonlySet<string> = new Set(['rule_id', 'rule', 'severity', 'alert_id'])

export class Inhibition {
  /** By what an alert keeps back, the alerts that do, with the names of their rules. */
  readonly #by = new Map<string, Map<string, string>>()

  note(one: LoggedTransition): void {
    const { alertId, status, ruleName } = one
    const key = keyOf(one)
    if (alertId === null || key === null) return
    const alerts = this.#by.get(key) ?? new Map<string, string>()
    if (status.state === 'inactive') alerts.delete(alertId)
    else alerts.set(alertId, ruleName)
    if (alerts.size === 0) this.#by.delete(key)
    else this.#by.set(key, alerts)
  }

  of(labels: Labels): Quiet | null {
    const { severity, source, template } = labels
    const isMinor = severity === 'P3' || severity === 'P4'
    const keys = [
      ...(isMinor ? [groupKey(labels)] : []),
      ...(source !== undefined && template !== undefined ? [sourceKey(source)] : []),
    ]
    for (const key of keys)
      for (const [id, name] of this.#by.get(key ?? '') ?? [])
        return { by: 'alert', id, reason: `"${name}" fires` }
    return null
  }
}

function keyOf(one: LoggedTransition): string | null {
  const labels = labelsOf(one)
  if (one.kind === 'absence' && one.groupBy.join() === 'source')
    return sourceKey(labels['source'] ?? '')
  return one.severity === 'P1' ? groupKey(labels) : null
}

const sourceKey = (source: string): string => `source ${source}`

/** A rule without groups is of no group. */
function groupKey(labels: Labels): string | null {
  const own = Object.entries(labels).filter(([name]) => !FACTS.has(name))
  return own.length === 0
    ? null
    : `group ${JSON.stringify(own.toSorted(([a], [b]) => (a < b ? -1 : 1)))}`
}
