/*
 * The lines of an exported file, as SQL: ClickHouse writes them, and the service passes them on. They say what the list of events
 * says.
 */

import { toField, nameOf } from '../query/fields.js'
import { attributeText } from './attribute-condition.js'
import { bound, type Bind, type Condition } from './bind.js'
import type { Redirects } from './filter.js'
import { mapped } from './row-condition.js'

export const EXPORT_FORMATS = ['ndjson', 'csv', 'txt'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** The fields of an event in a list. */
export const EVENT_FIELDS = [
  'id',
  'timestamp',
  'source',
  'type',
  'severity',
  'priority',
  'message',
  'template_id',
  'host',
  'tags',
  'occurrence_count',
  'trace_id',
  'environment',
  'last_seen',
] as const
type EventField = (typeof EVENT_FIELDS)[number]

/** What a line of text shows when nothing else is asked for. */
const TEXT_FIELDS = ['timestamp', 'severity', 'source', 'host', 'message'] as const

/** How a value is written. */
type Kind =
  | 'number'
  /** A text that needs no escape. */
  | 'word'
  | 'text'
  /** A text, or NULL. */
  | 'attribute'
  | 'json'

interface Column {
  readonly name: string
  readonly kind: Kind
  readonly sql: string
}

interface LineContext {
  readonly bind: Bind
  readonly redirects: Redirects
}

const time = (column: string): string => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`

const FIELDS: Readonly<Record<EventField, readonly [Kind, (context: LineContext) => string]>> = {
  id: ['number', () => 'page.id'],
  timestamp: ['word', () => time('page.ts')],
  source: ['text', () => 'source'],
  type: ['word', () => 'toString(type)'],
  severity: ['word', () => 'toString(severity)'],
  priority: ['word', () => 'toString(priority)'],
  message: ['text', () => 'message'],
  template_id: [
    'word',
    ({ redirects, bind }) =>
      `leftPad(lower(hex(${mapped('template_id', redirects, bind)})), 16, '0')`,
  ],
  host: ['text', () => 'host'],
  tags: ['json', () => TAGS],
  // An event that began before the time range is counted from there on (`event.ts`).
  occurrence_count: [
    'number',
    () =>
      '(repeated.repeats + if(page.ts >= fromUnixTimestamp64Milli({range_from_ms:Int64}), n + repeated.repeats_cut, 0))',
  ],
  trace_id: ['text', () => 'trace_id'],
  environment: ['text', () => 'environment'],
  last_seen: ['word', () => time('greatest(page.ts, repeated.last_ts)')],
}

/** The reason of a correction is one of the tags; it replaces one that was sent. */
const TAGS =
  `multiIf(empty(correction_reason), if(empty(tags), '{}', tags), tags IN ('', '{}'), ` +
  `concat('{"correction_reason":', toJSONString(correction_reason), '}'), ` +
  `concat(substring(tags, 1, length(tags) - 1), ',"correction_reason":', toJSONString(correction_reason), '}'))`

const isEventField = (name: string): name is EventField =>
  EVENT_FIELDS.some((field) => field === name)

/** Whether the repeats of events are read for these fields. */
const needsRepeats = (names: readonly string[]): boolean =>
  names.includes('occurrence_count') || names.includes('last_seen')

export interface ExportLines {
  /** SQL of the line of an event, line end included. */
  readonly line: Condition
  /** The line before the first event; '' for none. */
  readonly head: string
  readonly needsRepeats: boolean
}

/** @param names fields of an event and attributes; null for those that the format shows by default */
export function toExportLines(
  format: ExportFormat,
  names: readonly string[] | null,
  redirects: Redirects,
): ExportLines {
  const shown = names ?? (format === 'txt' ? TEXT_FIELDS : EVENT_FIELDS)
  const line = bound('line', (bind) => {
    const columns = shown.map((name) => toColumn(name, { bind, redirects }))
    return WRITERS[format](columns, bind)
  })
  const head = format === 'csv' ? `${shown.map(csvName).join(',')}\r\n` : ''
  return { line, head, needsRepeats: needsRepeats(shown) }
}

function toColumn(name: string, context: LineContext): Column {
  if (isEventField(name)) {
    const [kind, sql] = FIELDS[name]
    return { name, kind, sql: sql(context) }
  }
  const field = toField(name)
  return { name: nameOf(field), kind: 'attribute', sql: attributeText(field.name, context.bind) }
}

const WRITERS: Readonly<Record<ExportFormat, (columns: readonly Column[], bind: Bind) => string>> =
  {
    ndjson: (columns, bind) =>
      joined(
        columns.map(({ name, kind, sql }, i) => {
          const key = bind('String', `${i === 0 ? '{' : ','}${JSON.stringify(name)}:`)
          return `${key}, ${toJson(kind, sql)}`
        }),
        '}\\n',
      ),
    csv: (columns) => joined(between(columns.map(toCell), ','), '\\r\\n'),
    txt: (columns) => joined(between(columns.map(toPlain), ' '), '\\n'),
  }

/** @param end SQL escapes are those of ClickHouse */
const joined = (parts: readonly string[], end: string): string =>
  `concat(${[...parts, `'${end}'`].join(', ')})`

const between = (parts: readonly string[], separator: string): readonly string[] =>
  parts.flatMap((part, i) => (i === 0 ? [part] : [`'${separator}'`, part]))

function toJson(kind: Kind, sql: string): string {
  switch (kind) {
    case 'number':
      return `toString(${sql})`
    case 'word':
      return `'"', ${sql}, '"'`
    case 'text':
      return `toJSONString(${sql})`
    case 'attribute':
      return `ifNull(toJSONString(${sql}), 'null')`
    case 'json':
      return sql
  }
}

/** Programs for tables take cells that begin so for formulas, and run them. A quote before it makes a text of the cell. */
const FORMULA = String.raw`'^[\\s]*[=+\\-@\\x{FF1D}\\x{FF0B}\\x{FF0D}\\x{FF20}]|^[\\t\\r\\n]'`
const PLAIN_NUMBER = String.raw`'^[+\\-]?[0-9]+(\\.[0-9]+)?$'`

function toCell({ kind, sql }: Column): string {
  if (kind === 'number') return `toString(${sql})`
  if (kind === 'word') return sql
  const text = kind === 'attribute' ? `ifNull(${sql}, '')` : sql
  const isFormula = `match(${text}, ${FORMULA}) AND NOT match(${text}, ${PLAIN_NUMBER})`
  return `'"', replaceAll(if(${isFormula}, concat('\\'', ${text}), ${text}), '"', '""'), '"'`
}

/** A line is an event: line ends within a value are written as escapes, and other control characters as blanks. */
function toPlain({ kind, sql }: Column): string {
  if (kind === 'number') return `toString(${sql})`
  if (kind === 'word') return sql
  const text = kind === 'attribute' ? `ifNull(${sql}, '')` : sql
  const escaped = `replaceAll(replaceAll(${text}, '\\n', '\\\\n'), '\\r', '\\\\r')`
  const clean = `if(match(${text}, '[[:cntrl:]]'), replaceRegexpAll(${escaped}, '[[:cntrl:]]', ' '), ${text})`
  return `if(empty(${text}), '-', ${clean})`
}

/** A name that a query gives may be an attribute that a program for tables takes for a formula. */
const csvName = (name: string): string => {
  const text = /^[\s=+\-@]/.test(name) ? `'${name}` : name
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
