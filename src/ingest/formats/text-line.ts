import type { Severity } from '../../model/event.js'
import { parseSeverity, severityOfNumber } from '../../model/severity.js'
import { comparedName } from './aliases.js'
import { withSeverityText } from './canonical.js'
import { type Draft, emptyDraft, MAX_CHARS } from './draft.js'
import type { JsonRecord } from './json-value.js'
import { TagCollector } from './tags.js'
import { refineAccess, refineProxy } from './text-access.js'
import { MARKS, refineLayout, TEXT_FORMS, type TextForm } from './text-forms.js'
import { refineSecurity } from './text-security.js'
import { parseTimestamp } from './timestamp.js'
import type { Clock } from './zone.js'

/** Limit of the characters that are searched for a head. */
const MAX_HEAD_CHARS = 2048
const MAX_PARAMS = 64

/** The decoded head of a line, which begins a record. */
export interface TextHead {
  readonly draft: Draft
  /** Columns by which continuation lines are indented, 0 when they are not. */
  readonly indent: number
  /** Whether the line is a part of a line that the container runtime split. */
  readonly isPartial: boolean
  /** `stdout` or `stderr` of a container, else ''. */
  readonly stream: string
  readonly form: TextForm
  /** The value that the record shares with the lines that belong to it; '' for none. */
  readonly joinedBy: string
}

/** @returns null for a line without a head of a known form */
export function readHead(
  line: string,
  clock: Clock,
  forms: readonly TextForm[] = TEXT_FORMS,
): TextHead | null {
  // No form begins with a blank, as most lines of stack traces do.
  if (line.startsWith(' ') || line.startsWith('\t')) return null
  const start = line.length > MAX_HEAD_CHARS ? line.slice(0, MAX_HEAD_CHARS) : line
  for (const form of forms) {
    const match = form.pattern.exec(start)
    if (match === null) continue
    const head = toHead(form, match, line, clock)
    if (head !== null) return head
  }
  return null
}

type Groups = Readonly<Partial<Record<string, string>>>

/** Groups that become fields of the event; the others become tags. */
const FIELD_GROUPS: ReadonlySet<string> = new Set(
  'time epoch fraction level boxed mark pri host trace cri client'.split(' '),
)

function toHead(
  form: TextForm,
  match: RegExpExecArray,
  line: string,
  clock: Clock,
): TextHead | null {
  const groups: Groups = match.groups ?? {}
  const timestampMs = timeOf(groups, clock)
  const level = levelOf(groups)
  const severity = level === undefined ? severityOfPri(groups['pri']) : parseSeverity(level)
  if (timestampMs === undefined || (level !== undefined && severity === null)) return null
  const draft: Draft = {
    ...emptyDraft(),
    timestampMs,
    severity,
    host: known(groups['host']),
    traceId: known(groups['trace']),
    message: form.isWhole === true ? line : line.slice(match[0].length),
  }
  draft.tags = withSeverityText(refineAndTag(form, { draft, groups, clock }), known(level))
  if (level === undefined) draft.severity = severityOfMnemonic(draft.message) ?? draft.severity
  const isPiece = groups['cri'] !== undefined
  return {
    draft,
    indent: form.isAligned === true ? match[0].length : 0,
    isPartial: groups['cri'] === 'P',
    stream: isPiece ? known(groups['stream']) : '',
    form,
    joinedBy: known(groups[form.joinedBy ?? '']),
  }
}

function levelOf(groups: Groups): string | undefined {
  const { mark } = groups
  return groups['level'] ?? groups['boxed'] ?? (mark === undefined ? mark : (MARKS[mark] ?? mark))
}

interface Read {
  readonly draft: Draft
  readonly groups: Groups
  readonly clock: Clock
}

function refineAndTag(form: TextForm, { draft, groups, clock }: Read): JsonRecord | null {
  const tags = new TagCollector()
  if (form.refine === 'layout') refineLayout(draft, (name, value) => tags.add(name, value))
  if (form.refine === 'access') refineAccess(draft, tags, known(groups['client']))
  if (form.refine === 'structured-data') refineStructuredData(draft, tags)
  if (form.refine === 'proxy') refineProxy(draft, tags, known(groups['status']))
  if (form.refine === 'security') refineSecurity(draft, tags, clock)
  for (const [name, value] of Object.entries(groups)) {
    const isNumber = name === 'bytes' && value !== undefined
    if (!FIELD_GROUPS.has(name))
      tags.add(TAG_NAMES[name] ?? name, isNumber ? Number(value) : known(value))
  }
  return tags.finish()
}

/** A regular expression has each group once. */
const TAG_NAMES: Readonly<Partial<Record<string, string>>> = { dbuser: 'user', dbname: 'database' }

/** A lone dash stands for a missing value, as `[unknown]` does in PostgreSQL. */
const known = (value: string | undefined): string =>
  value === undefined || value === '-' || value === '[unknown]' ? '' : value

/** @returns null when the head has no time, undefined when the time does not exist */
function timeOf(groups: Groups, clock: Clock): number | null | undefined {
  const epoch = groups['epoch']
  const text = epoch === undefined ? groups['time'] : `${epoch}${groups['fraction'] ?? ''}`
  return text === undefined ? null : (parseTimestamp(text.replace(/ {2}/, ' '), clock) ?? undefined)
}

/** Reads the severity of a message of Cisco's devices, such as `%SYS-5-CONFIG_I: …`. A relay may have changed the priority. */
function severityOfMnemonic(message: string): Severity | null {
  if (!message.startsWith('%')) return null
  const match = /^%[A-Z\d_]{1,64}(?:-[A-Z\d_]{1,64}){0,4}-(?<level>[0-7])-[A-Z\d_]{1,64} ?:/.exec(
    message,
  )
  return match === null ? null : severityOfNumber(Number(match.groups?.['level']), 'syslog')
}

/** RFC 5424, 6.2.1. */
const MAX_PRI = 191

/** The last three bits of a syslog priority are the severity. @returns null for a number that is none */
export const severityOfPri = (pri: string | undefined): Severity | null =>
  pri === undefined || Number(pri) > MAX_PRI ? null : severityOfNumber(Number(pri) % 8, 'syslog')

/**
 * Reads `[id name="value" …][…] message` or `- message`, and removes a byte order mark before the
 * message. If there is no message, as from Juniper's devices, the structured data is the message.
 */
function refineStructuredData(draft: Draft, tags: TagCollector): void {
  const element = /\[([^\s="\]]{1,64})((?: [^\s="\]]{1,64}="(?:[^"\\\]]|\\.){0,4096}"){0,64})\]/y
  const text = draft.message
  let end = text.startsWith('-') ? 1 : 0
  const params = new Map<string, string[]>()
  for (let match = element.exec(text); match !== null; match = element.exec(text)) {
    addParams(match[2] ?? '', draft, params)
    end = element.lastIndex
  }
  // A parameter may be repeated, such as `ip` of `origin`.
  for (const [name, values] of params) tags.add(name, values.length === 1 ? values[0] : values)
  const message = text.slice(end).replace(/^ \uFEFF?/, '')
  draft.message = message === '' && end > 1 ? text : message
}

/** The parameters that are no tags, by their compared names. */
const ID_PARAMS: ReadonlyMap<string, 'traceId' | 'spanId'> = new Map([
  ['traceid', 'traceId'],
  ['spanid', 'spanId'],
])

function addParams(params: string, draft: Draft, found: Map<string, string[]>): void {
  const param = / ([^\s="\]]{1,64})="((?:[^"\\\]]|\\.){0,4096})"/g
  let left = MAX_PARAMS
  for (const [, name = '', value = ''] of params.matchAll(param)) {
    const text = value.replace(/\\(["\\\]])/g, '$1')
    const field = ID_PARAMS.get(comparedName(name))
    if (field !== undefined && draft[field] === '' && text.length <= MAX_CHARS.trace_id)
      draft[field] = text
    else if (text !== '') found.set(name, [...(found.get(name) ?? []), text])
    left -= 1
    if (left === 0) return
  }
}
