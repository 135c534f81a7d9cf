import type { RequestOptions, Store } from './client.js'
import { statement } from './statement.js'

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

/** The text that words are looked up in besides the skeleton; must be the expression of the index `by_value`. */
const VALUES =
  "lower(concat(if(empty(search_words), message, search_words), ' ', host, ' ', trace_id))"

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
      // words are found by an index, the phrase then in the rows that hold them
      for (const word of wordsWithin(phrase)) terms.push({ kind: 'word', text: word })
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

/** more of them narrow little */
const MAX_WORDS_OF_PHRASE = 2

/** The longest words that a phrase holds as a whole: its ends may be parts of longer ones. */
function wordsWithin(phrase: string): readonly string[] {
  const words = phrase.toLowerCase().match(WHOLE_WORD) ?? []
  return [...new Set(words)].toSorted((a, b) => b.length - a.length).slice(0, MAX_WORDS_OF_PHRASE)
}

/** Between two signs of ASCII: what is beyond ASCII may belong to the word or not. */
const WHOLE_WORD = /(?<=[^a-z0-9\u0080-\u{10ffff}])[a-z0-9]+(?=[^a-z0-9\u0080-\u{10ffff}])/gu

/** Which skeletons hold which words of a search. */
export interface SkeletonSearch {
  /** columns of `event_skeletons`, one for each word */
  readonly terms: readonly string[]
  readonly params: Readonly<Record<string, unknown>>
}

/** Whether a skeleton holds one of the words of a search; null when it asks for no words. */
export function toSkeletonSearch(search: string): SkeletonSearch | null {
  const words = parseSearch(search).filter(({ kind }) => kind === 'word')
  if (words.length === 0) return null
  return {
    terms: words.map((_, i) => `hasToken(lower(skeleton), {word${i}:String})`),
    params: Object.fromEntries(words.map(({ text }, i) => [`word${i}`, text])),
  }
}

/** A skeleton, and 1 for each word of the search that it holds. */
export interface FoundSkeleton {
  readonly skeleton: string
  readonly terms: readonly number[]
}

const skeletonsSql = statement<Readonly<Record<string, unknown>>, FoundSkeleton>('event_skeletons')

/** All skeletons that hold a word of a search. */
export async function findSkeletons(
  store: Pick<Store, 'query'>,
  search: string,
  options: RequestOptions,
): Promise<readonly FoundSkeleton[]> {
  const asked = toSkeletonSearch(search)
  if (asked === null) return []
  const sql = skeletonsSql.sql.replace('/*terms*/', () => asked.terms.join(', '))
  return await store.query({ ...skeletonsSql, sql }, asked.params, options)
}

/** more are not named one by one: they are of a common word, which needs no index */
const MAX_NAMED_CHARS = 50_000

function wordCondition(text: string, name: string, skeletons: readonly string[]): Condition {
  const params = { [name]: text }
  const inValues = `hasToken(${VALUES}, {${name}:String})`
  if (skeletons.length === 0) return { sql: inValues, params }
  if (skeletons.reduce((sum, one) => sum + one.length, 0) > MAX_NAMED_CHARS)
    return { sql: `(hasToken(lower(skeleton), {${name}:String}) OR ${inValues})`, params }
  return {
    sql: `(skeleton IN {${name}_in:Array(String)} OR ${inValues})`,
    params: { ...params, [`${name}_in`]: skeletons },
  }
}

const prefixCondition = (text: string, name: string): Condition => ({
  // what is not ASCII has all its words in search_words
  sql:
    `((empty(search_words) AND match(lower(skeleton), {${name}:String}))` +
    ` OR match(${VALUES}, {${name}:String}))`,
  params: { [name]: `(^|[^\\pL\\pN])${text}` },
})

const holds = (column: string, name: string): string =>
  `positionCaseInsensitiveUTF8(${column}, {${name}:String}) > 0`

/** Runs of letters and digits stand in the skeleton or in a value; what is between them may be where both meet. */
function phraseCondition(text: string, name: string): Condition {
  const runs = [...new Set(text.match(/[A-Za-z0-9\u0080-\u{10ffff}]+/gu))]
  const isRun = runs[0] === text
  const inParts = (part: string): string =>
    `(${holds('skeleton', part)} OR ${holds('message', part)})`
  const all = isRun
    ? inParts(name)
    : [...runs.map((_, i) => inParts(`${name}_${i}`)), holds('full_message', name)].join(' AND ')
  return {
    // in an `if` ClickHouse takes it for one part of the condition, of which it combines indexes up to 32
    sql: `if((${all}) OR ${holds('host', name)} OR ${holds('trace_id', name)}, 1, 0)`,
    params: Object.fromEntries([
      [name, text],
      ...(isRun ? [] : runs.map((run, i) => [`${name}_${i}`, run])),
    ]),
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

/**
 * The conditions of a filter, for WHERE, each with the values it binds.
 *
 * @param found all skeletons that hold words of its search
 */
export function toConditions(
  filter: EventFilter,
  found: readonly FoundSkeleton[],
): readonly Condition[] {
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
  let words = 0
  const toCondition = (term: Term, name: string): Condition => {
    switch (term.kind) {
      case 'word': {
        const at = words++
        const skeletons = found.filter(({ terms: held }) => held[at] === 1)
        return wordCondition(
          term.text,
          name,
          skeletons.map(({ skeleton }) => skeleton),
        )
      }
      case 'prefix':
        return prefixCondition(term.text, name)
      case 'phrase':
        return phraseCondition(term.text, name)
    }
  }
  return [...conditions, ...terms.map((term, i) => toCondition(term, `term${i}`))]
}
