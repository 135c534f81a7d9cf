import { allOf, type Query } from '../../query/ast.js'
import { toField } from '../../query/fields.js'
import { parseQuery } from '../../query/parser.js'
import { printQuery } from '../../query/printer.js'

/** The clause that a field has a value, or, for an empty value, that it is missing. */
function clauseOf(name: string, value: string): Query {
  const field = toField(name)
  if (value === '') return { kind: 'not', node: { kind: 'has', field } }
  const printed = printQuery({ kind: 'field', field, tests: [{ kind: 'equal', text: value }] })
  const parsed = parseQuery(printed)
  return parsed.fault === null
    ? parsed.query
    : { kind: 'field', field, tests: [{ kind: 'equal', text: value }] }
}

const opposite = (query: Query): Query =>
  query.kind === 'not' ? query.node : { kind: 'not', node: query }

const clausesOf = (query: Query): readonly Query[] => (query.kind === 'and' ? query.nodes : [query])

const isSame = (a: Query, b: Query): boolean => printQuery(a) === printQuery(b)

/** The clauses that must all hold, each as a line of its own; null for a faulty line. */
export function clauses(line: string): readonly string[] | null {
  const parsed = parseQuery(line)
  return parsed.fault === null ? clausesOf(parsed.query).map(printQuery) : null
}

/** Adds a clause to a query, or removes it where the query has it. */
export function toggled(line: string, clause: string): string {
  const asked = clauses(line) ?? []
  return joined(asked.includes(clause) ? asked.filter((one) => one !== clause) : [...asked, clause])
}

export const joined = (lines: readonly string[]): string => {
  const parsed = lines.map((line) => parseQuery(line))
  return printQuery(allOf(parsed.flatMap((one) => (one.fault === null ? [one.query] : []))))
}

/** Changes the clauses of a line. A clause is only appended to a faulty line. */
function change(
  line: string,
  clause: Query,
  edit: (nodes: readonly Query[]) => readonly Query[],
): string {
  const parsed = parseQuery(line)
  if (parsed.fault !== null) return `${line.trimEnd()} ${printQuery(clause)}`
  return printQuery(allOf(edit(clausesOf(parsed.query))))
}

/** Limits a query to one value of a field, in place of other values; a second call with the same value removes the limit. */
export function only(line: string, name: string, value: string): string {
  const clause = clauseOf(name, value)
  const { kind, name: fieldName } = toField(name)
  const isOfField = (node: Query): boolean =>
    (node.kind === 'field' && node.field.kind === kind && node.field.name === fieldName) ||
    isSame(node, opposite(clause))
  return change(line, clause, (nodes) => {
    const isSet = nodes.some((node) => isSame(node, clause))
    const rest = nodes.filter((node) => !isSame(node, clause) && !isOfField(node))
    return isSet ? rest : [...rest, clause]
  })
}

/** Excludes events with this value; a second call includes them again. */
export function without(line: string, name: string, value: string): string {
  const clause = clauseOf(name, value)
  const negated = opposite(clause)
  return change(line, negated, (nodes) => {
    const isSet = nodes.some((node) => isSame(node, negated))
    const rest = nodes.filter((node) => !isSame(node, clause) && !isSame(node, negated))
    return isSet ? rest : [...rest, negated]
  })
}

/** The state of a value in a line. */
export function stateOf(line: string, name: string, value: string): 'only' | 'not' | 'any' {
  const parsed = parseQuery(line)
  if (parsed.fault !== null) return 'any'
  const clause = clauseOf(name, value)
  const nodes = clausesOf(parsed.query)
  if (nodes.some((node) => isSame(node, clause))) return 'only'
  return nodes.some((node) => isSame(node, opposite(clause))) ? 'not' : 'any'
}

/** A query for the events that have a field. */
export const hasLine = (name: string): string => printQuery({ kind: 'has', field: toField(name) })

/** A query for one value of a field. */
export const clauseLine = (name: string, value: string): string => printQuery(clauseOf(name, value))
