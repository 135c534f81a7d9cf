/*
 * Turns a filter of events into SQL conditions, each with its bound values.
 *
 * A message is stored as the constant text of its template and its variables. Constant texts and hosts are few: the
 * dictionaries give those that contain a word, and the condition names them. Variables, traces and words beyond ASCII
 * (`search_words`) have Bloom filters. ClickHouse combines indexes only in conditions of at most 32 nodes, so at most the two
 * longest words use the indexes, and all other terms are compared row by row.
 *
 * A statement with these conditions has the parameters from_ms, to_ms and arrived_ms.
 */

import type { Query } from '../query/ast.js'
import { indexedAttribute } from './attribute-condition.js'
import { bound, type Condition } from './bind.js'
import { textsOf, type EventFilter } from './filter.js'
import { rowCondition, toTemplateNumber } from './row-condition.js'
import { prefixPattern, wordsWithin, type Term } from './terms.js'
import { anywhere, prefixPlaces, wordPlaces } from './text-condition.js'

/** The words of a search as conditions on a dictionary. */
export interface WordSearch {
  /** One SQL condition for each word. */
  readonly conditions: readonly string[]
  readonly params: Readonly<Record<string, unknown>>
}

/** @returns null when the search has neither words nor prefixes */
export function toWordSearch(terms: readonly Term[], column: Column): WordSearch | null {
  const listed = terms.filter(isListed)
  if (!listed.some((term) => column === 'host' || isWord(term))) return null
  return {
    conditions: listed.map((term, i) => {
      if (isWord(term)) return holdsWord(column, term.kind, `word${i}`)
      // A constant text has only a part of a message.
      return column === 'host' ? `match(host, {word${i}:String})` : '0'
    }),
    params: Object.fromEntries(
      listed.map((term, i) => [`word${i}`, isWord(term) ? toPattern(term) : term.pattern]),
    ),
  }
}

/** The columns that have a dictionary. */
type Column = 'constant_text' | 'host'
type Word = Extract<Term, { readonly kind: 'word' | 'prefix' }>
type WordPattern = Extract<Term, { readonly kind: 'pattern' }>

/** The terms that are looked up in the dictionaries. */
const isListed = (term: Term): term is Word | WordPattern => isWord(term) || term.kind === 'pattern'

const isWord = (term: Term): term is Word => term.kind === 'word' || term.kind === 'prefix'

const toPattern = ({ kind, text }: Word): string => (kind === 'word' ? text : prefixPattern(text))

const holdsWord = (column: Column, kind: Word['kind'], name: string): string =>
  kind === 'word'
    ? `hasToken(lower(${column}), {${name}:String})`
    : `match(lower(${column}), {${name}:String})`

/** A text of a dictionary that contains at least one word of a search. */
export interface MatchingText {
  readonly text: string
  /** A 1 for each word, prefix and pattern of the search that the text contains, a 0 for the others. */
  readonly words: readonly number[]
}

export interface Matches {
  readonly constantTexts: readonly MatchingText[]
  readonly hosts: readonly MatchingText[]
}

/** Whether one of the words is in no dictionary, so that only variables can contain it. */
export function hasWordOfVariables(
  { terms }: Pick<EventFilter, 'terms'>,
  { constantTexts, hosts }: Matches,
): boolean {
  const texts = [...constantTexts, ...hosts]
  return terms
    .filter(isListed)
    .some(({ kind }, at) => kind === 'word' && !texts.some(({ words }) => words[at] === 1))
}

/** A longer list of texts is replaced by a comparison: its word is common, so an index would rule out little. */
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

/** The expressions of the indexes by_variables, has_trace, by_trace_id and by_search_words. */
const indexedPlaces = (name: string): readonly string[] => [
  `hasToken(lower(variables), {${name}:String})`,
  `(notEmpty(trace_id) AND has(tokens(lower(trace_id)), {${name}:String}))`,
  `has(tokens(search_words), {${name}:String})`,
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
  const [text, pattern] = [`{${name}:String}`, `{${name}_re:String}`]
  const own = word.kind === 'word' ? wordPlaces(text) : prefixPlaces(text, pattern)
  const params = word.kind === 'word' ? {} : { [`${name}_re`]: toPattern(word) }
  return asOnePart({
    sql: `(${[...known.map(({ sql }) => sql), ...own].join(' OR ')})`,
    params: Object.assign({ [name]: word.text, ...params }, ...known.map((one) => one.params)),
  })
}

/** ClickHouse combines indexes only in conditions of at most 32 nodes: 16 expressions and the 15 operators between them. */
const MAX_PARTS = 16
/** Start and end of the time range, arrival, position with repeats, and hours. */
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

/** The parameters of conditions beside the filter. */
interface Asked {
  /** The dictionary matches in the time range of the statement. */
  readonly found: Matches
  /** The end of the requested time range. */
  readonly endMs: number
}

export function toConditions(filter: EventFilter, { found, endMs }: Asked): readonly Condition[] {
  const { terms, clauses, redirects } = filter
  const simple = [...countedConditions(filter), ...clauses.flatMap(simpleCondition)]
  const rows = clauses
    .filter((clause) => SIMPLE.every((field) => textsOf(clause, field) === null))
    .map((clause, i) =>
      asOnePart(bound(`clause${i}_`, (bind) => rowCondition(clause, { bind, endMs, redirects }))),
    )
  // One expression is left for the row-by-row comparisons.
  const keys = fitting(
    [...namedConditions(filter), ...clauses.flatMap(keyCondition)],
    MAX_PARTS - PARTS_OF_PAGE - 1,
  )
  if (terms.length === 0) {
    const most = MAX_PARTS - PARTS_OF_PAGE - simple.length - partsOf(keys)
    return [...simple, ...keys, ...atMost(most, rows)]
  }
  const most = MAX_PARTS - PARTS_OF_PAGE - partsOf(keys)
  const { indexed, others } = searchConditions(terms, found, most - 1)
  return [...keys, ...indexed, ...atMost(most - partsOf(indexed), [...simple, ...rows, ...others])]
}

const partsOf = (conditions: readonly IndexedCondition[]): number =>
  conditions.reduce((sum, { parts }) => sum + parts, 0)

/** The conditions, taken in order, that have at most this many expressions together. */
function fitting(
  conditions: readonly IndexedCondition[],
  most: number,
): readonly IndexedCondition[] {
  let left = most
  return conditions.filter(({ parts }) => {
    const isFitting = parts <= left
    if (isFitting) left -= parts
    return isFitting
  })
}

/** Conditions on the severities and priorities, by which the rollups count. */
function countedConditions({ severities, priorities }: EventFilter): readonly Condition[] {
  const conditions: Condition[] = []
  if (severities !== null)
    conditions.push({ sql: 'severity IN {severities:Array(String)}', params: { severities } })
  if (priorities !== null)
    conditions.push({ sql: 'priority IN {priorities:Array(String)}', params: { priorities } })
  return conditions
}

const SIMPLE = ['type', 'environment'] as const

/** A cheap comparison of a column, as a condition of its own. */
function simpleCondition(clause: Query, i: number): readonly Condition[] {
  return SIMPLE.flatMap((field) => {
    const texts = textsOf(clause, field)
    const name = `${field}${i}`
    return texts === null
      ? []
      : [{ sql: `${field} IN {${name}:Array(String)}`, params: { [name]: texts } }]
  })
}

function namedConditions({ sources, templateIds }: EventFilter): readonly IndexedCondition[] {
  const conditions: IndexedCondition[] = []
  if (sources !== null)
    conditions.push({ sql: 'source IN {sources:Array(String)}', params: { sources }, parts: 1 })
  if (templateIds !== null)
    conditions.push({
      sql: 'template_id IN {template_ids:Array(UInt64)}',
      params: { template_ids: templateIds.map(toTemplateNumber) },
      parts: 1,
    })
  return conditions
}

/**
 * Conditions of a clause that use the indexes of hosts, ids, traces and attributes. The rows that
 * they find are compared as well.
 */
function keyCondition(clause: Query, i: number): readonly IndexedCondition[] {
  const name = `key${i}`
  const hosts = textsOf(clause, 'host')
  if (hosts !== null)
    return [{ sql: `host IN {${name}:Array(String)}`, params: { [name]: hosts }, parts: 1 }]
  const ids = textsOf(clause, 'id')
  if (ids !== null) {
    const params = { [name]: ids.map(Number) }
    return [{ sql: `id IN {${name}:Array(UInt64)}`, params, parts: 1 }]
  }
  const attribute = attributeKey(clause, name)
  if (attribute !== null) return [attribute]
  const [trace, ...others] = textsOf(clause, 'trace') ?? []
  const token = trace === undefined ? '' : longestToken(trace)
  if (token === '' || others.length > 0) return []
  const sql = `(notEmpty(trace_id) AND has(tokens(lower(trace_id)), {${name}:String}))`
  return [{ sql, params: { [name]: token }, parts: 2 }]
}

function attributeKey(clause: Query, name: string): IndexedCondition | null {
  let isIndexed = true
  const condition = bound(`${name}_`, (bind) => {
    const sql = indexedAttribute(clause, bind)
    isIndexed = sql !== null
    return sql ?? ''
  })
  return isIndexed ? { ...condition, parts: 1 } : null
}

/** The longest token of ClickHouse in a text in ASCII; '' for others. */
function longestToken(text: string): string {
  if (!/^\p{ASCII}*$/u.test(text)) return ''
  const tokens = text.toLowerCase().match(/[a-z0-9]+/g) ?? []
  return tokens.toSorted((a, b) => b.length - a.length)[0] ?? ''
}

/** A few conditions without an index stay separate, so that ClickHouse evaluates the cheap ones first; more become one. */
export function atMost(parts: number, conditions: readonly Condition[]): readonly Condition[] {
  if (conditions.length <= Math.max(parts, 1)) return conditions
  const sql = conditions.map((one) => `(${one.sql})`).join(' AND ')
  return [asOnePart({ sql, params: Object.assign({}, ...conditions.map(({ params }) => params)) })]
}

interface SearchConditions {
  readonly indexed: readonly IndexedCondition[]
  readonly others: readonly Condition[]
}

/** @param most the expressions that all conditions may have together */
function searchConditions(terms: readonly Term[], found: Matches, most: number): SearchConditions {
  const listed = terms.filter(isListed)
  const holding = (texts: readonly MatchingText[], term: Word | WordPattern): readonly string[] =>
    texts
      .filter(({ words: contained }) => contained[listed.indexOf(term)] === 1)
      .map(({ text }) => text)
  const patterns = listed.filter((term) => term.kind === 'pattern')
  const patternWith = ({ kind, text }: Word): WordPattern | undefined =>
    patterns.find((term) => kind === 'word' && wordsWithin(term).includes(text))
  const textsOfWord = (word: Word): TextsOfWord => ({
    constantTexts: holding(found.constantTexts, word),
    // A host with a word of a pattern must match the whole pattern.
    hosts: holding(found.hosts, patternWith(word) ?? word),
  })
  const longest = longestOf(terms).map((word) =>
    indexedCondition(word, `term${terms.indexOf(word)}`, textsOfWord(word)),
  )
  const indexed = fitting(longest, most)
  const others = terms.flatMap((term, i): readonly Condition[] => {
    const name = `term${i}`
    if (indexed.some(({ params }) => name in params)) return []
    // The condition of a pattern includes its words.
    if (isWord(term))
      return patternWith(term) === undefined
        ? [comparedCondition(term, name, textsOfWord(term))]
        : []
    const hosts = term.kind === 'pattern' ? holding(found.hosts, term) : undefined
    return [asOnePart(bound(`${name}_`, (bind) => anywhere(term, bind, hosts)))]
  })
  return { indexed, others }
}
