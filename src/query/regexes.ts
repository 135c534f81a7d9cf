import type { Query } from './ast.js'

/**
 * The clauses with a regular expression that have no other clause beside them. Such a query reads every message of its time
 * range.
 */
export function lonelyRegexes(query: Query, isNarrowed = false): readonly Query[] {
  switch (query.kind) {
    case 'and':
      return query.nodes.flatMap((node) => {
        const hasOther = query.nodes.some((other) => other !== node && narrows(other))
        return lonelyRegexes(node, isNarrowed || hasOther)
      })
    case 'or':
      return query.nodes.flatMap((node) => lonelyRegexes(node, isNarrowed))
    case 'not':
      return lonelyRegexes(query.node, isNarrowed)
    case 'text':
    case 'field':
      return isNarrowed || narrows(query) ? [] : [query]
    case 'compare':
    case 'has':
      return []
  }
}

function narrows(query: Query): boolean {
  switch (query.kind) {
    case 'and':
      return query.nodes.some(narrows)
    case 'or':
      return query.nodes.every(narrows)
    case 'not':
      return false
    case 'text':
      return query.test.kind !== 'regex'
    case 'field':
      return query.tests.every(({ kind }) => kind !== 'regex')
    case 'compare':
    case 'has':
      return true
  }
}
