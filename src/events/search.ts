import { EVERYTHING, allOf, anyOf, type Query, type TextTest } from '../query/ast.js'

/**
 * Parses the parameter `search`: words, prefixes and quoted phrases, which must all occur. Terms
 * after a minus must not occur, if there are others. Unlike a query it has no other operators and
 * no syntax errors. A term without letters and digits is ignored beside other terms, and alone
 * matches nothing.
 */
export function searchQuery(text: string): Query {
  if (text.trim() === '') return EVERYTHING
  const [wanted, unwanted]: [Query[], Query[]] = [[], []]
  for (const [, minus, phrase, bare = ''] of text.matchAll(TERM)) {
    const test = phrase === undefined ? toWord(bare) : toPhrase(phrase)
    if (test !== null) (minus === undefined ? wanted : unwanted).push({ kind: 'text', test })
  }
  // If all terms begin with a minus, they are searched for, such as the option of a program.
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
