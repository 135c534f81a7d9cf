import {
  EVERYTHING,
  allOf,
  anyOf,
  isBuiltin,
  type BuiltinField,
  type Field,
  type Query,
  type TextTest,
  type ValueTest,
} from '../query/ast.js'

/**
 * Parses the parameter `search`: words, prefixes and quoted phrases, all of which must occur, but for those behind a minus beside
 * others, which must not. Unlike a query it has no other operators and no faults; what has neither letters nor digits is ignored
 * beside other terms, and alone matches nothing.
 */
export function searchQuery(text: string): Query {
  if (text.trim() === '') return EVERYTHING
  const [wanted, unwanted]: [Query[], Query[]] = [[], []]
  for (const [, minus, phrase, bare = ''] of text.matchAll(TERM)) {
    const test = phrase === undefined ? toWord(bare) : toPhrase(phrase)
    if (test !== null) (minus === undefined ? wanted : unwanted).push({ kind: 'text', test })
  }
  // What begins with a minus, such as an option of a program, can be searched alone.
  if (wanted.length === 0) return unwanted.length === 0 ? anyOf([]) : allOf(unwanted)
  return allOf([...wanted, ...unwanted.map((node): Query => ({ kind: 'not', node }))])
}

const TERM = /((?<![^\s,;])-(?=["\p{L}\p{N}]))?(?:"([^"]*)"|([^\s",;]+))/gu

const toPhrase = (text: string): TextTest | null => (text === '' ? null : { kind: 'phrase', text })

function toWord(bare: string): TextTest | null {
  if (!/[\p{L}\p{N}]/u.test(bare)) return null
  const text = bare.replace(/(?<!\*)\*+$/, '')
  return { kind: text === bare ? 'word' : 'prefix', text }
}

/** Each further term is one more comparison for every row. */
const MAX_TERMS = 16
/** A prefix is a pattern that no index serves. */
const MAX_PREFIXES_ALONE = 2

/** Each attribute is read from the JSON of every row. */
const MAX_ATTRIBUTES = 32
/** Each of these reads another table. */
const MAX_STATEMENTS = 4

/** @returns what is wrong with a query whose searches would take too much of everybody's time; null when nothing is */
export function searchFault(query: Query): string | null {
  if (clausesIn(query, ({ kind }) => kind === 'attribute') > MAX_ATTRIBUTES)
    return `must have at most ${MAX_ATTRIBUTES} clauses on attributes`
  const hasStatement = (field: Field): boolean =>
    isBuiltin(field, 'count') || isBuiltin(field, 'new')
  if (clausesIn(query, hasStatement) > MAX_STATEMENTS)
    return `must have at most ${MAX_STATEMENTS} clauses with count or new`
  const searched = [...searchedIn(query, false)]
  if (searched.length > MAX_TERMS) return `must have at most ${MAX_TERMS} terms`
  const alone = searched.filter(({ kind, isNarrowed }) => kind === 'prefix' && !isNarrowed)
  if (alone.length <= MAX_PREFIXES_ALONE) return null
  return `must have at most ${MAX_PREFIXES_ALONE} prefixes, or a word, a phrase, a source or a template beside them`
}

function clausesIn(query: Query, isOf: (field: Field) => boolean): number {
  if ('nodes' in query) return query.nodes.reduce((sum, node) => sum + clausesIn(node, isOf), 0)
  if ('node' in query) return clausesIn(query.node, isOf)
  return 'field' in query && isOf(query.field) ? 1 : 0
}

interface Searched {
  readonly kind: ValueTest['kind']
  /** Something beside it leaves few rows. */
  readonly isNarrowed: boolean
}

/** The tests of texts in a query. */
function* searchedIn(query: Query, isNarrowed: boolean): Generator<Searched> {
  if (query.kind === 'text') yield { kind: query.test.kind, isNarrowed }
  if (query.kind === 'not') yield* searchedIn(query.node, isNarrowed)
  if (query.kind === 'field' && isBuiltin(query.field, 'message'))
    for (const { kind } of query.tests) yield { kind, isNarrowed }
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
        NARROW_FIELDS.some((name) => isBuiltin(query.field, name)) &&
        query.tests.every(({ kind }) => kind === 'equal')
      )
    case 'not':
    case 'compare':
    case 'has':
      return false
  }
}
