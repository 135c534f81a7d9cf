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

/** What a search asks of texts that are few: the skeletons, and the names of hosts. */
export interface WordSearch {
  /** columns of the question, one for each word */
  readonly terms: readonly string[]
  readonly params: Readonly<Record<string, unknown>>
}

/** Whether a text holds each of the words and prefixes of a search; null when it asks for none. */
export function toWordSearch(search: string, column: Column): WordSearch | null {
  const words = parseSearch(search).filter(isWord)
  if (words.length === 0) return null
  return {
    terms: words.map(({ kind }, i) => holdsWord(column, kind, `word${i}`)),
    params: Object.fromEntries(words.map((word, i) => [`word${i}`, toPattern(word)])),
  }
}

/** Columns of few texts. */
type Column = 'constant_text' | 'host'
type Word = Exclude<Term, { readonly kind: 'phrase' }>

const isWord = (term: Term): term is Word => term.kind !== 'phrase'

const toPattern = ({ kind, text }: Word): string =>
  kind === 'word' ? text : `(^|[^\\pL\\pN])${text}`

const holdsWord = (column: Column, kind: Word['kind'], name: string): string =>
  kind === 'word'
    ? `hasToken(lower(${column}), {${name}:String})`
    : `match(lower(${column}), {${name}:String})`

/** A text, and 1 for each word of the search that it holds. */
export interface FoundText {
  readonly text: string
  readonly terms: readonly number[]
}

/** All texts of some hours that hold a word of a search. */
export interface FoundTexts {
  readonly skeletons: readonly FoundText[]
  readonly hosts: readonly FoundText[]
}

/** Whether what does not match is left out without being read. */
export const hasIndex = ({
  templateIds,
  search,
}: Pick<EventFilter, 'templateIds' | 'search'>): boolean =>
  templateIds.length > 0 || parseSearch(search).some(({ kind }) => kind === 'word')

/** Whether one of the words stands in values only, by all texts that hold any of them. */
export function hasWordOfValues(search: string, { skeletons, hosts }: FoundTexts): boolean {
  const texts = [...skeletons, ...hosts]
  return parseSearch(search)
    .filter(isWord)
    .some(({ kind }, at) => kind === 'word' && !texts.some(({ terms }) => terms[at] === 1))
}

/** more are not named one by one: they are of a common word, which needs no index */
const MAX_NAMED_CHARS = 50_000

/** Conditions that a column is one of the texts that hold a word. */
function inTexts(word: Word, name: string, { skeletons, hosts }: Texts): readonly Condition[] {
  const conditions: Condition[] = []
  for (const [column, texts] of [
    ['constant_text', skeletons],
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

/** The texts that hold one word. */
interface Texts {
  readonly skeletons: readonly string[]
  readonly hosts: readonly string[]
}

/** Words with letters beyond ASCII stand in search_words. hasToken is faster than tokens. */
function wordCondition(word: Word, name: string, texts: Texts): Condition {
  const known = inTexts(word, name, texts)
  const places = [
    ...known.map(({ sql }) => sql),
    `hasToken(lower(variables), {${name}:String})`,
    `(notEmpty(trace_id) AND hasToken(lower(trace_id), {${name}:String}))`,
    `(notEmpty(search_words) AND hasToken(search_words, {${name}:String}))`,
  ]
  return {
    sql: `(${places.join(' OR ')})`,
    params: Object.assign({ [name]: word.text }, ...known.map(({ params }) => params)),
  }
}

interface IndexedCondition extends Condition {
  readonly parts: number
}

/**
 * Served by the indexes by_constant_text, by_host, by_variables, has_trace, by_trace_id and by_search_words, whose expressions these
 * must be.
 */
function indexedCondition(word: Word, name: string, texts: Texts): IndexedCondition {
  const known = inTexts(word, name, texts)
  const places = [
    ...known.map(({ sql }) => sql),
    `hasToken(lower(variables), {${name}:String})`,
    `(notEmpty(trace_id) AND has(tokens(lower(trace_id)), {${name}:String}))`,
    `has(tokens(search_words), {${name}:String})`,
  ]
  return {
    sql: `(${places.join(' OR ')})`,
    params: Object.assign({ [name]: word.text }, ...known.map(({ params }) => params)),
    parts: known.length + 4,
  }
}

/** What is not ASCII has all its words in search_words. */
function prefixCondition(word: Word, name: string, texts: Texts): Condition {
  const known = inTexts(word, name, texts)
  const places = [
    ...known.map(({ sql }) => sql),
    // the plain text is found many times faster, and seldom
    `(positionCaseInsensitive(variables, {${name}:String}) > 0 AND match(lower(variables), {${name}_re:String}))`,
    `(notEmpty(trace_id) AND match(lower(trace_id), {${name}_re:String}))`,
    `(position(search_words, {${name}:String}) > 0 AND match(search_words, {${name}_re:String}))`,
  ]
  return {
    sql: `(${places.join(' OR ')})`,
    params: Object.assign(
      { [name]: word.text, [`${name}_re`]: toPattern(word) },
      ...known.map(({ params }) => params),
    ),
  }
}

/** ClickHouse combines indexes only in conditions of 32 signs: of 16 parts, and the 15 AND and OR between them. */
const MAX_PARTS = 16
/** the time, from and to, the arrival, the position and the hours */
const PARTS_OF_PAGE = 5
/** more words narrow little, and one is six parts at most */
const MAX_INDEXED_WORDS = 2

/** Long words are rare ones. */
const longestOf = (terms: readonly Term[]): readonly Word[] =>
  terms
    .filter(isWord)
    .filter(({ kind }) => kind === 'word')
    .toSorted((a, b) => b.text.length - a.text.length)
    .slice(0, MAX_INDEXED_WORDS)

/** In an `if` ClickHouse takes it for one part of the condition, and looks for no index. */
export const asOnePart = ({ sql, params }: Condition): Condition => ({
  sql: `if(${sql}, 1, 0)`,
  params,
})

const holds = (column: string, name: string): string =>
  `positionCaseInsensitiveUTF8(${column}, {${name}:String}) > 0`

/** Runs of letters and digits stand in the skeleton or in a value; what is between them may be where both meet. */
function phraseCondition(text: string, name: string): Condition {
  const runs = [...new Set(text.match(/[A-Za-z0-9\u0080-\u{10ffff}]+/gu))]
  const isRun = runs[0] === text
  const inParts = (part: string): string =>
    `(${holds('constant_text', part)} OR ${holds('variables', part)})`
  const all = isRun
    ? inParts(name)
    : [...runs.map((_, i) => inParts(`${name}_${i}`)), holds('message', name)].join(' AND ')
  return asOnePart({
    sql: `(${all}) OR ${holds('host', name)} OR ${holds('trace_id', name)}`,
    params: Object.fromEntries([
      [name, text],
      ...(isRun ? [] : runs.map((run, i) => [`${name}_${i}`, run])),
    ]),
  })
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
 * @param found all texts of the time that is asked for that hold words of its search
 */
export function toConditions(filter: EventFilter, found: FoundTexts): readonly Condition[] {
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

/** What no index knows: few are looked at one after the other, many are one part. */
function atMost(parts: number, conditions: readonly Condition[]): readonly Condition[] {
  if (conditions.length <= parts) return conditions
  const sql = conditions.map((one) => `(${one.sql})`).join(' AND ')
  return [asOnePart({ sql, params: Object.assign({}, ...conditions.map(({ params }) => params)) })]
}

interface SearchConditions {
  readonly indexed: readonly IndexedCondition[]
  readonly others: readonly Condition[]
}

/** @param most parts that may be told from each other */
function searchConditions(search: string, found: FoundTexts, most: number): SearchConditions {
  const terms = parseSearch(search)
  if (terms.length === 0) return { indexed: [], others: [NOTHING] }
  const words = terms.filter(isWord)
  const holding = (texts: readonly FoundText[], at: number): readonly string[] =>
    texts.filter(({ terms: held }) => held[at] === 1).map(({ text }) => text)
  const textsOf = (word: Word): Texts => {
    const at = words.indexOf(word)
    return { skeletons: holding(found.skeletons, at), hosts: holding(found.hosts, at) }
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
    const toCondition = term.kind === 'word' ? wordCondition : prefixCondition
    return [asOnePart(toCondition(term, name, textsOf(term)))]
  })
  return { indexed: [...indexed.values()], others }
}
