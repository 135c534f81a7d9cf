import type { Field, TextTest, ValueTest } from './ast.js'
import { SyntaxFault, nearest } from './fault.js'
import {
  SEVERITY_NAMES,
  builtinLike,
  isDuration,
  isInteger,
  isNumber,
  isTemplateId,
  nameOf,
  toSeverity,
  typeOf,
  type FieldKind,
} from './fields.js'
import type { FieldToken, TextToken } from './lexer.js'
import { quoted } from './printer.js'
import { regexFault } from './regex.js'

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u

/** The operators of other languages for the keywords. */
const OPERATORS: Readonly<Record<string, string>> = { '&&': 'AND', '||': 'OR', '!': 'NOT' }

/** Converts a token to a test of a text. @throws SyntaxFault */
export function toTextTest(token: TextToken): TextTest {
  if (token.kind === 'regex') return toRegex(token)
  if (token.kind === 'quoted') {
    if (token.text === '') throw new SyntaxFault(token, 'there is nothing between the quotes')
    return { kind: 'phrase', text: token.text }
  }
  const { text, isPrefix } = token
  checkStars(token)
  if (!LETTER_OR_DIGIT.test(text)) {
    const keyword = OPERATORS[text]
    if (keyword !== undefined && token.of === null)
      throw new SyntaxFault(token, `${text} is written ${keyword}`, keyword)
    throw new SyntaxFault(
      token,
      'a word needs a letter or a digit; quotes find any characters',
      quoted(isPrefix ? `${text}*` : text),
    )
  }
  return { kind: isPrefix ? 'prefix' : 'word', text }
}

/** Converts a token to a test of a field's value. @throws SyntaxFault */
export const toValueTest = (token: TextToken, field: Field): ValueTest =>
  READERS[typeOf(field).kind](token, field)

const WHOLE_NUMBERS = 'this field takes whole numbers'

const READERS: Readonly<Record<FieldKind, (token: TextToken, field: Field) => ValueTest>> = {
  words: toTextTest,
  texts: (token) => toText(token),
  'texts without regex': (token, field) => {
    if (token.kind !== 'regex') return toText(token)
    throw new SyntaxFault(token, `${nameOf(field)} takes no regular expressions`)
  },
  attributes: (token, field) => toRange(token, field) ?? toText(token),
  severities: (token, field) => toRange(token, field) ?? toOneOf(token, field),
  names: toOneOf,
  integers: (token, field) => toRange(token, field) ?? toChecked(token, isInteger, WHOLE_NUMBERS),
  'template ids': (token) =>
    toChecked(token, isTemplateId, 'a template id has 16 hexadecimal digits'),
  durations: (token) =>
    toChecked(token, isDuration, 'a time span is a number with s, m, h, d or w: 1h'),
  // The parser reads the value of `has`, which is a field.
  fields: toOneOf,
}

/** The values of fields with an order, which can be compared. */
const ORDERED: Readonly<Partial<Record<FieldKind, (text: string) => boolean>>> = {
  severities: (text) => toSeverity(text) !== null,
  integers: isInteger,
  attributes: isNumber,
}

const isOrdered = (text: string, field: Field): boolean =>
  ORDERED[typeOf(field).kind]?.(text) === true

/** @throws SyntaxFault unless values of the field can be compared so */
export function toBound(token: TextToken, field: Field, { operator }: FieldToken): string {
  const { kind } = typeOf(field)
  const text = plainText(token)
  if (isOrdered(text, field)) return toSeverity(text) ?? text
  if (kind === 'severities') throw unknownName(token, field, text)
  throw new SyntaxFault(token, boundFault(field, kind, operator))
}

function boundFault(field: Field, type: string, operator: string): string {
  if (type === 'integers') return WHOLE_NUMBERS
  if (type !== 'attributes') return `${nameOf(field)} has no order`
  const meant = builtinLike(field.name)
  const guess = meant === null ? '' : `; did you mean ${meant}?`
  return `${operator} needs a number behind it${guess}`
}

function toText(token: TextToken): ValueTest {
  if (token.kind === 'regex') return toRegex(token)
  if (token.kind === 'quoted') return { kind: 'equal', text: token.text }
  checkStars(token)
  return { kind: token.isPrefix ? 'prefix' : 'equal', text: token.text }
}

/** @returns null when the token is no range of such ends */
function toRange(token: TextToken, field: Field): ValueTest | null {
  if (token.kind !== 'bare' || token.isPrefix || token.dotsAt < 0) return null
  const [from, to] = [token.text.slice(0, token.dotsAt), token.text.slice(token.dotsAt + 2)]
  if (!isOrdered(from, field) || !isOrdered(to, field)) return null
  return { kind: 'range', from: toSeverity(from) ?? from, to: toSeverity(to) ?? to }
}

/** Whether a value looks like a comparison: `>10`. */
export const isCompared = (text: string, field: Field): boolean =>
  /^[<>]/.test(text) && isOrdered(text.replace(/^.=?/, ''), field)

/** @returns null unless the range has its greater end first, so that no value is in it: `5..2` */
export function reversedRange(span: TextToken, test: ValueTest): SyntaxFault | null {
  if (test.kind !== 'range' || orderOf(test.from) <= orderOf(test.to)) return null
  return new SyntaxFault(span, 'this range is empty', `${test.to}..${test.from}`)
}

/** Severities are never compared with numbers, so both can share an order. */
const orderOf = (end: string): number => SEVERITY_NAMES.indexOf(end) + 1 || Number(end)

function toOneOf(token: TextToken, field: Field): ValueTest {
  const text = plainText(token)
  const known =
    typeOf(field).kind === 'severities'
      ? toSeverity(text)
      : typeOf(field).names.find((name) => name.toLowerCase() === text.toLowerCase())
  if (known === null || known === undefined) throw unknownName(token, field, text)
  return { kind: 'equal', text: known }
}

const unknownName = (token: TextToken, field: Field, text: string): SyntaxFault =>
  new SyntaxFault(
    token,
    `${nameOf(field)} is one of ${typeOf(field).names.join(', ')}`,
    nearest(text, typeOf(field).names),
  )

function toChecked(
  token: TextToken,
  isRight: (text: string) => boolean,
  message: string,
): ValueTest {
  const text = plainText(token)
  if (!isRight(text)) throw new SyntaxFault(token, message)
  return { kind: 'equal', text: text.toLowerCase() }
}

/** @returns '' for a token that cannot be a name or number */
const plainText = (token: TextToken): string =>
  token.kind === 'regex' || (token.kind === 'bare' && token.isPrefix) ? '' : token.text

function toRegex(token: Extract<TextToken, { kind: 'regex' }>): TextTest {
  const fault = regexFault(token.pattern)
  if (fault !== null) throw new SyntaxFault(token, `in the regular expression: ${fault.message}`)
  return { kind: 'regex', pattern: token.pattern }
}

/** @throws SyntaxFault for a star elsewhere than at the end */
function checkStars(token: Extract<TextToken, { kind: 'bare' }>): void {
  if (token.hasInnerStar) throw new SyntaxFault(token, 'a * stands at the end of a word only')
}
