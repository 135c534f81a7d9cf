/*
 * Queries of source, host, environment, severity, priority, type and template, evaluated on the values of these columns. They
 * mean what `events/row-condition.ts` says in SQL.
 */

import { severitiesOf } from '../events/filter.js'
import type { Query, ValueTest } from '../query/ast.js'

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
export type Row = Readonly<Record<Column, string>>

export interface Matcher {
  readonly columns: ReadonlySet<Column>
  readonly matches: (row: Row) => boolean
  /** The only sources that can match; null for all. */
  readonly sources: readonly string[] | null
}

type Matches = (row: Row) => boolean

const isColumn = (name: string): name is Column => COLUMNS.some((column) => column === name)

/** @returns null where the query asks for anything else */
export function matcherOf(query: Query): Matcher | null {
  const columns = new Set<Column>()
  const matches = compile(query, columns)
  return matches === null ? null : { columns, matches, sources: sourcesOf(query) }
}

function compile(query: Query, columns: Set<Column>): Matches | null {
  switch (query.kind) {
    case 'and':
    case 'or':
      return compileAll(query, columns)
    case 'not': {
      const holds = compile(query.node, columns)
      return holds === null ? null : (row) => !holds(row)
    }
    case 'field':
    case 'compare':
      return compileClause(query, columns)
    case 'text':
    case 'has':
      return null
  }
}

function compileAll(
  { kind, nodes }: Extract<Query, { kind: 'and' | 'or' }>,
  columns: Set<Column>,
): Matches | null {
  const all: Matches[] = []
  for (const node of nodes) {
    const holds = compile(node, columns)
    if (holds === null) return null
    all.push(holds)
  }
  return kind === 'and'
    ? (row) => all.every((holds) => holds(row))
    : (row) => all.some((holds) => holds(row))
}

function compileClause(
  clause: Extract<Query, { kind: 'field' | 'compare' }>,
  columns: Set<Column>,
): Matches | null {
  const { field } = clause
  if (field.kind !== 'builtin' || !isColumn(field.name)) return null
  const { name } = field
  columns.add(name)
  if (name === 'severity') {
    const severities: ReadonlySet<string> = new Set(severitiesOf(clause))
    return (row) => severities.has(row.severity)
  }
  if (clause.kind === 'compare') return null
  if (name === 'template') return compileTemplate(clause.tests)
  return compileTexts(name, clause.tests)
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
  return named.length === query.tests.length ? named : null
}
