import type { Comparison } from './ast.js'

/** Positions count UTF-16 code units, as JavaScript does. */
export interface Span {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

/** A name with its operator: `host:`, `count>=`. */
export interface FieldToken extends Span {
  readonly kind: 'field'
  readonly name: string
  readonly operator: ':' | Comparison
}

/** A text, or a value when `of` is the field that it belongs to. */
export type TextToken = Span & { readonly of: FieldToken | null } & (
    | {
        readonly kind: 'bare'
        /** Without escapes and without the final star. */
        readonly text: string
        readonly isPrefix: boolean
        /** Whether it has a star at another place than its end. */
        readonly hasInnerStar: boolean
        /** The position of two unescaped dots that are not at the beginning of the text; -1 for none. */
        readonly dotsAt: number
      }
    | { readonly kind: 'quoted'; readonly text: string; readonly isClosed: boolean }
    | { readonly kind: 'regex'; readonly pattern: string }
  )

export type Token =
  | FieldToken
  | TextToken
  | (Span & { readonly kind: 'open' | 'close' | 'comma' | 'colon' | 'not' | 'and' | 'or' })

const BLANK = /\s/
const PUNCTUATION = { '(': 'open', ')': 'close', ',': 'comma', ':': 'colon' } as const
const KEYWORDS = { OR: 'or', AND: 'and', NOT: 'not' } as const
/** A backslash before one of these escapes it; before a letter or digit it is a plain backslash. */
const ESCAPABLE = /[\s!-/:-@[-`{-~]/
const ESCAPED = new RegExp(`\\\\${ESCAPABLE.source}`, 'g')
/** A name that needs no quotes, and may precede `>` and `<`; otherwise these are characters of a word, such as `a->b`. */
export const PLAIN_NAME = /^[\p{L}_$@](?:[\p{L}\p{N}_.$@/-]*[\p{L}\p{N}_])?$/u
/** Dashes that exclude nothing. */
const DASHES = /-+(?:\s|$)/y
const OPERATOR = /:|[<>]=?/y

/** Whether a text is a keyword, such as `OR`. */
export const isKeyword = (text: string): text is keyof typeof KEYWORDS =>
  Object.hasOwn(KEYWORDS, text)
const isPunctuation = (text: string): text is keyof typeof PUNCTUATION =>
  Object.hasOwn(PUNCTUATION, text)
/** @param char one character, '' at the end of the line */
const isBlank = (char: string): boolean => char === '' || BLANK.test(char)

/** Splits a line into tokens. It accepts any line; the parser reports faults. */
export function tokenize(line: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  /** The field whose value begins here. */
  let of: FieldToken | null = null
  /** The field of the value that ends here, which a comma continues. */
  let before: FieldToken | null = null
  while (at < line.length) {
    const char = line.charAt(at)
    if (isBlank(char)) {
      at += 1
      of = before = null
      continue
    }
    const token = readToken(line, at, of)
    tokens.push(token)
    at = token.end
    of = token.kind === 'field' ? token : token.kind === 'comma' ? before : null
    before = 'of' in token ? token.of : null
  }
  return tokens
}

function readToken(line: string, at: number, of: FieldToken | null): Token {
  const char = line.charAt(at)
  if (isPunctuation(char)) return { kind: PUNCTUATION[char], start: at, end: at + 1 }
  if (char === '"') return withOperator(line, readQuoted(line, at, of))
  if (char === '/') {
    const regex = readRegex(line, at, of)
    if (regex !== null) return regex
  }
  DASHES.lastIndex = at
  if (of === null && char === '-' && !DASHES.test(line))
    return { kind: 'not', start: at, end: at + 1 }
  return readBare(line, at, of)
}

function readQuoted(line: string, start: number, of: FieldToken | null): TextToken {
  let text = ''
  let at = start + 1
  for (; at < line.length && line.charAt(at) !== '"'; at += 1) {
    const isEscape = line.charAt(at) === '\\' && /["\\]/.test(line.charAt(at + 1))
    if (isEscape) at += 1
    text += line.charAt(at)
  }
  const isClosed = at < line.length
  return { kind: 'quoted', text, isClosed, of, start, end: isClosed ? at + 1 : at }
}

/** A quoted name is a field too: `"user id":42`. */
function withOperator(line: string, token: TextToken): Token {
  if (token.kind !== 'quoted' || token.of !== null || !token.isClosed) return token
  const operator = operatorAt(line, token.end)
  return operator === null ? token : toField(token.text, operator, token)
}

function operatorAt(line: string, at: number): FieldToken['operator'] | null {
  OPERATOR.lastIndex = at
  const [found] = OPERATOR.exec(line) ?? []
  return (found ?? null) as FieldToken['operator'] | null
}

const toField = (
  name: string,
  operator: FieldToken['operator'],
  { start, end }: Span,
): FieldToken => ({ kind: 'field', name, operator, start, end: end + operator.length })

/**
 * Reads `/pattern/`. The second slash must be the end of the clause, so that `/var/log` is a word.
 *
 * @returns null when it is not a regular expression
 */
function readRegex(line: string, start: number, of: FieldToken | null): TextToken | null {
  let pattern = ''
  let at = start + 1
  for (; at < line.length && line.charAt(at) !== '/'; at += 1) {
    if (line.charAt(at) === '\\') {
      at += 1
      if (line.charAt(at) !== '/') pattern += '\\'
    }
    pattern += line.charAt(at)
  }
  const next = line.charAt(at + 1)
  const isEnd = at < line.length && (isBlank(next) || next === ')' || next === ',')
  if (!isEnd || pattern === '') return null
  return { kind: 'regex', pattern, of, start, end: at + 1 }
}

/** Reads a word, a value, a keyword, or a name with its operator. */
function readBare(line: string, start: number, of: FieldToken | null): Token {
  const { text, end, stars } = scanBare(line, start, of !== null)
  const span = { start, end }
  const raw = line.slice(start, end)
  if (of === null) {
    const operator = operatorAt(line, end)
    if (operator !== null) return toField(text, operator, span)
    if (isKeyword(raw)) return { kind: KEYWORDS[raw], ...span }
  }
  const isEscapedKeyword = of === null && raw.startsWith('\\') && isKeyword(raw.slice(1))
  const isPrefix = stars.at(-1) === end - 1
  return {
    kind: 'bare',
    text: isPrefix ? text.slice(0, -1) : isEscapedKeyword ? raw.slice(1) : text,
    isPrefix,
    hasInnerStar: stars.length > (isPrefix ? 1 : 0),
    dotsAt: raw.replaceAll(ESCAPED, '_').indexOf('..', 1),
    of,
    ...span,
  }
}

interface Bare {
  /** Without escapes. */
  readonly text: string
  readonly end: number
  /** The positions of unescaped stars. */
  readonly stars: readonly number[]
}

function scanBare(line: string, start: number, isValue: boolean): Bare {
  const stars: number[] = []
  let text = ''
  let at = start
  for (; at < line.length; at += 1) {
    const char = line.charAt(at)
    const next = line.charAt(at + 1)
    if (char === '\\' && ESCAPABLE.test(next)) {
      at += 1
      text += next
      continue
    }
    if (isBlank(char) || char === '"' || isPunctuation(char)) break
    if (!isValue && (char === '<' || char === '>') && PLAIN_NAME.test(text)) break
    if (char === '*') stars.push(at)
    text += char
  }
  return { text, end: at, stars }
}
