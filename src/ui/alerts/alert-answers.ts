import type { Static } from '@sinclair/typebox'

import type { RuleFields } from '../../alerting/rule-fields.js'
import type { Priority } from '../../model/event.js'
import { percent } from '../lib/format.js'

export type Fields = Static<typeof RuleFields>
export type Kind = Fields['kind']
/** The window of a rule that names none. */
export const NEW_TEMPLATE_WINDOW = '15m'

export interface Alert {
  readonly id: string
  readonly title: string
  readonly severity: Priority
  readonly read: boolean
  readonly created_at: string
  readonly event_ids: readonly number[]
  readonly related_source: string | null
  readonly rule_id: string | null
  readonly state: 'firing' | 'resolved' | null
  readonly group: Readonly<Record<string, string>> | null
  readonly value: number | null
  readonly started_at: string | null
  readonly resolved_at: string | null
  readonly acknowledged_by: string | null
}

export interface Rule extends Fields {
  readonly id: string
  readonly version: number
  readonly updated_at: string
  readonly firing: number
  readonly evaluated_at: string | null
  readonly problem: string | null
}

export interface Transition {
  readonly id: string
  readonly at: string
  readonly from: string
  readonly to: string
  readonly group: Readonly<Record<string, string>>
  readonly value: number | null
  readonly is_flapping: boolean
  readonly q: string
  readonly window_from: string
  readonly window_to: string
  readonly reason: string | null
  readonly notices: readonly {
    readonly id: string
    readonly channel_id: string
    readonly outcome: string
    readonly attempts: number
    readonly status: number | null
    readonly error: string | null
  }[]
}

export interface Channel {
  readonly id: string
  readonly name: string
  readonly enabled: boolean
  readonly type: string | null
  readonly url: string | null
  readonly to: readonly string[] | null
  readonly channel: string | null
  readonly has_secret: boolean
  readonly fallback: string | null
  readonly max_per_minute: number | null
  readonly template: string | null
  readonly failing: { readonly since: string; readonly error: string } | null
}

const CHANNEL_KINDS: Readonly<Record<string, string>> = {
  webhook: 'Webhook',
  email: 'E-mail',
  slack_bot: 'Slack, by a bot',
  slack: 'Slack',
  teams: 'Microsoft Teams',
  pagerduty: 'PagerDuty',
  alertmanager: 'Alertmanager',
}

/** The name of a kind of channel; null for one whose secret cannot be decrypted. */
export const channelKind = (type: string | null): string =>
  type === null ? 'its secret is lost' : (CHANNEL_KINDS[type] ?? type)

/** The names of all fields; the type makes sure that none is missing. */
const FIELD_NAMES = {
  name: true,
  enabled: true,
  severity: true,
  owner: true,
  runbook: true,
  note: true,
  q: true,
  kind: true,
  group_by: true,
  max_groups: true,
  max_age: true,
  time: true,
  every: true,
  notify: true,
  opens: true,
  for: true,
  keep_firing_for: true,
  n_of_m: true,
} as const satisfies Readonly<Record<keyof Fields, true>>

/** The fields of a rule that the user sets. */
export const fieldsOf = (rule: Rule): Fields =>
  Object.fromEntries(
    Object.entries(rule).filter(([name]) => Object.hasOwn(FIELD_NAMES, name)),
  ) as Fields // all of the rule's own

const AGAINST = { before: 'before', day: 'of a day ago', week: 'of a week ago' } as const

const anomalyText = ({ kinds, min_score: least = 10 }: Extract<Kind, { type: 'anomaly' }>) =>
  `${kinds?.join(', ') ?? 'any anomaly'} with a gravity of ${least} or more`

const leastText = ({ min_severity: least }: Extract<Kind, { type: 'new_template' }>) =>
  least === undefined ? '' : ` of ${least} or graver`

/** Describes in words what a rule counts. */
export function kindText(kind: Kind): string {
  switch (kind.type) {
    case 'threshold':
      return `${kind.of ?? 'occurrences'} in ${kind.window} ${kind.op} ${kind.fire}`
    case 'ratio':
      return `share of ${kind.part} in ${kind.window} ${kind.op} ${kind.fire}`
    case 'value':
      return `${kind.metric} in ${kind.window} ${kind.op} ${kind.fire}`
    case 'absence':
      return `nothing for ${kind.for}`
    case 'change':
      return `${kind.factor} times more or less than in the ${kind.window} ${AGAINST[kind.against ?? 'before']}`
    case 'new_template':
      return `a new template${leastText(kind)} in ${kind.window ?? NEW_TEMPLATE_WINDOW}`
    case 'anomaly':
      return anomalyText(kind)
    case 'dead_letters':
      return `more than ${percent(kind.share)} dead letters in ${kind.window}`
  }
}

export const groupText = (group: Readonly<Record<string, string>> | null): string =>
  Object.entries(group ?? {})
    .map(([name, value]) => `${name} ${value === '' ? '(none)' : value}`)
    .join(', ')
