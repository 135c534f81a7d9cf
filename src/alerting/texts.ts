/*
 * Finds the texts of many queries in one pass over each row. ClickHouse takes longer to parse a
 * hundred conditions than to evaluate them, so the texts are passed as array parameters. Matches
 * are those of `events/text-condition.ts`. A row is first searched for the characters of all texts
 * at once; only texts that it contains are then matched by their patterns.
 */

import { bound, type Condition } from '../events/bind.js'
import { exceptionTexts, HAS_EXCEPTION, SENT } from '../events/exception-texts.js'
import { ofAnyCase, toTerm, wordPattern, wordsWithin, type Term } from '../events/terms.js'
import type { TextTest } from '../query/ast.js'

/** A text to search rows for. */
export interface Text {
  /** Identifies equal texts. */
  readonly key: string
  /** A substring of every match, compared without case. */
  readonly part: string
  /** A pattern that matches exactly the rows with the text; '' when the substring suffices. */
  readonly pattern: string
  /** Whether only the message is searched, not host, trace id and exception. */
  readonly isOfMessage: boolean
  /** The substring in JSON, for a text that is not one of the words of an exception. */
  readonly json: string | null
  /** Words of every exception that contains the text. */
  readonly words: readonly string[]
}

/** @returns null for a text without a fixed substring, such as a regular expression */
export function toText(test: TextTest, isOfMessage: boolean): Text | null {
  const term = toTerm(test)
  const found = ofTerm(term, isOfMessage)
  if (found === null || found.part === '' || found.part.includes(END)) return null
  return { ...found, isOfMessage, key: JSON.stringify([isOfMessage, term]) }
}

/** Separates two fields, so that no match spans them. */
const END = '\0'
/** ClickHouse compiles all of them into one automaton. */
export const MAX_TEXTS = 2_000

type Found = Pick<Text, 'part' | 'pattern' | 'json' | 'words'>

function ofTerm(term: Term, isOfMessage: boolean): Found | null {
  switch (term.kind) {
    case 'word':
    case 'prefix':
      return { part: term.text, pattern: wordPattern(term), json: null, words: [] }
    case 'part':
      return {
        part: term.text,
        pattern: isOfMessage ? ofAnyCase(term.text) : '',
        json: null,
        words: [],
      }
    case 'phrase':
    case 'pattern': {
      const whole = isOfMessage ? ofAnyCase(term.text) : ''
      const pattern = term.kind === 'pattern' ? term.pattern : whole
      const json = JSON.stringify(term.text).slice(1, -1)
      return { part: term.text, pattern, json, words: wordsWithin(term) }
    }
    case 'regex':
      return null
  }
}

const WHOLE = String.raw`concat(message, '\0', host, '\0', trace_id)`
const EXCEPTION = String.raw`if(${HAS_EXCEPTION}, concat(search_words, '\0', tags), '')`

/** SQL of the indexes (from 1) of the texts in a row of `events`, as one text such as `1,4`. */
export const textsSql = (texts: readonly Text[]): Condition =>
  bound('text', (bind) => {
    const list = (type: string, of: (text: Text) => unknown): string =>
      bind(`Array(${type})`, texts.map(of))
    const isOfMessage = list('Bool', (text) => text.isOfMessage)
    const patterns = list('String', ({ pattern }) => pattern)
    const isPattern = `match(if(${isOfMessage}[i], message, ${WHOLE}), ${patterns}[i])`
    const parts = list('String', ({ part }) => ofAnyCase(part))
    const inWords = list('Bool', ({ json }) => json === null)
    const exceptionPatterns = list('String', ({ pattern, part }) => pattern || ofAnyCase(part))
    const words = list('String', (text) => text.words.join(' '))
    const jsonParts = list('String', ({ part, json }) => ofAnyCase(json ?? part))
    const candidates = `multiMatchAllIndices(${EXCEPTION}, ${jsonParts})`
    const thrown = exceptionTexts(`if(notEmpty(${candidates}), tags, '')`)
    const exact = `arrayExists(one -> match(${SENT}, ${exceptionPatterns}[i]), ${thrown})`
    const inException = [
      `NOT ${isOfMessage}[i]`,
      `hasAll(splitByRegexp('\\\\s', concat(search_words, ' ')), splitByChar(' ', ${words}[i]))`,
      `if(${inWords}[i], match(search_words, ${exceptionPatterns}[i]), ${exact})`,
    ].join(' AND ')
    const all = [
      `arrayFilter(i -> ${patterns}[i] = '' OR ${isPattern}, multiMatchAllIndices(${WHOLE}, ${parts}))`,
      `arrayFilter(i -> ${inException}, ${candidates})`,
    ]
    return `arrayStringConcat(arraySort(arrayDistinct(arrayConcat(${all.join(', ')}))), ',')`
  })
