/*
 * Turns a filter of events into SQL conditions, each with its bound values.
 *
 * A search consists of terms: words, prefixes (`time*`) and quoted phrases. An event must contain all of them. A message is
 * stored as the constant text of its template and its variables. Constant texts and hosts are few: the dictionaries give
 * those that contain a word, and the condition names them. Variables, traces and words beyond ASCII (`search_words`) have
 * Bloom filters. ClickHouse combines indexes only in conditions of at most 32 nodes, so at most the two longest words use
 * the indexes, and all other terms are compared row by row.
 */

/** An empty list matches any value. */
export interface EventFilter {
  readonly severities: readonly string[]
  readonly priorities: readonly string[]
  readonly types: readonly string[]
  /** null matches any source; an empty list matches nothing, such as an application without sources. */
  readonly sources: readonly string[] | null
  readonly environments: readonly string[]
  /** Each id has 16 hex digits. */
  readonly templateIds: readonly string[]
  readonly search: string
}

export interface Condition {
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

type Term =
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'prefix'; readonly text: string }
  | { readonly kind: 'phrase'; readonly text: string }

function parseSearch(text: string): readonly Term[] {
  const terms: Term[] = []
  for (const match of text.matchAll(/"([^"]*)"|([^\s"]+)/g)) {
    const [, phrase, bare] = match
    if (phrase !== undefined) {
      // An index finds the rows with these words; the phrase is compared in those rows only.
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

/** Each further term is one more comparison for every row. */
const MAX_TERMS = 16
/** A prefix is a pattern that no index serves. */
const MAX_PREFIXES_ALONE = 2

/** @returns what is wrong with a search that would take too much of everybody's time; null when nothing is */
export function searchFault({ search, sources, templateIds }: EventFilter): string | null {
  const terms = parseSearch(search)
  // Words within a phrase are no terms of their own.
  const phrases = terms.filter(({ kind }) => kind === 'phrase').length
  const prefixes = terms.filter(({ kind }) => kind === 'prefix').length
  const words = parseSearch(search.replaceAll(/"[^"]*"/g, ' ')).length
  if (words + phrases > MAX_TERMS) return `must have at most ${MAX_TERMS} terms`
  const isNarrowed = words > prefixes || phrases > 0 || sources !== null || templateIds.length > 0
  if (prefixes <= MAX_PREFIXES_ALONE || isNarrowed) return null
  return `must have at most ${MAX_PREFIXES_ALONE} prefixes, or a word, a phrase, a source or a template beside them`
}

/** Further words rule out few granules. */
const MAX_WORDS_OF_PHRASE = 2

/** The longest complete words of a phrase; its ends may be parts of longer words. */
function wordsWithin(phrase: string): readonly string[] {
  const words = phrase.toLowerCase().match(WHOLE_WORD) ?? []
  return [...new Set(words)].toSorted((a, b) => b.length - a.length).slice(0, MAX_WORDS_OF_PHRASE)
}

/** A word between two ASCII separators: a character beyond ASCII may be a letter of the word. */
const WHOLE_WORD = /(?<=[^a-z0-9\u0080-\u{10ffff}])[a-z0-9]+(?=[^a-z0-9\u0080-\u{10ffff}])/gu

/** The words of a search as conditions on a dictionary. */
export interface WordSearch {
  /** One SQL condition for each word. */
  readonly conditions: readonly string[]
  readonly params: Readonly<Record<string, unknown>>
}

/** @returns null when the search has neither words nor prefixes */
export function toWordSearch(search: string, column: Column): WordSearch | null {
  const words = parseSearch(search).filter(isWord)
  if (words.length === 0) return null
  return {
    conditions: words.map(({ kind }, i) => holdsWord(column, kind, `word${i}`)),
    params: Object.fromEntries(words.map((word, i) => [`word${i}`, toPattern(word)])),
  }
}

/** The columns that have a dictionary. */
type Column = 'constant_text' | 'host'
type Word = Exclude<Term, { readonly kind: 'phrase' }>

const isWord = (term: Term): term is Word => term.kind !== 'phrase'

const toPattern = ({ kind, text }: Word): string =>
  kind === 'word' ? text : `(^|[^\\pL\\pN])${text}`

const holdsWord = (column: Column, kind: Word['kind'], name: string): string =>
  kind === 'word'
    ? `hasToken(lower(${column}), {${name}:String})`
    : `match(lower(${column}), {${name}:String})`

/** A text of a dictionary that contains at least one word of a search. */
export interface MatchingText {
  readonly text: string
  /** A 1 for each word of the search that the text contains, a 0 for the others. */
  readonly words: readonly number[]
}

export interface Matches {
  readonly constantTexts: readonly MatchingText[]
  readonly hosts: readonly MatchingText[]
}

/** Whether an index rules out granules. */
export const hasIndex = ({
  templateIds,
  search,
}: Pick<EventFilter, 'templateIds' | 'search'>): boolean =>
  templateIds.length > 0 || parseSearch(search).some(({ kind }) => kind === 'word')

/** Whether one of the words is in no dictionary and therefore occurs in variables only. */
export function hasWordOfVariables(search: string, { constantTexts, hosts }: Matches): boolean {
  const texts = [...constantTexts, ...hosts]
  return parseSearch(search)
    .filter(isWord)
    .some(({ kind }, at) => kind === 'word' && !texts.some(({ words }) => words[at] === 1))
}

/** Longer lists of texts are replaced by a comparison: their word is common and gains nothing from an index. */
const MAX_NAMED_CHARS = 50_000

/** The texts of the dictionaries that contain one word. */
interface TextsOfWord {
  readonly constantTexts: readonly string[]
  readonly hosts: readonly string[]
}

/** Conditions that a column is one of the texts that contain a word. */
function inTexts(
  word: Word,
  name: string,
  { constantTexts, hosts }: TextsOfWord,
): readonly Condition[] {
  const conditions: Condition[] = []
  for (const [column, texts] of [
    ['constant_text', constantTexts],
    ['host', hosts],
  ] as const) {
    if (texts.length === 0) continue
    const isLong = texts.reduce((sum, one) => sum + one.length, 0) > MAX_NAMED_CHARS
    const param = `${name}_${column}`
    conditions.push(
      isLong
        ? { sql: holdsWord(column, word.kind, param), params: { [param]: toPattern(word) } }
        : { sql: `${column} IN {${param}:Array(String)}`, params: { [param]: texts } },
    )
  }
  return conditions
}

/** Row by row, `hasToken` is faster than `tokens`, which the indexes require. */
const wordPlaces = (name: string): readonly string[] => [
  `hasToken(lower(variables), {${name}:String})`,
  `(notEmpty(trace_id) AND hasToken(lower(trace_id), {${name}:String}))`,
  `(notEmpty(search_words) AND hasToken(search_words, {${name}:String}))`,
]

/** The expressions of the indexes by_variables, has_trace, by_trace_id and by_search_words. */
const indexedPlaces = (name: string): readonly string[] => [
  `hasToken(lower(variables), {${name}:String})`,
  `(notEmpty(trace_id) AND has(tokens(lower(trace_id)), {${name}:String}))`,
  `has(tokens(search_words), {${name}:String})`,
]

/** A substring search is many times faster than the pattern, so it comes first. `search_words` has all words beyond ASCII. */
const prefixPlaces = (name: string): readonly string[] => [
  `(positionCaseInsensitive(variables, {${name}:String}) > 0 AND match(lower(variables), {${name}_re:String}))`,
  `(notEmpty(trace_id) AND match(lower(trace_id), {${name}_re:String}))`,
  `(position(search_words, {${name}:String}) > 0 AND match(search_words, {${name}_re:String}))`,
]

/** A condition that ClickHouse evaluates by index. */
interface IndexedCondition extends Condition {
  /** The number of its expressions joined by AND and OR, as ClickHouse counts them. */
  readonly parts: number
}

function indexedCondition(word: Word, name: string, texts: TextsOfWord): IndexedCondition {
  const known = inTexts(word, name, texts)
  const places = [...known.map(({ sql }) => sql), ...indexedPlaces(name)]
  return {
    sql: `(${places.join(' OR ')})`,
    params: Object.assign({ [name]: word.text }, ...known.map(({ params }) => params)),
    // The condition on traces has two expressions.
    parts: places.length + 1,
  }
}

function comparedCondition(word: Word, name: string, texts: TextsOfWord): Condition {
  const known = inTexts(word, name, texts)
  const own = word.kind === 'word' ? wordPlaces(name) : prefixPlaces(name)
  const pattern = word.kind === 'word' ? {} : { [`${name}_re`]: toPattern(word) }
  return asOnePart({
    sql: `(${[...known.map(({ sql }) => sql), ...own].join(' OR ')})`,
    params: Object.assign({ [name]: word.text, ...pattern }, ...known.map(({ params }) => params)),
  })
}

/** ClickHouse combines indexes only in conditions of at most 32 nodes: 16 expressions and the 15 operators between them. */
const MAX_PARTS = 16
/** Start and end of the time range, arrival, position and hours. */
const PARTS_OF_PAGE = 5
/** Further words rule out few granules, and each takes up to six expressions. */
const MAX_INDEXED_WORDS = 2

/** Long words are the rarest. */
const longestOf = (terms: readonly Term[]): readonly Word[] =>
  terms
    .filter(isWord)
    .filter(({ kind }) => kind === 'word')
    .toSorted((a, b) => b.text.length - a.text.length)
    .slice(0, MAX_INDEXED_WORDS)

/** ClickHouse counts an `if` as one expression and uses no index for it. */
export const asOnePart = ({ sql, params }: Condition): Condition => ({
  sql: `if(${sql}, 1, 0)`,
  params,
})

const holds = (column: string, name: string): string =>
  `positionCaseInsensitiveUTF8(${column}, {${name}:String}) > 0`

/** A run of letters and digits is in the constant text or in a variable; separators may be where the two meet. */
function phraseCondition(text: string, name: string): Condition {
  const runs = [...new Set(text.match(/[A-Za-z0-9\u0080-\u{10ffff}]+/gu))]
  const isRun = runs[0] === text
  const inParts = (part: string): string =>
    `(${holds('constant_text', part)} OR ${holds('variables', part)})`
  const all = isRun
    ? inParts(name)
    : [...runs.map((_, i) => inParts(`${name}_${i}`)), holds('message', name)].join(' AND ')
  return asOnePart({
    // The tags of an event with an exception are JSON, and its words are below a line end.
    sql:
      `(${all}) OR ${holds('host', name)} OR ${holds('trace_id', name)} ` +
      `OR (position(search_words, '\\n') > 0 AND ${holds('tags', `${name}_json`)})`,
    params: Object.fromEntries([
      [name, text],
      [`${name}_json`, JSON.stringify(text).slice(1, -1)],
      ...(isRun ? [] : runs.map((run, i) => [`${name}_${i}`, run])),
    ]),
  })
}

/** A search without letters and digits matches nothing. */
const NOTHING: Condition = { sql: 'false', params: {} }

const SIMPLE = [
  ['severities', 'severity IN {severities:Array(String)}'],
  ['priorities', 'priority IN {priorities:Array(String)}'],
  ['types', 'type IN {types:Array(String)}'],
  ['environments', 'environment IN {environments:Array(String)}'],
] as const

/** @param found the matches of the dictionaries in the time range of the statement */
export function toConditions(filter: EventFilter, found: Matches): readonly Condition[] {
  const named: Condition[] = []
  if (filter.sources !== null)
    named.push({ sql: 'source IN {sources:Array(String)}', params: { sources: filter.sources } })
  if (filter.templateIds.length > 0)
    named.push({
      sql: 'template_id IN {template_ids:Array(UInt64)}',
      params: { template_ids: filter.templateIds.map((id) => BigInt(`0x${id}`)) },
    })
  const most = MAX_PARTS - PARTS_OF_PAGE - named.length
  const simple = SIMPLE.filter(([name]) => filter[name].length > 0).map(
    ([name, sql]): Condition => ({ sql, params: { [name]: filter[name] } }),
  )
  if (filter.search.trim() === '') return [...simple, ...named]
  const { indexed, others } = searchConditions(filter.search, found, most - 1)
  const parts = indexed.reduce((sum, one) => sum + one.parts, 0)
  return [...named, ...indexed, ...atMost(most - parts, [...simple, ...others])]
}

/** A few conditions without an index stay separate, so that ClickHouse evaluates the cheap ones first; more become one. */
function atMost(parts: number, conditions: readonly Condition[]): readonly Condition[] {
  if (conditions.length <= parts) return conditions
  const sql = conditions.map((one) => `(${one.sql})`).join(' AND ')
  return [asOnePart({ sql, params: Object.assign({}, ...conditions.map(({ params }) => params)) })]
}

interface SearchConditions {
  readonly indexed: readonly IndexedCondition[]
  readonly others: readonly Condition[]
}

/** @param most the expressions that all conditions may have together */
function searchConditions(search: string, found: Matches, most: number): SearchConditions {
  const terms = parseSearch(search)
  if (terms.length === 0) return { indexed: [], others: [NOTHING] }
  const words = terms.filter(isWord)
  const holding = (texts: readonly MatchingText[], at: number): readonly string[] =>
    texts.filter(({ words: contained }) => contained[at] === 1).map(({ text }) => text)
  const textsOf = (word: Word): TextsOfWord => {
    const at = words.indexOf(word)
    return { constantTexts: holding(found.constantTexts, at), hosts: holding(found.hosts, at) }
  }
  const indexed = new Map<Term, IndexedCondition>()
  let left = most
  for (const word of longestOf(terms)) {
    const condition = indexedCondition(word, `term${terms.indexOf(word)}`, textsOf(word))
    if (condition.parts > left) continue
    indexed.set(word, condition)
    left -= condition.parts
  }
  const others = terms.flatMap((term, i): readonly Condition[] => {
    const name = `term${i}`
    if (indexed.has(term)) return []
    if (!isWord(term)) return [phraseCondition(term.text, name)]
    return [comparedCondition(term, name, textsOf(term))]
  })
  return { indexed: [...indexed.values()], others }
}
