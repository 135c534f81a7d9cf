/*
 * Text searches as SQL conditions for each row of `events`. A message is stored as a constant text
 * and variables; a word is entirely in one of them, but other texts may span both. `search_words`
 * has all words of an event with characters beyond ASCII, and those of its exception.
 */

import { isUnspaced } from '../model/words.js'
import type { Bind } from './bind.js'
import { exceptionTexts, HAS_EXCEPTION, SENT } from './exception-texts.js'
import { prefixPattern, wordPattern, wordsWithin, type Term } from './terms.js'

/**
 * A match in message, host, trace id or exception.
 *
 * @param hosts the known host names that match, if they were looked up
 */
export function anywhere(term: Term, bind: Bind, hosts?: readonly string[]): string {
  switch (term.kind) {
    case 'word': {
      const word = bind('String', term.text)
      return `${hasWord('constant_text', word)} OR ${hasWord('host', word)} OR ${wordPlaces(word).join(' OR ')}`
    }
    case 'prefix': {
      const pattern = bind('String', prefixPattern(term.text))
      const names = ['constant_text', 'host'].map((column) => `match(lower(${column}), ${pattern})`)
      return [...names, ...prefixPlaces(bind('String', term.text), pattern)].join(' OR ')
    }
    case 'part':
      return hasPart(bind('String', term.text))
    case 'phrase': {
      const others = ['host', 'trace_id'].map((column) => holds(column, term.text, bind))
      const own = [inMessage(term, bind), ...others].join(' OR ')
      return `${own} OR ${inException(term, holds(SENT, term.text, bind), bind)}`
    }
    case 'pattern':
    case 'regex': {
      const test = matches(SENT, bind('String', term.pattern))
      // A pattern such as `^$` matches no text.
      const own = term.kind === 'regex' ? `notEmpty(${SENT}) AND ${test}` : test
      return `${inTexts(term, bind, hosts)} OR ${inException(term, own, bind)}`
    }
  }
}

function inTexts(
  term: Extract<Term, { kind: 'pattern' | 'regex' }>,
  bind: Bind,
  hosts?: readonly string[],
): string {
  const pattern = bind('String', term.pattern)
  const words = term.kind === 'pattern' ? term.words : []
  const others = ['host', 'trace_id'].map((column) => {
    if (column === 'host' && hosts !== undefined) return `host IN ${bind('Array(String)', hosts)}`
    if (words.length === 0) return `(notEmpty(${column}) AND ${matches(column, pattern)})`
    const known = words.map((word) => hasWordIn([column], word, bind))
    // On a dictionary of hosts ClickHouse compiles the pattern for each part, a millisecond each, so
    // the column is cast to plain texts.
    return `(${[...known, matches(`CAST(${column}, 'String')`, pattern)].join(' AND ')})`
  })
  return `(${inMessage(term, bind)}) OR ${others.join(' OR ')}`
}

/**
 * A match in one text of the exception. To extract the texts takes longer than to search the JSON of all tags, so that comes first.
 *
 * @param test of one text
 */
function inException(
  term: Extract<Term, { kind: 'phrase' | 'pattern' | 'regex' }>,
  test: string,
  bind: Bind,
): string {
  const words = wordsWithin(term).map((word) => `hasToken(search_words, ${bind('String', word)})`)
  const json = 'text' in term ? [holds('tags', JSON.stringify(term.text).slice(1, -1), bind)] : []
  const exact = `arrayExists(one -> ${test}, ${exceptionTexts('tags')})`
  return `(${[HAS_EXCEPTION, ...words, ...json, exact].join(' AND ')})`
}

/** A match in the message only. */
export function inMessage(term: Term, bind: Bind): string {
  switch (term.kind) {
    case 'word': {
      const word = bind('String', term.text)
      const wide = `hasToken(search_words, ${word}) AND match(message, ${bind('String', wordPattern(term))})`
      return `${hasWord('constant_text', word)} OR ${hasWord('variables', word)} OR (${wide})`
    }
    case 'prefix': {
      const pattern = bind('String', wordPattern(term))
      return `${inPart(term.text, bind)} AND match(message, ${pattern})`
    }
    case 'part': {
      const part = bind('String', term.text)
      return `${hasPart(part)} AND ${holds('message', term.text, bind)}`
    }
    case 'phrase':
      return phraseInMessage(term.text, bind)
    case 'pattern': {
      const words = term.words.map((word) => hasWordIn(['constant_text', 'variables'], word, bind))
      return [...words, matches('message', bind('String', term.pattern))].join(' AND ')
    }
    case 'regex':
      return matches('message', bind('String', term.pattern))
  }
}

const hasWord = (column: string, word: string): string => `hasToken(lower(${column}), ${word})`

const matches = (column: string, pattern: string): string => `match(${column}, ${pattern})`

const hasPart = (part: string): string => `position(search_words, ${part}) > 0`

/**
 * A whole word in some columns. A word with characters beyond ASCII is also looked up in
 * `search_words`, and may then be in another column.
 */
function hasWordIn(columns: readonly string[], text: string, bind: Bind): string {
  const word = bind('String', text)
  if (isUnspaced(text)) return hasPart(word)
  const places = columns.map((column) => hasWord(column, word))
  return `(${[...places, `hasToken(search_words, ${word})`].join(' OR ')})`
}

/** Scripts in which ClickHouse's positionCaseInsensitiveUTF8 misses letters of the other case when it reads many rows, such as μ for Μ. */
const MISSED = /[\p{Script=Greek}\p{Script=Georgian}\p{Script=Cherokee}]/u

function holds(column: string, text: string, bind: Bind): string {
  const bound = bind('String', text)
  return MISSED.test(text)
    ? `position(lowerUTF8(${column}), lowerUTF8(${bound})) > 0`
    : `positionCaseInsensitiveUTF8(${column}, ${bound}) > 0`
}

const inPart = (text: string, bind: Bind): string =>
  `(${holds('constant_text', text, bind)} OR ${holds('variables', text, bind)})`

/** A run of letters and digits is either in the constant text or in a variable; separators may span both. */
function phraseInMessage(text: string, bind: Bind): string {
  const runs = [...new Set(text.match(/[A-Za-z0-9\u0080-\u{10ffff}]+/gu))]
  const parts = runs.map((run) => inPart(run, bind))
  if (runs[0] === text) return parts.join(' AND ')
  return `(${[...parts, holds('message', text, bind)].join(' AND ')})`
}

/** `hasToken` is faster row by row than `tokens`, which the indexes need. */
export const wordPlaces = (word: string): readonly string[] => [
  `hasToken(lower(variables), ${word})`,
  `(notEmpty(trace_id) AND hasToken(lower(trace_id), ${word}))`,
  `(notEmpty(search_words) AND hasToken(search_words, ${word}))`,
]

/** The substring search is many times faster than the pattern, so it comes first. */
export const prefixPlaces = (prefix: string, pattern: string): readonly string[] => [
  `(positionCaseInsensitive(variables, ${prefix}) > 0 AND match(lower(variables), ${pattern}))`,
  `(notEmpty(trace_id) AND match(lower(trace_id), ${pattern}))`,
  `(position(search_words, ${prefix}) > 0 AND match(search_words, ${pattern}))`,
]
