import type { NativeColumn, NativeRows, Numbers } from '../clickhouse/native-reader.js'

/** What a series counted in some hours: items `begin` up to `end` of two lists. */
export interface HourRow {
  readonly key: string
  /** hours since 1970 that `at` counts from; one that comes several times adds up */
  readonly from: number
  readonly at: Numbers
  readonly n: Numbers
  readonly begin: number
  readonly end: number
}

/** What the priorities of a template say in a span. */
export interface TemplateDay {
  /** occurrences below P1 */
  readonly routine: number
  /** events below P1, and those with a confidence under a half */
  readonly routineEvents: number
  readonly unsureEvents: number
}

const SEVERITY_COLUMNS = ['debug', 'info', 'warning', 'error', 'critical'] as const

/** Names the counts of a source of one severity, an index of SEVERITIES. */
export const sourceKey = (source: string, severity: number): string => `${severity} ${source}`

export function* sourceRows(blocks: readonly NativeRows[], from: number): Iterable<HourRow> {
  for (const { columns } of blocks) {
    const names = texts(columns, 'source')
    const { items: at, ends } = lists(columns, 'at')
    for (const [severity, name] of SEVERITY_COLUMNS.entries()) {
      const keys = names.map((source) => sourceKey(source, severity))
      yield* listed(keys, ends, { from, at, n: lists(columns, name).items })
    }
  }
}

export function* templateRows(blocks: readonly NativeRows[], from: number): Iterable<HourRow> {
  for (const { columns } of blocks) {
    const { items: at, ends } = lists(columns, 'at')
    yield* listed(hexIds(columns), ends, { from, at, n: lists(columns, 'n').items })
  }
}

function* listed(
  keys: readonly string[],
  ends: Float64Array,
  counts: Pick<HourRow, 'from' | 'at' | 'n'>,
): Iterable<HourRow> {
  let begin = 0
  for (const [row, key] of keys.entries()) {
    const end = ends[row] ?? 0
    if (counts.n.subarray(begin, end).some(isCount)) yield { key, ...counts, begin, end }
    begin = end
  }
}

const isCount = (n: number): boolean => n !== 0

export function templateDays(blocks: readonly NativeRows[]): ReadonlyMap<string, TemplateDay> {
  const days = new Map<string, TemplateDay>()
  for (const { columns } of blocks) {
    const [routine, routineEvents, unsureEvents] = [
      numbers(columns, 'routine'),
      numbers(columns, 'routine_events'),
      numbers(columns, 'unsure_events'),
    ]
    for (const [row, id] of hexIds(columns).entries())
      days.set(id, {
        routine: routine[row] ?? 0,
        routineEvents: routineEvents[row] ?? 0,
        unsureEvents: unsureEvents[row] ?? 0,
      })
  }
  return days
}

type Columns = NativeRows['columns']

function column<K extends NativeColumn['kind']>(
  columns: Columns,
  name: string,
  kind: K,
): Extract<NativeColumn, { kind: K }> {
  const found = columns.get(name)
  if (found === undefined || !isOfKind(found, kind))
    throw new TypeError(`bug: an answer without the column ${name} of ${kind}`)
  return found
}

const isOfKind = <K extends NativeColumn['kind']>(
  found: NativeColumn,
  kind: K,
): found is Extract<NativeColumn, { kind: K }> => found.kind === kind

const texts = (columns: Columns, name: string) => column(columns, name, 'text').values
const numbers = (columns: Columns, name: string) => column(columns, name, 'numbers').values
const lists = (columns: Columns, name: string) => column(columns, name, 'lists')
const hexIds = (columns: Columns): readonly string[] =>
  Array.from(column(columns, 'template', 'ids').values, (id) => id.toString(16).padStart(16, '0'))
