/*
 * Evaluates queries in JavaScript on grouped rows: on their columns (source, host, environment,
 * severity, priority, type, template) and on the texts and attributes that ClickHouse found in
 * them. Matches are those of the SQL of `events/row-condition.ts`.
 */

import { severitiesOf } from '../events/filter.js'
import { isBuiltin, type Query, type ValueTest } from '../query/ast.js'
import {
  compileAttribute,
  type AttributesAsked,
  type MatchesAttributes,
  type RowAttributes,
} from './attributes.js'
import { toText, type Text } from './texts.js'

export const COLUMNS = [
  'source',
  'host',
  'environment',
  'severity',
  'priority',
  'type',
  'template',
] as const
export type Column = (typeof COLUMNS)[number]
export interface Row extends Readonly<Record<Column, string>> {
  /** The keys of the texts that the row contains. */
  readonly texts: ReadonlySet<string>
  readonly attributes: RowAttributes
}

export interface QueryMatcher {
  readonly columns: ReadonlySet<Column>
  readonly texts: readonly Text[]
  readonly attributes: AttributesAsked
  readonly matches: (row: Row) => boolean
  /** The sources that can match, each once; null for all. */
  readonly sources: readonly string[] | null
}

type Matches = (row: Row) => boolean

const isColumn = (name: string): name is Column => COLUMNS.some((column) => column === name)

/** @returns null for a query with any other condition */
export function queryMatcherOf(query: Query): QueryMatcher | null {
  const asked: Asked = { columns: new Set(), texts: [], attributes: { equals: [], thresholds: [] } }
  const matches = compile(query, asked)
  return matches === null ? null : { ...asked, matches, sources: sourcesOf(query) }
}

export type QueryMatchers = (query: Query) => QueryMatcher | null

/** Caches compiled queries. A query is compiled again when a name in it, such as an application's, has another meaning. */
export function createQueryMatchers(resolve: (query: Query) => Query): QueryMatchers {
  const known = new WeakMap<Query, QueryMatcher | null>()
  return (query) => {
    const resolved = resolve(query)
    let matcher = known.get(resolved)
    if (matcher === undefined) known.set(resolved, (matcher = queryMatcherOf(resolved)))
    return matcher
  }
}

/** The texts and attributes that a query needs. */
interface Asked {
  readonly columns: Set<Column>
  readonly texts: Text[]
  readonly attributes: AttributesAsked
}

function compile(query: Query, asked: Asked): Matches | null {
  switch (query.kind) {
    case 'and':
    case 'or':
      return compileAll(query, asked)
    case 'not': {
      const holds = compile(query.node, asked)
      return holds === null ? null : (row) => !holds(row)
    }
    case 'field':
    case 'compare':
      return compileClause(query, asked)
    case 'text':
      return compileText(toText(query.test, false), asked)
    case 'has':
      return null
  }
}

function compileAll(
  { kind, nodes }: Extract<Query, { kind: 'and' | 'or' }>,
  asked: Asked,
): Matches | null {
  const all: Matches[] = []
  for (const node of nodes) {
    const holds = compile(node, asked)
    if (holds === null) return null
    all.push(holds)
  }
  return kind === 'and'
    ? (row) => all.every((holds) => holds(row))
    : (row) => all.some((holds) => holds(row))
}

function compileClause(
  clause: Extract<Query, { kind: 'field' | 'compare' }>,
  asked: Asked,
): Matches | null {
  const { field } = clause
  if (isBuiltin(field, 'message') && clause.kind === 'field')
    return compileMessage(clause.tests, asked)
  if (field.kind === 'attribute') return ofAttributes(compileAttribute(clause, asked.attributes))
  if (!isColumn(field.name)) return null
  const { name } = field
  asked.columns.add(name)
  if (name === 'severity') {
    const severities: ReadonlySet<string> = new Set(severitiesOf(clause))
    return (row) => severities.has(row.severity)
  }
  if (clause.kind === 'compare') return null
  if (name === 'template') return compileTemplate(clause.tests)
  return compileTexts(name, clause.tests)
}

const ofAttributes = (holds: MatchesAttributes | null): Matches | null =>
  holds === null ? null : (row) => holds(row.attributes)

function compileMessage(tests: readonly ValueTest[], asked: Asked): Matches | null {
  const all: Matches[] = []
  for (const test of tests) {
    const isText = test.kind !== 'equal' && test.kind !== 'range'
    const holds = isText ? compileText(toText(test, true), asked) : null
    if (holds === null) return null
    all.push(holds)
  }
  return (row) => all.some((holds) => holds(row))
}

function compileText(text: Text | null, { texts }: Asked): Matches | null {
  if (text === null) return null
  texts.push(text)
  return (row) => row.texts.has(text.key)
}

function compileTexts(name: Column, tests: readonly ValueTest[]): Matches | null {
  const equal = new Set<string>()
  const prefixes: string[] = []
  for (const test of tests) {
    if (test.kind === 'equal') equal.add(test.text)
    else if (test.kind === 'prefix') prefixes.push(test.text)
    else return null
  }
  return (row) => equal.has(row[name]) || prefixes.some((prefix) => row[name].startsWith(prefix))
}

function compileTemplate(tests: readonly ValueTest[]): Matches | null {
  const ids = new Set<string>()
  for (const test of tests) {
    if (test.kind !== 'equal') return null
    ids.add(test.text.toLowerCase().padStart(16, '0'))
  }
  return (row) => ids.has(row.template)
}

function sourcesOf(query: Query): readonly string[] | null {
  if (query.kind === 'and') {
    for (const node of query.nodes) {
      const found = sourcesOf(node)
      if (found !== null) return found
    }
    return null
  }
  if (query.kind !== 'field' || query.field.name !== 'source') return null
  if (query.field.kind !== 'builtin') return null
  const named = query.tests.flatMap((test) => (test.kind === 'equal' ? [test.text] : []))
  return named.length === query.tests.length ? [...new Set(named)] : null
}
