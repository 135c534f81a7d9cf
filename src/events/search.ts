import { EVERYTHING, allOf, anyOf, type Query, type TextTest } from '../query/ast.js'

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
