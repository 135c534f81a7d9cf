import type { Priority, Severity } from '../model/event.js'
import type { Store } from '../clickhouse/client.js'
import { toBucket, type Bucket, type BucketRow, type CounterRow } from './series.js'
import { statement } from '../clickhouse/statement.js'
import type { DescribedTemplate, TemplateDirectory } from '../templates/directory.js'

export interface TemplateView {
  readonly id: string
  readonly source: string
  readonly text: string
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly occurrences: number
  readonly severity: Severity
  readonly priority: Priority
  /** Between 0 and 1. */
  readonly confidence: number
  readonly modelVersion: string
}

interface TemplateQuery {
  readonly limit: number
  /** An empty list matches any. A merged template stands for its target. */
  readonly ids?: readonly string[]
  /** An empty list matches any. */
  readonly sources?: readonly string[]
  /** Default: by occurrences. Both orders are descending. */
  readonly order?: 'occurrences' | 'first_seen'
  readonly firstSeenFromMs?: number
  /** Exclusive. */
  readonly firstSeenUntilMs?: number
}

export type TemplateStats = ReturnType<typeof createTemplateStats>

interface TotalsRow extends CounterRow {
  readonly template: string
  readonly source: string
  readonly events: number
  readonly confidence_sum: number
  readonly model_version: string
  readonly first_ms: number
  readonly last_ms: number
}

const topSql = statement<
  {
    readonly merged: readonly bigint[]
    readonly into: readonly bigint[]
    readonly ids: readonly bigint[]
    readonly sources: readonly string[]
    readonly by_first_seen: 0 | 1
    readonly from_ms: number
    readonly until_ms: number
    readonly limit: number
  },
  TotalsRow
>('template_top')
const hoursSql = statement<{ readonly ids: readonly bigint[]; readonly limit: number }, BucketRow>(
  'template_hours',
)

/** From the worst on: of two equally frequent severities the template has the worse one. */
const SEVERITY_COLUMNS = [
  ['CRITICAL', 'critical'],
  ['ERROR', 'error'],
  ['WARNING', 'warning'],
  ['INFO', 'info'],
  ['DEBUG', 'debug'],
] as const
const knownSql = statement<Record<string, never>, { readonly template: string }>('template_known')
const PRIORITY_COLUMNS = [
  ['P1', 'p1'],
  ['P2', 'p2'],
  ['P3', 'p3'],
  ['P4', 'p4'],
] as const

export function createTemplateStats(store: Pick<Store, 'query'>, directory: TemplateDirectory) {
  const options = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })
  /** The first templates in an order. A merged template counts for its target. */
  const top = async (
    {
      limit,
      ids = [],
      sources = [],
      order = 'occurrences',
      firstSeenFromMs = 0,
      firstSeenUntilMs,
    }: TemplateQuery,
    signal?: AbortSignal,
  ): Promise<readonly TemplateView[]> => {
    const params = {
      ...mergedIds(directory),
      ids: ids.flatMap((id) => aliases(directory.describe(id)?.id ?? id, directory)),
      sources,
      by_first_seen: order === 'first_seen' ? (1 as const) : (0 as const),
      from_ms: firstSeenFromMs,
      until_ms: firstSeenUntilMs ?? Number.MAX_SAFE_INTEGER,
      limit,
    }
    const rows = await store.query(topSql, params, options(signal))
    return rows
      .map((row) => toView(row, directory.describe(row.template)))
      .filter((view) => view !== null)
  }
  return {
    /** The number of templates with occurrences; merged ones count as one. */
    known: async (signal?: AbortSignal): Promise<number> => {
      const rows = await store.query(knownSql, {}, options(signal))
      return new Set(rows.map(({ template }) => directory.describe(template)?.id ?? template)).size
    },
    top,
    /** @returns null for a template that is unknown or has no stored occurrences */
    one: async (id: string, signal?: AbortSignal): Promise<TemplateView | null> =>
      (await top({ limit: 1, ids: [id] }, signal))[0] ?? null,
    /** The newest hours with occurrences, ascending. */
    hours: async (id: string, limit: number, signal?: AbortSignal): Promise<readonly Bucket[]> => {
      const ids = aliases(directory.describe(id)?.id ?? id, directory)
      const rows = await store.query(hoursSql, { ids, limit }, options(signal))
      return rows.map(toBucket).toReversed()
    },
  }
}

/** Merged ids and their targets as two lists for SQL's `transform`. */
export function mergedIds(directory: Pick<TemplateDirectory, 'redirects'>): {
  readonly merged: readonly bigint[]
  readonly into: readonly bigint[]
} {
  const redirects = directory.redirects()
  return {
    merged: redirects.map(({ from }) => toNumber(from)),
    into: redirects.map(({ into }) => toNumber(into)),
  }
}

const aliases = (id: string, directory: TemplateDirectory): readonly bigint[] => [
  toNumber(id),
  ...directory
    .redirects()
    .filter(({ into }) => into === id)
    .map(({ from }) => toNumber(from)),
]

/** The id as a number, because a text in an array of parameters would be quoted. */
const toNumber = (hex: string): bigint => BigInt(`0x${hex}`)

function toView(row: TotalsRow, template: DescribedTemplate | null): TemplateView | null {
  if (template === null) return null
  const { id, text, override } = template
  return {
    id,
    source: row.source,
    text,
    firstSeenMs: row.first_ms,
    lastSeenMs: row.last_ms,
    occurrences: row.p1 + row.p2 + row.p3 + row.p4,
    severity: mostFrequent(SEVERITY_COLUMNS, row),
    priority: override ?? mostFrequent(PRIORITY_COLUMNS, row),
    confidence: override === null ? meanConfidence(row) : 1,
    modelVersion: override === null ? row.model_version : 'manual',
  }
}

function mostFrequent<Name extends string>(
  columns: readonly (readonly [Name, keyof CounterRow])[],
  row: CounterRow,
): Name {
  const [name] = columns.reduce((best, column) => (row[column[1]] > row[best[1]] ? column : best))
  return name
}

/** The mean confidence in 0..1, rounded to four decimals because the sum is of floats. */
const meanConfidence = ({ confidence_sum: sum, events }: TotalsRow): number =>
  events <= 0 ? 0 : Math.min(1, Math.max(0, Math.round((sum / events) * 10_000) / 10_000))
