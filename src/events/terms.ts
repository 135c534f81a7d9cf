/*
 * The terms of a text search. A word of letters and digits is a token of ClickHouse, which indexes
 * find. Any other text is compared row by row, in rows that the indexes find by the whole words
 * within it.
 */

import { isUnspaced, toWords, UNSPACED } from '../model/words.js'
import type { TextTest } from '../query/ast.js'

export type Term =
  /** A whole word, in lower case. */
  | { readonly kind: 'word'; readonly text: string }
  /** The beginning of a word, in lower case. */
  | { readonly kind: 'prefix'; readonly text: string }
  /** A part of a run of characters of a script without blanks, in lower case. */
  | { readonly kind: 'part'; readonly text: string }
  /** Exactly these characters, in any case. */
  | { readonly kind: 'phrase'; readonly text: string }
  | WordPattern
  | { readonly kind: 'regex'; readonly pattern: string }

/** A word that contains punctuation. */
interface WordPattern {
  readonly kind: 'pattern'
  /** The whole text. */
  readonly text: string
  /** A regular expression of RE2. */
  readonly pattern: string
  /** The whole words within it. */
  readonly words: readonly string[]
}

/** The term that every text which passes the test contains. */
export function toTerm(test: TextTest): Term {
  switch (test.kind) {
    case 'phrase':
    case 'regex':
      return test
    case 'word':
      return ofWord(
        test.text.replace(PUNCTUATION_AT_START, '').replace(PUNCTUATION_AT_END, ''),
        false,
      )
    case 'prefix':
      return ofWord(test.text.replace(PUNCTUATION_AT_START, ''), true)
  }
}

const PUNCTUATION_AT_START = /^[^\p{L}\p{N}]+/u
/** Without the lookbehind the search is not linear. */
const PUNCTUATION_AT_END = /(?<=[\p{L}\p{N}\p{M}])[^\p{L}\p{N}\p{M}]+$/u

function ofWord(text: string, isPrefix: boolean): Term {
  const words = toWords(text)
  const [word] = words
  if (word !== undefined && word === text.toLowerCase()) {
    if (isUnspaced(word)) return { kind: 'part', text: word }
    return { kind: isPrefix ? 'prefix' : 'word', text: word }
  }
  const last = Array.from(text).at(-1) ?? ''
  const isWhole = !isPrefix || toWords(last).length === 0
  const end = isPrefix || isUnspaced(last) ? '' : oneOf(endsOf(text))
  const starts = isUnspaced(text) ? [] : startsOf(text)
  return {
    kind: 'pattern',
    text,
    pattern: `(?i)${oneOf(starts)}${escaped(text)}${end}`,
    words: isWhole ? words : words.slice(0, -1),
  }
}

/** A word may begin or end beside any character of a script without blanks. */
const NO_WORD = ['[^\\pL\\pN]', `[${UNSPACED}]`]
const NO_WORD_OR_DOT = ['[^\\pL\\pN.]', `[${UNSPACED}]`]

/** An address or version number must not match within a longer one. */
const startsOf = (text: string): readonly string[] =>
  /^\p{N}+\./u.test(text) ? ['^', ...NO_WORD_OR_DOT, '(?:^|[^\\pN])\\.'] : ['^', ...NO_WORD]
const endsOf = (text: string): readonly string[] =>
  /\.\p{N}+$/u.test(text) ? ['$', ...NO_WORD_OR_DOT, '\\.(?:$|[^\\pN])'] : ['$', ...NO_WORD]

const oneOf = (patterns: readonly string[]): string =>
  patterns.length === 0 ? '' : `(?:${patterns.join('|')})`

/** A word prefix as a pattern for a text in lower case. */
export const prefixPattern = (prefix: string): string => `(^|[^\\pL\\pN])${prefix}`

/** A word, or the beginning of one, as a pattern for a text in any case. */
export const wordPattern = ({ kind, text }: Extract<Term, { kind: 'word' | 'prefix' }>): string =>
  `(?i)${oneOf(['^', ...NO_WORD])}${text}${kind === 'word' ? oneOf(['$', ...NO_WORD]) : ''}`

/** A pattern for these characters in any case. */
export const ofAnyCase = (text: string): string => `(?i)${escaped(text)}`

const escaped = (text: string): string => text.replaceAll(/[!-/:-@[-^`{-~]/g, '\\$&')

/** Further words rule out few granules. */
const MAX_WORDS_WITHIN = 2

/** Whole words within the term, for the indexes. The longest come first, because they are the rarest. */
export function wordsWithin(term: Term): readonly string[] {
  if (term.kind === 'word') return [term.text]
  if (term.kind !== 'phrase' && term.kind !== 'pattern') return []
  const words =
    term.kind === 'pattern'
      ? term.words.filter((word) => !isUnspaced(word))
      : (term.text.toLowerCase().match(WHOLE_WORD) ?? [])
  return [...new Set(words)].toSorted((a, b) => b.length - a.length).slice(0, MAX_WORDS_WITHIN)
}

/** A word between two ASCII separators. A character beyond ASCII may be a letter of the word. */
const WHOLE_WORD = /(?<=[^a-z0-9\u0080-\u{10ffff}])[a-z0-9]+(?=[^a-z0-9\u0080-\u{10ffff}])/gu
