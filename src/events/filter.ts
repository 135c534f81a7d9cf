/*
 * A query prepared for reading events. Conditions that every match must meet are extracted from it:
 * sources, severities and priorities, by which the rollups count; templates; and searched texts,
 * which have indexes. The other clauses are compared row by row.
 */

import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../model/event.js'
import { isBuiltin, type BuiltinField, type Query } from '../query/ast.js'
import { isListedAttribute } from './attribute-condition.js'
import { toTerm, wordsWithin, type Term } from './terms.js'

/** Every match meets all of these conditions. */
export interface EventFilter {
  /** null is any source; an empty list matches nothing. */
  readonly sources: readonly string[] | null
  readonly severities: readonly Severity[] | null
  readonly priorities: readonly Priority[] | null
  /** 16 hex digits each. */
  readonly templateIds: readonly string[] | null
  /** The searched texts: first the words of each that indexes can find, then the whole text. */
  readonly terms: readonly Term[]
  /** The other clauses. */
  readonly clauses: readonly Query[]
  readonly redirects: Redirects
}

/** The merged templates with their targets. */
export type Redirects = readonly { readonly from: string; readonly into: string }[]

type Facts = { -readonly [Name in keyof Omit<EventFilter, 'redirects'>]: EventFilter[Name] }

/** @param redirects are needed for a query with `new` */
export function toFilter(query: Query, redirects: Redirects = []): EventFilter {
  const facts: Facts = {
    sources: null,
    severities: null,
    priorities: null,
    templateIds: null,
    terms: [],
    clauses: [],
  }
  for (const clause of query.kind === 'and' ? query.nodes : [query]) note(clause, facts)
  return { ...facts, redirects }
}

function note(clause: Query, facts: Facts): void {
  const severities = namesWithin(clause, 'severity', SEVERITIES)
  const priorities = namesWithin(clause, 'priority', PRIORITIES)
  const sources = textsOf(clause, 'source')
  const templateIds = textsOf(clause, 'template')
  if (severities !== null) facts.severities = both(facts.severities, severities)
  else if (priorities !== null) facts.priorities = both(facts.priorities, priorities)
  else if (sources !== null) facts.sources = both(facts.sources, sources)
  else if (templateIds !== null) facts.templateIds = both(facts.templateIds, templateIds)
  else if (clause.kind === 'text') facts.terms = [...facts.terms, ...termsOf(clause)]
  else {
    facts.terms = [...facts.terms, ...wordsOfMessage(clause)]
    facts.clauses = [...facts.clauses, clause]
  }
}

const both = <Name>(known: readonly Name[] | null, names: readonly Name[]): readonly Name[] =>
  known === null ? names : known.filter((name) => names.includes(name))

const toWord = (text: string): Term => ({ kind: 'word', text })

function termsOf({ test }: Extract<Query, { kind: 'text' }>): readonly Term[] {
  const term = toTerm(test)
  return term.kind === 'word' ? [term] : [...wordsWithin(term).map(toWord), term]
}

/** Words that the message of every match contains. */
function wordsOfMessage(clause: Query): readonly Term[] {
  if (clause.kind !== 'field' || !isBuiltin(clause.field, 'message')) return []
  const [test] = clause.tests
  if (clause.tests.length !== 1 || test === undefined) return []
  if (test.kind === 'equal' || test.kind === 'range') return []
  return wordsWithin(toTerm(test)).map(toWord)
}

/**
 * The texts of a field if the clause says that it equals one of them.
 *
 * @returns null for other clauses
 */
export function textsOf(clause: Query, name: BuiltinField): readonly string[] | null {
  if (clause.kind !== 'field' || !isBuiltin(clause.field, name)) return null
  const texts = clause.tests.map((test) => (test.kind === 'equal' ? test.text : null))
  return texts.every((text) => text !== null) ? texts : null
}

/**
 * The names of a field with few names that pass a clause.
 *
 * @param names all names, in order
 * @returns null when the clause is also about other fields
 */
function namesWithin<Name extends string>(
  clause: Query,
  field: BuiltinField,
  names: readonly Name[],
): readonly Name[] | null {
  switch (clause.kind) {
    case 'not': {
      const others = namesWithin(clause.node, field, names)
      return others === null ? null : names.filter((name) => !others.includes(name))
    }
    case 'field':
    case 'compare':
      return isBuiltin(clause.field, field) ? names.filter(passing(clause, names)) : null
    case 'and':
    case 'or':
    case 'text':
    case 'has':
      return null
  }
}

type FieldClause = Extract<Query, { kind: 'field' | 'compare' }>

/** The names that pass a clause about their field; ranges and comparisons use their order. */
function passing(clause: FieldClause, names: readonly string[]): (name: string) => boolean {
  const orderOf = (name: string): number => names.indexOf(name.toUpperCase())
  if (clause.kind === 'compare') {
    const bound = orderOf(clause.value)
    return (name) => isInOrder(orderOf(name), clause.operator, bound)
  }
  return (name) =>
    clause.tests.some((test) => {
      if (test.kind === 'equal') return orderOf(test.text) === orderOf(name)
      if (test.kind !== 'range') return false
      return orderOf(test.from) <= orderOf(name) && orderOf(name) <= orderOf(test.to)
    })
}

function isInOrder(a: number, operator: '>' | '>=' | '<' | '<=', b: number): boolean {
  if (operator === '>') return a > b
  if (operator === '>=') return a >= b
  return operator === '<' ? a < b : a <= b
}

/** The severities that pass a clause about them. */
export const severitiesOf = (clause: FieldClause): readonly Severity[] =>
  SEVERITIES.filter(passing(clause, SEVERITIES))

/** Whether nothing can match, whatever is stored. */
export const matchesNothing = ({
  sources,
  severities,
  priorities,
  templateIds,
  clauses,
}: EventFilter): boolean =>
  [sources, severities, priorities, templateIds].some((list) => list?.length === 0) ||
  clauses.some((clause) => clause.kind === 'or' && clause.nodes.length === 0)

/** Whether an index rules out granules. */
export const hasIndex = ({ templateIds, terms, clauses }: EventFilter): boolean =>
  templateIds !== null || hasWord({ terms }) || clauses.some(isKey)

export const hasWord = ({ terms }: Pick<EventFilter, 'terms'>): boolean =>
  terms.some(({ kind }) => kind === 'word')

/** The fields besides source and template whose values have an index. */
const KEYS = ['host', 'trace', 'id'] as const

const isKey = (clause: Query): boolean =>
  KEYS.some((name) => textsOf(clause, name) !== null) || isListedAttribute(clause)
