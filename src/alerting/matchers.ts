/* The matchers of a silence or maintenance window, which select alerts. */

import { Type } from '@sinclair/typebox'

import type { Alert } from '../records/alerts.js'
import type { Matcher } from '../query/matcher-line.js'
import type { LoggedTransition } from './alert-log.js'

const MatcherSchema = Type.Object(
  {
    field: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,99}$',
      maxLength: 100,
      description:
        '`rule_id`, `rule` (its name), `severity`, `alert_id`, or a field that the rule groups by',
      examples: ['host'],
    }),
    op: Type.Optional(
      Type.Union([Type.Literal('='), Type.Literal('!=')], { description: 'default `=`' }),
    ),
    value: Type.String({
      maxLength: 1_000,
      description: '`*` stands for any characters',
      examples: ['web-*'],
    }),
    exact: Type.Optional(
      Type.Boolean({ description: '`*` in the value is a plain character; default false' }),
    ),
  },
  { additionalProperties: false, title: 'AlertMatcher' },
)

export const Matchers = Type.Array(MatcherSchema, {
  minItems: 1,
  maxItems: 10,
  description:
    'an alert is selected when all of them match; a field that it does not have is empty',
})

type Values = Readonly<Record<string, string>>

/** The labels of an alert that matchers compare. A group may have a severity too, which is that of its events. */
export interface Labels {
  readonly own: Values
  /** By the fields that the rule groups by. */
  readonly group: Values
}

export function labelsOf(one: LoggedTransition): Labels {
  const group = Object.fromEntries(one.groupBy.map((name, i) => [name, one.group[i] ?? '']))
  const { ruleId, ruleName, severity, alertId } = one
  return { own: { rule_id: ruleId, rule: ruleName, severity, alert_id: alertId ?? '' }, group }
}

/** The labels of a listed alert. An alert that no rule raised has no rule. */
export function labelsOfAlert({ id, severity, rule }: Alert, ruleName: string): Labels {
  const own = { rule_id: rule?.ruleId ?? '', rule: ruleName, severity, alert_id: id }
  return { own, group: rule?.group ?? {} }
}

export const matchesAll = (matchers: readonly Matcher[], labels: Labels): boolean =>
  matchers.every(
    ({ field, op = '=', value, exact = false }) =>
      valuesOf(labels, field).some((text) => (exact ? text === value : fits(value, text))) ===
      (op === '='),
  )

function valuesOf({ own, group }: Labels, field: string): readonly string[] {
  const found = [own[field], group[field]].filter((text) => typeof text === 'string')
  return found.length === 0 ? [''] : found
}

/** Matches a pattern with `*`, in time linear in the text for each part of the pattern. */
function fits(pattern: string, text: string): boolean {
  const parts = pattern.split('*')
  const [first = ''] = parts
  if (parts.length === 1) return text === pattern
  const last = parts.at(-1) ?? ''
  if (!text.startsWith(first) || text.length < first.length + last.length) return false
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
