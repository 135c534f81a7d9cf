/*
 * The columns that an export reads of an event, and the cells of its lines. Columns are read as
 * they are stored: ClickHouse takes several times as long to join messages and tags
 * (bench/NOTES.md), because here their constant parts are split once for all rows of a block. The
 * lines contain the same values as the list of events.
 */

import type { NativeBlock } from '../clickhouse/native-reader.js'
import { EVENT_TYPES, PRIORITIES, SEVERITIES } from '../model/event.js'
import { toField, nameOf } from '../query/fields.js'
import { bound, type Bind, type Condition } from './bind.js'
import {
  attributeCell,
  codedCell,
  hexCell,
  messageCell,
  namedCell,
  numberCell,
  tagsCell,
  textCell,
  timeCell,
} from './export-cells.js'
import {
  FORMATS,
  writeLines,
  type ExportFormat,
  type LinePart,
  type OpenCell,
} from './export-lines.js'
import type { Redirects } from './filter.js'
import { mapped } from './row-condition.js'

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

/** The fields of a text line by default. */
const TEXT_FIELDS = ['timestamp', 'severity', 'source', 'host', 'message'] as const

interface ColumnContext {
  readonly bind: Bind
  readonly redirects: Redirects
}

/** The SQL of the columns of a field, beside `ts_ms` and `event_id`, preceded by the function that writes its cells. */
type FieldColumns = readonly [OpenCell, ...((context: ColumnContext) => string)[]]

const stored = (name: string) => (): string => name

const FIELDS: Readonly<Record<EventField, FieldColumns>> = {
  id: [numberCell('event_id')],
  timestamp: [timeCell('ts_ms')],
  source: [namedCell('source'), stored('source')],
  type: [codedCell('type', EVENT_TYPES), stored('type')],
  severity: [codedCell('severity', SEVERITIES), stored('severity')],
  priority: [codedCell('priority', PRIORITIES), stored('priority')],
  message: [messageCell, stored('constant_text'), stored('variables')],
  template_id: [
    hexCell('template'),
    ({ redirects, bind }) => `${mapped('template_id', redirects, bind)} AS template`,
  ],
  host: [namedCell('host'), stored('host')],
  tags: [
    tagsCell,
    ...['attribute_names', 'attribute_values', 'tags_text', 'correction_reason'].map(stored),
  ],
  // An event that began before the time range is counted from the start of the range (`event.ts`).
  occurrence_count: [
    numberCell('occurrences'),
    () =>
      'toFloat64(repeated.repeats + if(page.ts >= fromUnixTimestamp64Milli({range_from_ms:Int64}), n + repeated.repeats_cut, 0)) AS occurrences',
  ],
  trace_id: [textCell('trace_id'), stored('trace_id')],
  environment: [namedCell('environment'), stored('environment')],
  last_seen: [
    timeCell('last_ms'),
    () => 'toFloat64(toUnixTimestamp64Milli(greatest(page.ts, repeated.last_ts))) AS last_ms',
  ],
}

const isEventField = (name: string): name is EventField =>
  EVENT_FIELDS.some((field) => field === name)

/** Whether these fields need the repeats of events. */
const needsRepeats = (names: readonly string[]): boolean =>
  names.includes('occurrence_count') || names.includes('last_seen')

export interface ExportLines {
  /** SQL of the columns of the lines, each preceded by a comma, without those that every export has. */
  readonly columns: Condition
  /** The line before the first event; '' for none. */
  readonly head: string
  readonly needsRepeats: boolean
  /** The lines of a block, in parts that are valid until the next one. */
  readonly write: (block: NativeBlock) => Generator<LinePart>
}

/** @param names fields of an event and attributes; null for the default fields of the format */
export function toExportLines(
  name: ExportFormat,
  names: readonly string[] | null,
  redirects: Redirects,
): ExportLines {
  const format = FORMATS[name]
  const shown = names ?? (name === 'txt' ? TEXT_FIELDS : EVENT_FIELDS)
  const sql = new Set<string>()
  const columns = bound('column', (bind) => {
    for (const one of shown)
      for (const column of columnsOf(one)) sql.add(column({ bind, redirects }))
    return Array.from(sql, (column) => `, ${column}`).join('')
  })
  const cells = shown.map((one) => cellOf(one))
  return {
    columns,
    head: format.head(shown),
    needsRepeats: needsRepeats(shown),
    write: (block) => writeLines(block, cells, format),
  }
}

function columnsOf(name: string): readonly ((context: ColumnContext) => string)[] {
  if (!isEventField(name))
    return ['attribute_names', 'attribute_values', 'correction_reason'].map(stored)
  const [, ...columns] = FIELDS[name]
  return columns
}

function cellOf(name: string): { readonly name: string; readonly open: OpenCell } {
  if (isEventField(name)) return { name, open: FIELDS[name][0] }
  const field = toField(name)
  return { name: nameOf(field), open: attributeCell(field.name) }
}
