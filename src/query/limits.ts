/*
 * The limits of a well-formed query, which keep it from slowing down everybody else's. Clauses are
 * named as they are in the tree, so that `parseQuery` can mark them.
 */

import { isBuiltin, type BuiltinField, type Field, type Query, type ValueTest } from './ast.js'

/** A clause that exceeds a limit, and which limit. */
export interface Excess {
  readonly clause: Query
  readonly message: string
}

/** Each further term is one more comparison for every row. */
const MAX_TERMS = 16
/** A prefix is a pattern that no index serves. */
const MAX_PREFIXES_ALONE = 2
/** Each attribute is read from the JSON of every row. */
const MAX_ATTRIBUTES = 32
/** Each of these reads another table. */
const MAX_STATEMENTS = 4

/** The first clause beyond a limit; null when the query is within all of them. */
export function findExcess(query: Query): Excess | null {
  const clauses = [...clausesIn(query)]
  const attributes = clauses.filter(({ field }) => field.kind === 'attribute')
  const statements = clauses.filter(({ field }) =>
    STATEMENTS.some((name) => isBuiltin(field, name)),
  )
  const searched = [...searchedIn(query, false)]
  const alone = searched.filter(({ kind, isNarrowed }) => kind === 'prefix' && !isNarrowed)
  const checks: readonly (readonly [Query | undefined, string])[] = [
    [attributes[MAX_ATTRIBUTES], `at most ${MAX_ATTRIBUTES} clauses ask for attributes`],
    [statements[MAX_STATEMENTS], `at most ${MAX_STATEMENTS} clauses use count or new`],
    [searched[MAX_TERMS]?.clause, `at most ${MAX_TERMS} texts are searched for`],
    [
      alone[MAX_PREFIXES_ALONE]?.clause,
      `at most ${MAX_PREFIXES_ALONE} prefixes stand without a word, a phrase, or the value of a source, an application, a ` +
        'host, a template, a trace or an attribute beside them',
    ],
  ]
  for (const [clause, message] of checks) if (clause !== undefined) return { clause, message }
  return null
}

const STATEMENTS = ['count', 'new'] as const

type FieldNode = Extract<Query, { readonly field: Field }>

function* clausesIn(query: Query): Generator<FieldNode> {
  if ('nodes' in query) for (const node of query.nodes) yield* clausesIn(node)
  else if ('node' in query) yield* clausesIn(query.node)
  else if ('field' in query) yield query
}

interface Searched {
  readonly clause: Query
  readonly kind: ValueTest['kind']
  /** Whether another clause leaves few rows. */
  readonly isNarrowed: boolean
}

/** The tests of texts in a query. */
function* searchedIn(query: Query, isNarrowed: boolean): Generator<Searched> {
  if (query.kind === 'text') yield { clause: query, kind: query.test.kind, isNarrowed }
  if (query.kind === 'not') yield* searchedIn(query.node, isNarrowed)
  if (query.kind === 'field' && isBuiltin(query.field, 'message'))
    for (const { kind } of query.tests) yield { clause: query, kind, isNarrowed }
  if (query.kind !== 'and' && query.kind !== 'or') return
  const isNarrow = isNarrowed || (query.kind === 'and' && query.nodes.some(narrows))
  for (const node of query.nodes) yield* searchedIn(node, isNarrow)
}

const NARROW_FIELDS: readonly BuiltinField[] = [
  'source',
  'application',
  'template',
  'trace',
  'id',
  'host',
]

/** Whether an index or a rollup leaves few rows. */
function narrows(query: Query): boolean {
  switch (query.kind) {
    case 'and':
      return query.nodes.some(narrows)
    case 'or':
      return query.nodes.every(narrows)
    case 'text':
      return query.test.kind === 'word' || query.test.kind === 'phrase'
    case 'field':
      return (
        (query.field.kind === 'attribute' ||
          NARROW_FIELDS.some((name) => isBuiltin(query.field, name))) &&
        query.tests.every(({ kind }) => kind === 'equal')
      )
    case 'not':
    case 'compare':
    case 'has':
      return false
  }
}

/** A regular expression without another clause beside it, which reads every message of its time range; null when there is none. */
export function findLoneRegex(query: Query): Excess | null {
  const [clause] = loneRegexes(query, false)
  const message =
    'a regular expression needs another clause beside it, or a time range of at most an hour'
  return clause === undefined ? null : { clause, message }
}

function* loneRegexes(query: Query, hasOther: boolean): Generator<Query> {
  if (query.kind === 'not') yield* loneRegexes(query.node, hasOther)
  if ('nodes' in query)
    for (const node of query.nodes) {
      const isBeside = (other: Query): boolean => other !== node && isOther(other)
      yield* loneRegexes(node, hasOther || (query.kind === 'and' && query.nodes.some(isBeside)))
    }
  if ((query.kind === 'text' || query.kind === 'field') && !hasOther && !isOther(query)) yield query
}

/** Whether a clause, which may be an exclusion, permits a regular expression beside it. */
function isOther(query: Query): boolean {
  switch (query.kind) {
    case 'and':
      return query.nodes.some(isOther)
    case 'or':
      return query.nodes.every(isOther)
    case 'not':
      return isOther(query.node)
    case 'text':
      return query.test.kind !== 'regex'
    case 'field':
      return query.tests.every(({ kind }) => kind !== 'regex')
    case 'compare':
    case 'has':
      return true
  }
}
