/* What a notice says, in the form of each kind of channel. */

import { createHmac } from 'node:crypto'

import type { Target } from './channel.js'
import type { LoggedTransition } from './log.js'

/** A notice of one transition to one channel. Its id is the same however often it is sent. */
export interface Notice {
  readonly id: string
  /** Whether it is about the transition itself, says that the alert still fires, or replaces another channel's. */
  readonly kind: 'transition' | 'repeat' | 'fallback'
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
function textOf(notices: readonly Notice[]): Text {
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

const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue'
const PAGERDUTY_SEVERITIES = { P1: 'critical', P2: 'error', P3: 'warning', P4: 'info' } as const

/** @param notices one; or several, for a channel that has digests */
export function toRequest(target: Target, notices: readonly Notice[], nowMs: number): Posted {
  const [notice] = notices
  if (notice === undefined) throw new Error('bug: a message about nothing')
  const { transition: one } = notice
  switch (target.type) {
    case 'webhook': {
      const body = JSON.stringify(fieldsOf(notice))
      const headers = { 'idempotency-key': notice.id }
      if (target.secret === undefined) return { url: target.url, headers, body }
      const signature = signed(target.secret, Math.floor(nowMs / 1000), body)
      return { url: target.url, headers: { ...headers, 'x-signature': signature }, body }
    }
    case 'slack': {
      const { title, lines } = textOf(notices)
      const text = [`*${slackText(title)}*`, ...lines.map(slackText)].join('\n')
      return { url: target.secret, headers: {}, body: JSON.stringify({ text }) }
    }
    case 'teams':
      return { url: target.secret, headers: {}, body: JSON.stringify(adaptiveCard(notices)) }
    case 'pagerduty': {
      const event = {
        routing_key: target.secret,
        event_action: isResolved(one) ? 'resolve' : 'trigger',
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
  }
}

/** `t` is when it was sent; `v1` is the HMAC of `t`, a dot and the body. */
const signed = (secret: string, t: number, body: string): string =>
  `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`

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
