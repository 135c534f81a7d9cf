import type { NativeBlock, Numbers } from '../clickhouse/native-reader.js'

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

export function* sourceRows(blocks: readonly NativeBlock[], from: number): Iterable<HourRow> {
  for (const block of blocks) {
    const names = block.texts('source')
    const { items: at, ends } = block.lists('at')
    for (const [severity, name] of SEVERITY_COLUMNS.entries()) {
      const keys = names.map((source) => sourceKey(source, severity))
      yield* listed(keys, ends, { from, at, n: block.lists(name).items })
    }
  }
}

export function* templateRows(blocks: readonly NativeBlock[], from: number): Iterable<HourRow> {
  for (const block of blocks) {
    const { items: at, ends } = block.lists('at')
    yield* listed(block.hexIds('template'), ends, { from, at, n: block.lists('n').items })
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

export function templateDays(blocks: readonly NativeBlock[]): ReadonlyMap<string, TemplateDay> {
  const days = new Map<string, TemplateDay>()
  for (const block of blocks) {
    const [routine, routineEvents, unsureEvents] = [
      block.numbers('routine'),
      block.numbers('routine_events'),
      block.numbers('unsure_events'),
    ]
    for (const [row, id] of block.hexIds('template').entries())
      days.set(id, {
        routine: routine[row] ?? 0,
        routineEvents: routineEvents[row] ?? 0,
        unsureEvents: unsureEvents[row] ?? 0,
      })
  }
  return days
}
