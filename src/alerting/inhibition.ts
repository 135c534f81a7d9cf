/*
 * Inhibition: while an alert fires, it holds back the notices of less important ones. A silent
 * source inhibits alerts about its templates, and a P1 alert of a group inhibits P3 and P4 alerts
 * of the same group.
 */

import type { LoggedTransition } from './alert-log.js'
import { labelsOf, type Labels } from './matchers.js'
import type { Suppression } from './suppression.js'

export class Inhibition {
  /** The inhibiting alerts with the names of their rules, by the key of what they inhibit. */
  readonly #by = new Map<string, Map<string, string>>()

  note(one: LoggedTransition): void {
    const { alertId, status, ruleName } = one
    if (alertId === null) return
    for (const key of keysOf(one)) {
      const alerts = this.#by.get(key) ?? new Map<string, string>()
      if (status.state === 'inactive') alerts.delete(alertId)
      else alerts.set(alertId, ruleName)
      if (alerts.size === 0) this.#by.delete(key)
      else this.#by.set(key, alerts)
    }
  }

  of({ own: { severity }, group }: Labels): Suppression | null {
    const { source, template } = group
    const isMinor = severity === 'P3' || severity === 'P4'
    const keys = [
      ...(isMinor ? groupKeys(group) : []),
      ...(source !== undefined && template !== undefined ? [sourceKey(source)] : []),
    ]
    for (const key of keys)
      for (const [id, name] of this.#by.get(key) ?? [])
        return { by: 'alert', id, reason: `"${name}" fires` }
    return null
  }
}

function keysOf(one: LoggedTransition): readonly string[] {
  const { group } = labelsOf(one)
  const isSilence = one.kind === 'absence' && one.groupBy.join() === 'source'
  return [
    ...(isSilence ? [sourceKey(group['source'] ?? '')] : []),
    ...(one.severity === 'P1' ? groupKeys(group) : []),
  ]
}

const sourceKey = (source: string): string => `source ${source}`

/** An alert of a rule without groups has no group. */
function groupKeys(group: Labels['group']): readonly string[] {
  const own = Object.entries(group).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return own.length === 0 ? [] : [`group ${JSON.stringify(own)}`]
}
