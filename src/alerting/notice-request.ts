/* The request body of a notice for each kind of channel. */

import { createHmac } from 'node:crypto'

import type { Target } from './channel.js'
import {
  headlineOf,
  iso,
  isResolved,
  linesOf,
  shownLinks,
  statusOf,
  textOf,
  type Message,
} from './message.js'
import type { Notice } from './notices.js'

const fieldsOf = (notice: Notice, { facts }: Message) => {
  const { transition: one } = notice
  return {
    id: notice.key,
    is_repeat: notice.kind === 'repeat',
    status: statusOf(one),
    alert_id: one.alertId,
    title: headlineOf(one),
    rule: { id: one.ruleId, version: one.ruleVersion, name: one.ruleName },
    severity: one.severity,
    group: Object.fromEntries(one.groupBy.map((name, i) => [name, one.group[i] ?? ''])),
    value: one.value,
    q: one.q,
    started_at: iso(one.startedAtMs ?? one.atMs),
    at: iso(one.atMs),
    window_from: iso(one.windowFromMs),
    window_to: iso(one.windowToMs),
    is_flapping: one.status.isFlapping,
    runbook: one.runbook ?? null,
    usual: facts?.usual ?? null,
    samples: facts?.samples ?? [],
    links: Object.fromEntries(shownLinks(one, facts?.links ?? null)),
  }
}

interface Posted {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The channels that take a notice as one POST request. */
type PostTarget = Exclude<Target, { type: 'email' | 'slack_bot' }>

/** Label names in use; a group field with one of these names gets another label. */
const OWN_LABELS: ReadonlySet<string> = new Set(['alertname', 'rule_id', 'severity'])

/**
 * Converts a notice for Alertmanager. All messages about an alert have the same labels, because
 * labels identify an alert there.
 */
function toPrometheusAlert({ transition: one }: Notice, { facts }: Message) {
  const group = one.groupBy.map((name, i) => {
    const label = name.replaceAll(/[^A-Za-z0-9_]/g, '_')
    return [OWN_LABELS.has(label) ? `group_${label}` : label, one.group[i] ?? '']
  })
  const { ruleId, ruleName, severity } = one
  const labels = { ...Object.fromEntries(group), alertname: ruleName, rule_id: ruleId, severity }
  const annotations = {
    summary: headlineOf(one),
    description: linesOf(one, facts).join('\n'),
    ...(one.runbook === undefined ? {} : { runbook_url: one.runbook }),
  }
  const startsAt = iso(one.startedAtMs ?? one.atMs)
  const { links = null } = facts ?? {}
  return {
    labels,
    annotations,
    startsAt,
    ...(isResolved(one) ? { endsAt: iso(one.atMs) } : {}),
    ...(links === null ? {} : { generatorURL: links.events ?? links.rule }),
  }
}

const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue'
const PAGERDUTY_SEVERITIES = { P1: 'critical', P2: 'error', P3: 'warning', P4: 'info' } as const

export function toRequest(target: PostTarget, message: Message, nowMs: number): Posted {
  const [notice] = message.notices
  if (notice === undefined) throw new Error('bug: a message about nothing')
  switch (target.type) {
    case 'webhook':
      return toWebhook(target, { notice, message, nowMs })
    case 'slack':
      return {
        url: target.secret,
        headers: {},
        body: JSON.stringify({ text: slackMessage(message) }),
      }
    case 'alertmanager': {
      const body = JSON.stringify(message.notices.map((one) => toPrometheusAlert(one, message)))
      return { url: `${target.url.replace(/(?<!\/)\/+$/, '')}/api/v2/alerts`, headers: {}, body }
    }
    case 'teams':
      return { url: target.secret, headers: {}, body: JSON.stringify(adaptiveCard(message)) }
    case 'pagerduty':
      return toPagerduty(target, notice, message)
  }
}

function toWebhook(
  target: Extract<Target, { type: 'webhook' }>,
  asked: { readonly notice: Notice; readonly message: Message; readonly nowMs: number },
): Posted {
  const { notice, message, nowMs } = asked
  const text = message.template === null ? {} : { text: plainText(message) }
  const body = JSON.stringify({ ...fieldsOf(notice, message), ...text })
  const headers = { 'idempotency-key': notice.key }
  if (target.secret === undefined) return { url: target.url, headers, body }
  const secrets = [
    target.secret,
    ...(target.previous_secret === undefined ? [] : [target.previous_secret]),
  ]
  const signature = signed(secrets, Math.floor(nowMs / 1000), body)
  return { url: target.url, headers: { ...headers, 'x-signature': signature }, body }
}

const pagerdutyAction = ({ kind, transition }: Notice): string => {
  if (kind === 'acknowledge') return 'acknowledge'
  return isResolved(transition) ? 'resolve' : 'trigger'
}

function toPagerduty(
  target: Extract<Target, { type: 'pagerduty' }>,
  notice: Notice,
  message: Message,
): Posted {
  const { transition: one } = notice
  const { title } = textOf(message, (text) => text)
  const event = {
    routing_key: target.secret,
    event_action: pagerdutyAction(notice),
    dedup_key: one.alertId ?? notice.id,
    payload: {
      summary: title.slice(0, 1_024),
      source: one.group[one.groupBy.indexOf('source')] ?? one.ruleName,
      severity: PAGERDUTY_SEVERITIES[one.severity],
      timestamp: iso(one.atMs),
      custom_details: fieldsOf(notice, message),
    },
    links: shownLinks(one, message.facts?.links ?? null).map(([text, href]) => ({ href, text })),
  }
  return { url: target.url ?? PAGERDUTY_URL, headers: {}, body: JSON.stringify(event) }
}

/**
 * The signature header. `t` is the time of sending; each `v1` is the HMAC of `t`, a dot and the
 * body under one of the secrets.
 */
function signed(secrets: readonly string[], t: number, body: string): string {
  const hmac = (secret: string): string =>
    createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')
  return [`t=${t}`, ...secrets.map((secret) => `v1=${hmac(secret)}`)].join(',')
}

export function slackMessage(message: Message): string {
  const { title, lines, links } = textOf(message, slackText)
  const named = links.map(([name, url]) => `<${slackText(url)}|${name}>`)
  return [`*${title}*`, ...lines, ...(named.length === 0 ? [] : [named.join(' · ')])].join('\n')
}

export function plainText(message: Message): string {
  const { title, lines, links } = textOf(message, (text) => text)
  return [title, ...lines, ...links.map(([name, url]) => `${name}: ${url}`)].join('\n')
}

/** Escapes the three control characters of Slack's markup. */
const slackText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Escapes the Markdown of a card's text. */
const cardText = (text: string): string => text.replaceAll(/[\\`*_{}[\]()#+!|<>~-]/g, '\\$&')

function adaptiveCard(message: Message) {
  const { title, lines, links, isResolved: isGood } = textOf(message, cardText)
  const head = {
    type: 'TextBlock',
    text: title,
    weight: 'Bolder',
    wrap: true,
    color: isGood ? 'Good' : 'Attention',
  }
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [head, ...lines.map((text) => ({ type: 'TextBlock', text, wrap: true }))],
    actions: links.map(([name, url]) => ({ type: 'Action.OpenUrl', title: name, url })),
  }
  const contentType = 'application/vnd.microsoft.card.adaptive'
  return { type: 'message', attachments: [{ contentType, content }] }
}
