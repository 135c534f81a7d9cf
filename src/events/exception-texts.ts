import { EXCEPTION_NAMES } from '../model/exceptions.js'

/** An event with an exception has its tags as JSON, and the exception's words follow a newline in `search_words`. */
export const HAS_EXCEPTION = String.raw`position(search_words, '\n') > 0`

const STRING = String.raw`"(?:[^"\\\\]|\\\\.)*"`
const NAMES = EXCEPTION_NAMES.map((name) => `'${name}'`).join(', ')
const IS_EXCEPTION = `lower(replaceRegexpAll(tag.1, '[-_. @]', '')) IN (${NAMES})`
/** ClickHouse's functions of JSON reject all of a text with an integer of more than 64 bits, so such numbers are cut. */
const withinBits = (json: string): string =>
  String.raw`if(match(${json}, '[0-9]{19}'), replaceRegexpAll(${json}, '(${STRING})|([0-9]{18})[0-9]+', '\\1\\2'), ${json})`

/** SQL of a text of an exception as it was sent, of `one` of `exceptionTexts`; '' for the name of a member. */
export const SENT = 'JSONExtractString(one)'

/**
 * The texts of an exception in JSON, each by itself, and the names of its members with a colon behind them. There are few functions,
 * because ClickHouse plans each for a quarter of a millisecond.
 *
 * @param tags SQL of the JSON of an event's tags
 * @returns SQL of an array
 */
export function exceptionTexts(tags: string): string {
  const own = `arrayFilter(tag -> ${IS_EXCEPTION}, JSONExtractKeysAndValuesRaw(${withinBits(tags)}))`
  return `extractAll(arrayStringConcat(tupleElement(${own}, 2), ' '), '${STRING}:?')`
}
