/*
 * Counts for many rules from one query, which groups the rows that arrived by second, by the
 * columns that the rules use, and by the texts and attributes found. Each group is then matched in
 * JavaScript, because ClickHouse would take longer to parse a thousand conditions than to evaluate
 * them.
 */

import type { Redirects } from '../events/filter.js'
import type { Count } from './count.js'
import { COLUMNS, type Column, type QueryMatcher, type Row } from './query-matcher.js'
import type { Counter } from './counter.js'
import type { Query } from '../query/ast.js'
import type { Condition } from '../events/bind.js'
import {
  attributesSql,
  isEmpty,
  listsOf,
  readAttributes,
  type AttributeLists,
} from './attributes.js'
import { textsSql, type Text } from './texts.js'

interface Request {
  readonly counter: Counter
  readonly groupBy: readonly string[]
  readonly everyMs: number
}

export interface SharedRequest extends Request {
  readonly index: number
  readonly matcher: QueryMatcher
}

/** The rows that arrived in one second with the same values. */
export interface SharedRow {
  readonly second: number
  readonly values: readonly string[]
  readonly occurrences: number
  readonly events: number
}

/** With more rows than this, the rules use queries of their own. */
export const MAX_SHARED_ROWS = 20_000

const GROUPS: ReadonlySet<string> = new Set([
  'source',
  'host',
  'environment',
  'severity',
  'template',
] satisfies Column[])

const NO_TEMPLATE = '0'.repeat(16)

/** @returns null for a request that the shared query cannot answer */
export function toShared(
  { counter, groupBy, everyMs }: Request,
  index: number,
  queryMatcherOf: (query: Query) => QueryMatcher | null,
): SharedRequest | null {
  if (counter.kind !== 'events' || counter.unseenMs !== undefined) return null
  if (!groupBy.every((name) => GROUPS.has(name))) return null
  const matcher = queryMatcherOf(counter.query)
  return matcher === null ? null : { counter, groupBy, everyMs, index, matcher }
}

export function columnsOf(requests: readonly SharedRequest[]): SharedColumns {
  const wanted = new Set<string>(['source'])
  const texts = new Map<string, Text>()
  for (const { matcher, groupBy } of requests) {
    for (const column of matcher.columns) wanted.add(column)
    for (const name of groupBy) wanted.add(name)
    for (const text of matcher.texts) texts.set(text.key, text)
  }
  const columns = COLUMNS.filter((column) => wanted.has(column))
  const attributes = listsOf(requests.map(({ matcher }) => matcher.attributes))
  return { columns, texts: [...texts.values()], attributes }
}

/** The columns, texts and attributes that rows are grouped by. */
export interface SharedColumns {
  readonly columns: readonly Column[]
  readonly texts: readonly Text[]
  readonly attributes: AttributeLists
}

const NOTHING: Condition = { sql: "''", params: {} }

/** SQL of the values of a row, followed by its texts and its attributes. */
export function valuesSql({ columns, texts, attributes }: SharedColumns): Condition {
  const values = columns.map((column) =>
    column === 'template'
      ? "leftPad(lower(hex(template_id)), 16, '0')"
      : `toString(events.${column})`,
  )
  const found = [
    texts.length === 0 ? NOTHING : textsSql(texts),
    isEmpty(attributes) ? NOTHING : attributesSql(attributes),
  ]
  return {
    sql: `[${[...values, ...found.map(({ sql }) => sql)].join(', ')}]`,
    params: Object.assign({}, ...found.map(({ params }) => params)),
  }
}

/** Matches the rows with each request and returns the counts. */
export function shareOut(
  requests: readonly SharedRequest[],
  columns: SharedColumns,
  { rows, redirects }: { readonly rows: readonly SharedRow[]; readonly redirects: Redirects },
): readonly (readonly [index: number, count: Count])[] {
  const roots = new Map(redirects.map(({ from, into }) => [from, into]))
  const read = rows.map((row) => ({ ...row, row: toRow(columns, row.values) }))
  const bySource = new Map<string, typeof read>()
  for (const one of read) {
    const same = bySource.get(one.row.source)
    if (same === undefined) bySource.set(one.row.source, [one])
    else same.push(one)
  }
  const found: (readonly [number, Count])[] = []
  const match = (request: SharedRequest, one: (typeof read)[number]): void => {
    const { counter, groupBy, everyMs, index, matcher } = request
    const isOfEvents = counter.kind === 'events' && counter.of === 'events'
    const count = isOfEvents ? one.events : one.occurrences
    if (count <= 0 || !matcher.matches(one.row)) return
    const group = groupBy.map((name) => groupValue(one.row, name, roots))
    found.push([index, { slot: Math.floor((one.second * 1_000) / everyMs), group, count }])
  }
  for (const request of requests)
    for (const source of request.matcher.sources ?? bySource.keys())
      for (const one of bySource.get(source) ?? []) match(request, one)
  return found
}

function groupValue(row: Row, name: string, roots: ReadonlyMap<string, string>): string {
  const column = COLUMNS.find((one) => one === name)
  const value = column === undefined ? '' : row[column]
  if (name !== 'template') return value
  return value === NO_TEMPLATE ? '' : (roots.get(value) ?? value)
}

function toRow({ columns, texts, attributes }: SharedColumns, values: readonly string[]): Row {
  const found = (values[columns.length] ?? '').split(',')
  const row = {
    source: '',
    host: '',
    environment: '',
    severity: '',
    priority: '',
    type: '',
    template: '',
    texts: new Set(found.flatMap((number) => texts[Number(number) - 1]?.key ?? [])),
    attributes: readAttributes(values[columns.length + 1] ?? '', attributes),
  }
  columns.forEach((column, i) => {
    row[column] = values[i] ?? ''
  })
  return row
}
