import { BUILTIN_FIELDS, type Field } from './ast.js'
import { toField, typeOf } from './fields.js'
import { tokenize, type FieldToken, type Token } from './lexer.js'

/** The possible completions at a position of a line. */
export interface Completion {
  /** The text that a completion replaces, in UTF-16 code units; it may reach beyond the position. */
  readonly position: number
  readonly length: number
  /** `clause`: a word or the name of a field; `operator`: `OR`; `value`: a value of `field`. */
  readonly expected: readonly ('clause' | 'operator' | 'value')[]
  readonly field: Field | null
  /** The names of the language that begin with the typed text: built-in fields, or the values of a field with few values. */
  readonly names: readonly string[]
}

/** Determines what is expected at a position of any line, complete or not. */
export function completeQuery(line: string, position: number): Completion {
  const tokens = tokenize(line)
  const at = tokens.findLastIndex(({ start }) => start < position)
  const token = tokens[at]
  if (token === undefined || token.end < position) return between(position, token)
  const typed = line.slice(token.start, position)
  if ('of' in token && token.of !== null) return value(token, token.of.name, typed)
  if (token.kind === 'field') return atField(token, position, typed)
  if (token.kind === 'comma') return afterComma(token, tokens[at - 1])
  // The beginning of a name may be a keyword.
  if (token.kind === 'bare' || /^\w+$/.test(typed)) return clause(token, typed)
  return isWithinText(token, position) ? nothing(token) : between(position, token)
}

const isWithinText = (token: Token, position: number): boolean =>
  'of' in token && (position < token.end || (token.kind === 'quoted' && !token.isClosed))

function atField(token: FieldToken, position: number, typed: string): Completion {
  const end = token.end - token.operator.length
  if (position <= end) return clause({ start: token.start, end }, typed)
  return value({ start: token.end, end: token.end }, token.name, '')
}

function afterComma(comma: Token, before: Token | undefined): Completion {
  const field = before !== undefined && 'of' in before ? before.of : null
  const isOfList = field !== null && before?.end === comma.start
  return isOfList ? value({ start: comma.end, end: comma.end }, field.name, '') : nothing(comma)
}

interface Place {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

const startingWith = (names: readonly string[], typed: string): readonly string[] =>
  names.filter((name) => name.toLowerCase().startsWith(typed.toLowerCase()))

/** A new clause, or an operator where one has just ended. */
function between(position: number, before: Token | undefined): Completion {
  const isOperand = before !== undefined && ('of' in before || before.kind === 'close')
  const found = clause({ start: position, end: position }, '')
  return isOperand ? { ...found, expected: ['clause', 'operator'] } : found
}

const clause = (span: Place, typed: string): Completion =>
  completion(span, ['clause'], startingWith(BUILTIN_FIELDS, typed))

function value(span: Place, name: string, typed: string): Completion {
  const field = toField(name)
  return completion(span, ['value'], startingWith(typeOf(field).names, typed), field)
}

const nothing = (span: Place): Completion => completion(span, [], [])

const completion = (
  { start, end }: Place,
  expected: Completion['expected'],
  names: readonly string[],
  field: Field | null = null,
): Completion => ({ position: start, length: end - start, expected, field, names })
