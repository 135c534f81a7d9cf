/* What a notice says, in the form of each kind of channel. */

import { createHmac } from 'node:crypto'

import type { Target } from './channel.js'
import type { LoggedTransition } from './log.js'

/** A notice of one transition to one channel. Its id is the same however often it is sent. */
export interface Notice {
  readonly id: string
  /** Whether it is about the transition itself, says that the alert still fires (to people, to a machine) or that somebody takes care of it, or replaces another channel's. */
  readonly kind: 'transition' | 'repeat' | 'refresh' | 'acknowledge' | 'fallback'
  readonly channelId: string
  readonly transition: LoggedTransition
}

const iso = (ms: number): string => new Date(ms).toISOString()

const isResolved = ({ to }: LoggedTransition): boolean => to === 'resolved'

/** One line: what, where, how much. */
function headlineOf(one: LoggedTransition): string {
  const where = one.groupBy.map((name, i) => `${name}=${one.group[i] ?? ''}`).join(' ')
  const value = one.value === null ? '' : ` (${Number(one.value.toPrecision(6))})`
  const state = isResolved(one) ? 'resolved' : `${one.severity} firing`
  return `[${state}] ${one.ruleName}${where === '' ? '' : ` ${where}`}${value}`
}

function linesOf(one: LoggedTransition): readonly string[] {
  const lines = [
    `Since: ${iso(one.startedAtMs ?? one.atMs)}`,
    `At: ${iso(one.atMs)}`,
    `Window: ${iso(one.windowFromMs)} to ${iso(one.windowToMs)}`,
  ]
  if (one.q !== '') lines.push(`Query: ${one.q}`)
  if (one.reason !== null) lines.push(`Reason: ${one.reason}`)
  if (one.status.isFlapping) lines.push('It is flapping: it resolves after 15 minutes of calm.')
  if (one.runbook !== undefined) lines.push(`Runbook: ${one.runbook}`)
  return lines
}

/** What people read: a digest has a line for each alert. */
export function textOf(notices: readonly Notice[]): Text {
  const all = notices.map(({ transition }) => transition)
  const [one] = all
  if (all.length === 1 && one !== undefined)
    return { title: headlineOf(one), lines: linesOf(one), isResolved: isResolved(one) }
  const resolved = all.filter(isResolved).length
  return {
    title: `${all.length - resolved} alerts fire, ${resolved} resolved`,
    lines: all.map(headlineOf),
    isResolved: resolved === all.length,
  }
}

interface Text {
  readonly title: string
  readonly lines: readonly string[]
  readonly isResolved: boolean
}

const fieldsOf = (notice: Notice) => {
  const { transition: one } = notice
  return {
    id: notice.id,
    is_repeat: notice.kind === 'repeat',
    status: isResolved(one) ? 'resolved' : 'firing',
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
  }
}

interface Posted {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What is one POST request. */
type PostTarget = Exclude<Target, { type: 'email' | 'slack_bot' }>

/** The labels are the same for all messages about an alert, because they are its identity there. */
function toPrometheusAlert({ transition: one }: Notice) {
  const group = one.groupBy.map((name, i) => [
    name.replaceAll(/[^A-Za-z0-9_]/g, '_'),
    one.group[i] ?? '',
  ])
  const { ruleId, ruleName, severity } = one
  const labels = { ...Object.fromEntries(group), alertname: ruleName, rule_id: ruleId, severity }
  const annotations = {
    summary: headlineOf(one),
    description: linesOf(one).join('\n'),
    ...(one.runbook === undefined ? {} : { runbook_url: one.runbook }),
  }
  const startsAt = iso(one.startedAtMs ?? one.atMs)
  return { labels, annotations, startsAt, ...(isResolved(one) ? { endsAt: iso(one.atMs) } : {}) }
}

const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue'
const PAGERDUTY_SEVERITIES = { P1: 'critical', P2: 'error', P3: 'warning', P4: 'info' } as const

/** @param notices one; or several, for a channel that has digests */
export function toRequest(target: PostTarget, notices: readonly Notice[], nowMs: number): Posted {
  const [notice] = notices
  if (notice === undefined) throw new Error('bug: a message about nothing')
  switch (target.type) {
    case 'webhook':
      return toWebhook(target, notice, nowMs)
    case 'slack':
      return {
        url: target.secret,
        headers: {},
        body: JSON.stringify({ text: slackMessage(notices) }),
      }
    case 'alertmanager': {
      const body = JSON.stringify(notices.map(toPrometheusAlert))
      return { url: `${target.url.replace(/(?<!\/)\/+$/, '')}/api/v2/alerts`, headers: {}, body }
    }
    case 'teams':
      return { url: target.secret, headers: {}, body: JSON.stringify(adaptiveCard(notices)) }
    case 'pagerduty':
      return toPagerduty(target, notice)
  }
}

function toWebhook(
  target: Extract<Target, { type: 'webhook' }>,
  notice: Notice,
  nowMs: number,
): Posted {
  const body = JSON.stringify(fieldsOf(notice))
  const headers = { 'idempotency-key': notice.id }
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

function toPagerduty(target: Extract<Target, { type: 'pagerduty' }>, notice: Notice): Posted {
  const { transition: one } = notice
  const event = {
    routing_key: target.secret,
    event_action: pagerdutyAction(notice),
    dedup_key: one.alertId ?? notice.id,
    payload: {
      summary: headlineOf(one).slice(0, 1_024),
      source: one.group[one.groupBy.indexOf('source')] ?? one.ruleName,
      severity: PAGERDUTY_SEVERITIES[one.severity],
      timestamp: iso(one.atMs),
      custom_details: fieldsOf(notice),
    },
  }
  return { url: target.url ?? PAGERDUTY_URL, headers: {}, body: JSON.stringify(event) }
}

/** `t` is when it was sent; each `v1` is the HMAC of `t`, a dot and the body with one of the secrets. */
function signed(secrets: readonly string[], t: number, body: string): string {
  const hmac = (secret: string): string =>
    createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')
  return [`t=${t}`, ...secrets.map((secret) => `v1=${hmac(secret)}`)].join(',')
}

export function slackMessage(notices: readonly Notice[]): string {
  const { title, lines } = textOf(notices)
  return [`*${slackText(title)}*`, ...lines.map(slackText)].join('\n')
}

/** Slack reads these three characters as its own. */
const slackText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** The text of a card is Markdown, whose characters are escaped. */
const cardText = (text: string): string => text.replaceAll(/[\\`*_{}[\]()#+!|<>~-]/g, '\\$&')

function adaptiveCard(notices: readonly Notice[]) {
  const { title, lines, isResolved: isGood } = textOf(notices)
  const head = {
    type: 'TextBlock',
    text: cardText(title),
    weight: 'Bolder',
    wrap: true,
    color: isGood ? 'Good' : 'Attention',
  }
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [head, ...lines.map((line) => ({ type: 'TextBlock', text: cardText(line), wrap: true }))],
  }
  const contentType = 'application/vnd.microsoft.card.adaptive'
  return { type: 'message', attachments: [{ contentType, content }] }
}
