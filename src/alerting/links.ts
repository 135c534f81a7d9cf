/* Links from a notice into the web page. */

import { allOf, type Query } from '../query/ast.js'
import { toField } from '../query/fields.js'
import { matchersOfGroup, printMatchers } from '../query/matcher-line.js'
import { parseQuery } from '../query/parser.js'
import { printQuery } from '../query/printer.js'
import type { LoggedTransition } from './alert-log.js'
import { incidentIdOf } from './projection.js'

export interface Links {
  /** The events of the group; null for a rule that counts no events. */
  readonly events: string | null
  readonly rule: string
  /** A link that silences the group for an hour after the user confirms it. */
  readonly mute: string
  /** The firing alerts of the rule, where they can be acknowledged. */
  readonly acknowledge: string
  /** The incident of the alert; null for a rule that opens none. */
  readonly incident: string | null
}

/** The query of a group's events. @returns null for a rule that counts no events */
export function queryOf({ q, part, kind, groupBy, group }: LoggedTransition): Query | null {
  if (kind === 'dead_letters') return null
  const lines = part === undefined ? [q] : [q, part]
  const queries = lines.map((line) => parseQuery(line).query)
  const known = queries.filter((query) => query !== null)
  if (known.length < queries.length) return null
  const isOf = (name: string, value: string): boolean =>
    kind !== 'anomaly' || (value !== '' && name !== 'direction')
  const groups = groupBy.map((name, i) => [name, group[i] ?? ''] as const)
  const own = groups.filter(([name, value]) => isOf(name, value))
  return allOf([...known, ...own.flatMap(([name, value]) => ofGroup(name, value))])
}

function ofGroup(name: string, value: string): readonly Query[] {
  const field = toField(name)
  if (value !== '') return [{ kind: 'field', field, tests: [{ kind: 'equal', text: value }] }]
  return [{ kind: 'not', node: { kind: 'has', field } }]
}

/** @param page the public URL of the web page */
export function linksOf(one: LoggedTransition, page: string): Links {
  const { ruleId, alertId, opens, groupBy, group } = one
  const to = (path: string, params: Readonly<Record<string, string>> = {}): string => {
    const url = new URL(path, page)
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
    return url.href
  }
  const query = queryOf(one)
  const values = Object.fromEntries(groupBy.map((name, i) => [name, group[i] ?? '']))
  return {
    events: query === null ? null : to('/explore', { q: printQuery(query), ...rangeOf(one) }),
    rule: to(`/alerts/rules/${ruleId}`),
    mute: to('/alerts/quiet', {
      silence: printMatchers(matchersOfGroup(ruleId, values)),
      for: 'now+1h',
    }),
    acknowledge: to('/alerts', { show: 'firing', rule: ruleId }),
    incident:
      opens === undefined || alertId === null ? null : to(`/incidents/${incidentIdOf(alertId)}`),
  }
}

/**
 * The time range of an alert's events. For a silent group it is the time before the silence, for a
 * resolved alert the whole time that it fired.
 */
function rangeOf({ kind, to, startedAtMs = null, windowFromMs, windowToMs }: LoggedTransition) {
  const windowMs = windowToMs - windowFromMs
  const beganMs = to === 'resolved' && startedAtMs !== null ? startedAtMs - windowMs : windowFromMs
  return {
    from: new Date(beganMs - (kind === 'absence' ? windowMs : 0)).toISOString(),
    to: new Date(windowToMs).toISOString(),
  }
}
