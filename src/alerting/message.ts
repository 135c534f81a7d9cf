/* The text of notices for people. */

import { counted } from '../lib/counted.js'
import type { Facts } from './facts.js'
import type { Links } from './links.js'
import type { LoggedTransition } from './alert-log.js'
import type { Notice } from './notices.js'
import { printable, renderTemplate, type TemplateValues } from './template.js'

/** The content of one message. */
export interface Message {
  /** One notice, or several in a digest. */
  readonly notices: readonly Notice[]
  /** The receiver's id for its first message about the alert. */
  readonly receipt: string | null
  /** Null for a digest. */
  readonly facts: Facts | null
  /** The template of the channel; null for the default text. */
  readonly template: string | null
}

export interface Text {
  readonly title: string
  readonly lines: readonly string[]
  /** Names and addresses, which are not escaped. */
  readonly links: readonly (readonly [name: string, url: string])[]
  readonly isResolved: boolean
}

export const iso = (ms: number): string => new Date(ms).toISOString()
export const statusOf = (one: LoggedTransition): 'resolved' | 'firing' =>
  isResolved(one) ? 'resolved' : 'firing'
export const isResolved = ({ to }: LoggedTransition): boolean => to === 'resolved'
const numberText = (value: number): string => String(Number(value.toPrecision(6)))

/** The title of an alert with its value, on one line. */
export function headlineOf(one: LoggedTransition): string {
  const where = one.groupBy.map((name, i) => `${name}=${one.group[i] ?? ''}`).join(' ')
  const state = isResolved(one) ? 'resolved' : `${one.severity} firing`
  if (one.finding !== undefined) return `[${state}] ${one.finding.title}`
  const value = one.value === null ? '' : ` (${numberText(one.value)})`
  return `[${state}] ${one.ruleName}${where === '' ? '' : ` ${where}`}${value}`
}

export function linesOf(one: LoggedTransition, facts: Facts | null): readonly string[] {
  const lines = [
    `Since: ${iso(one.startedAtMs ?? one.atMs)}`,
    `At: ${iso(one.atMs)}`,
    `Window: ${iso(one.windowFromMs)} to ${iso(one.windowToMs)}`,
  ]
  if (facts !== null && facts.usual !== null) lines.push(`Usually: ${numberText(facts.usual)}`)
  if (one.q !== '') lines.push(`Query: ${one.q}`)
  if (one.reason !== null) lines.push(`Reason: ${one.reason}`)
  if (one.status.isFlapping) lines.push('It is flapping: it resolves after 15 minutes of calm.')
  if (one.runbook !== undefined) lines.push(`Runbook: ${one.runbook}`)
  return [...lines, ...(facts?.samples ?? [])]
}

const LINK_NAMES = {
  events: 'Events',
  rule: 'Rule',
  incident: 'Incident',
  mute: 'Mute an hour',
  acknowledge: 'Acknowledge',
} as const satisfies Readonly<Record<keyof Links, string>>

/** The links that a message shows. A resolved alert has none to mute or acknowledge it. */
export function shownLinks(
  one: LoggedTransition,
  links: Links | null,
): readonly (readonly [keyof Links, string])[] {
  const names = ['events', 'rule', 'incident', 'mute', 'acknowledge'] as const
  return names.flatMap((name) => {
    const url = links?.[name] ?? null
    const isOver = isResolved(one) && (name === 'mute' || name === 'acknowledge')
    return url === null || isOver ? [] : [[name, url] as const]
  })
}

const namedLinks = (one: LoggedTransition, links: Links | null): Text['links'] =>
  shownLinks(one, links).map(([name, url]) => [LINK_NAMES[name], url])

const LINE_ENDS = /[\r\n\v\f\u0085\u2028\u2029]+/g

/**
 * The text of a message; a digest has a line for each alert.
 *
 * @param escapeLine makes a line one of the channel
 */
export function textOf(
  { notices, facts, template }: Pick<Message, 'notices' | 'facts' | 'template'>,
  escapeLine: (text: string) => string,
): Text {
  // The value of a group is what a sender wrote, and must not add lines that look like ours.
  const escape = (text: string): string => escapeLine(text.replaceAll(LINE_ENDS, ' '))
  const all = notices.map(({ transition }) => transition)
  const [one] = all
  if (all.length !== 1 || one === undefined) {
    const resolved = all.filter(isResolved).length
    return {
      title: escape(digestTitle(all.length - resolved, resolved)),
      lines: all.map((each) => escape(headlineOf(each))),
      links: [],
      isResolved: resolved === all.length,
    }
  }
  if (template !== null) {
    const [title = '', ...lines] = renderTemplate(template, valuesOf(one, facts, escape)).split(
      '\n',
    )
    return { title, lines, links: [], isResolved: isResolved(one) }
  }
  return {
    title: escape(headlineOf(one)),
    lines: linesOf(one, facts).map(escape),
    links: namedLinks(one, facts?.links ?? null),
    isResolved: isResolved(one),
  }
}

/** `1 alert fires`, `3 alerts fire, 1 resolved`. */
function digestTitle(firing: number, resolved: number): string {
  if (firing === 0) return `${counted(resolved, 'alert')} resolved`
  const fire = `${counted(firing, 'alert')} ${firing === 1 ? 'fires' : 'fire'}`
  return resolved === 0 ? fire : `${fire}, ${resolved} resolved`
}

function valuesOf(
  one: LoggedTransition,
  facts: Facts | null,
  escape: (text: string) => string,
): TemplateValues {
  const { usual, samples, links: all } = facts ?? NO_FACTS
  const links = shownLinks(one, all)
  const [[, link] = ['', '']] = links
  const title = escape(headlineOf(one))
  const group = one.groupBy.map((name, i) => [name, one.group[i] ?? ''] as const)
  const alert = {
    name: escape(one.ruleName),
    title,
    status: statusOf(one),
    severity: one.severity,
    id: one.alertId ?? '',
    query: escape(one.q),
    since: iso(one.startedAtMs ?? one.atMs),
    at: iso(one.atMs),
    runbook: escape(one.runbook ?? ''),
  }
  return {
    alert: printable(alert, title),
    value: shown(one.value),
    usual: shown(usual),
    group: printable(
      Object.fromEntries(group.map(([name, value]) => [name, escape(value)])),
      escape(group.map((pair) => pair.join('=')).join(', ')),
    ),
    link,
    links: printable(Object.fromEntries(links), links.map((pair) => pair.join(': ')).join('\n')),
    samples: samples.map(escape),
  }
}

const NO_FACTS: Facts = { usual: null, samples: [], links: null }
const shown = (value: number | null): string => (value === null ? '' : numberText(value))
