/**
 * A message is stored as the constant text of its template and the variables, the values in it. The constant text has a
 * delimiter where each value is, and the delimiter separates the values. A message that holds the delimiter itself, or
 * whose template has no constant text, is stored whole with the constant text ''.
 *
 * No word crosses from constant text to a value, so the words of a message are those of its constant text and those of
 * its values.
 */
export const DELIMITER = '\u0001'

/** A message with more values is stored whole. */
const MAX_VALUES = 200
/** A shorter constant text saves nothing, and occurs in too many values. */
const MIN_LITERAL_BYTES = 2
const MAX_CONSTANT_TEXT_BYTES = 4096

/**
 * A word of ClickHouse's token functions, for which every character beyond ASCII is a letter. The lookbehind keeps the
 * search linear: without it every letter of a long word is a possible start.
 */
const WORD_AT_END = /(?<![A-Za-z0-9\u0080-\u{10ffff}])[A-Za-z0-9\u0080-\u{10ffff}]+$/u
const WORD_AT_START = /^[A-Za-z0-9\u0080-\u{10ffff}]+/u

/**
 * @param literals the constant texts of a template, in order: what its text is between the values
 * @returns '' when messages are better stored whole
 */
export function toConstantText(literals: readonly string[]): string {
  const last = literals.length - 1
  const kept: string[] = []
  literals.forEach((literal, i) => {
    const from = i === 0 ? literal : literal.replace(WORD_AT_START, '')
    const text = i === last ? from : from.replace(WORD_AT_END, '')
    const isInner = i > 0 && i < last
    if (!isInner || Buffer.byteLength(text) >= MIN_LITERAL_BYTES) kept.push(text)
  })
  const constantText = kept.join(DELIMITER)
  const isWorth =
    kept.some((text) => Buffer.byteLength(text) >= MIN_LITERAL_BYTES) &&
    kept.length - 1 <= MAX_VALUES &&
    Buffer.byteLength(constantText) <= MAX_CONSTANT_TEXT_BYTES &&
    !literals.some((literal) => literal.includes(DELIMITER))
  return isWorth ? constantText : ''
}

/** Joins the constant text and the variables of a stored message. */
export function wholeMessage(constantText: string, variables: string): string {
  if (constantText === '') return variables
  const [first = '', ...literals] = constantText.split(DELIMITER)
  const values = variables.split(DELIMITER)
  return first + literals.map((literal, i) => `${values[i] ?? ''}${literal}`).join('')
}
