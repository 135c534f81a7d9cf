/** What a list of events is narrowed by; empty = not narrowed. */
export interface EventFilter {
  readonly severities: readonly string[]
  readonly priorities: readonly string[]
  readonly types: readonly string[]
  /** null = any; an empty list matches nothing (an application without sources) */
  readonly sources: readonly string[] | null
  readonly environments: readonly string[]
  /** 16 hex digits each */
  readonly templateIds: readonly string[]
  readonly search: string
}

export interface Condition {
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

/** The text words are looked up in; must be the expression of the index `by_word`. */
const WORDS =
  "lower(concat(if(search_words = '', message, search_words), ' ', host, ' ', trace_id))"

type Term =
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'prefix'; readonly text: string }
  | { readonly kind: 'phrase'; readonly text: string }

/** Words, prefixes (`time*`) and quoted phrases of a search text. */
function parseSearch(text: string): readonly Term[] {
  const terms: Term[] = []
  for (const match of text.matchAll(/"([^"]*)"|([^\s"]+)/g)) {
    const [, phrase, bare] = match
    if (phrase !== undefined) {
      if (phrase !== '') terms.push({ kind: 'phrase', text: phrase })
      continue
    }
    const words = bare?.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
    const isPrefix = /[\p{L}\p{N}]\*$/u.test(bare ?? '')
    words.forEach((word, i) => {
      const kind = isPrefix && i === words.length - 1 ? 'prefix' : 'word'
      terms.push({ kind, text: word })
    })
  }
  return terms
}

const termCondition = (term: Term, name: string): Condition => {
  switch (term.kind) {
    case 'word':
      return { sql: `hasToken(${WORDS}, {${name}:String})`, params: { [name]: term.text } }
    case 'prefix':
      return {
        sql: `match(${WORDS}, {${name}:String})`,
        params: { [name]: `(^|[^\\pL\\pN])${term.text}` },
      }
    case 'phrase':
      return {
        sql:
          `(positionCaseInsensitiveUTF8(message, {${name}:String}) > 0` +
          ` OR positionCaseInsensitiveUTF8(host, {${name}:String}) > 0` +
          ` OR positionCaseInsensitiveUTF8(trace_id, {${name}:String}) > 0)`,
        params: { [name]: term.text },
      }
  }
}

/** A search of signs alone asks for words that no text has. */
const NOTHING: Condition = { sql: 'false', params: {} }

const SIMPLE = [
  ['severities', 'severity IN {severities:Array(String)}'],
  ['priorities', 'priority IN {priorities:Array(String)}'],
  ['types', 'type IN {types:Array(String)}'],
  ['environments', 'environment IN {environments:Array(String)}'],
] as const

/** The conditions of a filter, for WHERE, each with the values it binds. */
export function toConditions(filter: EventFilter): readonly Condition[] {
  const conditions: Condition[] = []
  for (const [name, sql] of SIMPLE)
    if (filter[name].length > 0) conditions.push({ sql, params: { [name]: filter[name] } })
  if (filter.sources !== null)
    conditions.push({
      sql: 'source IN {sources:Array(String)}',
      params: { sources: filter.sources },
    })
  if (filter.templateIds.length > 0)
    conditions.push({
      sql: 'template_id IN {template_ids:Array(UInt64)}',
      params: { template_ids: filter.templateIds.map((id) => BigInt(`0x${id}`)) },
    })
  if (filter.search.trim() === '') return conditions
  const terms = parseSearch(filter.search)
  if (terms.length === 0) return [NOTHING]
  return [...conditions, ...terms.map((term, i) => termCondition(term, `term${i}`))]
}
