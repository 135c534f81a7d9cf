import { EVERYTHING, allOf, anyOf, type Field, type Query, type ValueTest } from './ast.js'
import { SyntaxFault, type QueryFault } from './fault.js'
import { MAX_NAME, builtinLike, isBuiltinName, toField, typeOf, type FieldKind } from './fields.js'
import { tokenize, type FieldToken, type Span, type TextToken, type Token } from './lexer.js'
import { quoted } from './printer.js'
import {
  isCompared,
  isComparison,
  reversedRange,
  toBound,
  toTextTest,
  toValueTest,
} from './values.js'

export const MAX_LINE = 2000
/** Clauses, and further values of their lists. */
export const MAX_CLAUSES = 200
/** Parentheses and negations within each other. */
export const MAX_DEPTH = 20

export type Parsed =
  | {
      readonly query: Query
      readonly fault: null
      /** Hints about what may have been meant otherwise, such as an attribute with a name like a built-in field. */
      readonly hints: readonly QueryFault[]
      /** A fault of one of its clauses; null for a clause that is not in the line. */
      readonly faultOf: (clause: Query, message: string) => QueryFault | null
    }
  | { readonly query: null; readonly fault: QueryFault }

/** Parses a line; it never throws. An empty line is the query for every event. */
export function parseQuery(line: string): Parsed {
  const parser = new Parser(line)
  try {
    const query = parser.parse()
    const faultOf = (clause: Query, message: string) => parser.faultOf(clause, message)
    return { query, fault: null, hints: parser.hints, faultOf }
  } catch (error) {
    if (error instanceof SyntaxFault) return { query: null, fault: error.fault }
    throw error
  }
}

/** Parses by recursive descent: alternatives of conjunctions of clauses. */
class Parser {
  readonly hints: QueryFault[] = []
  readonly #line: string
  readonly #tokens: readonly Token[]
  /** Where each clause stands. */
  readonly #spans = new Map<Query, Span>()
  #at = 0
  #clauses = 0

  constructor(line: string) {
    this.#line = line
    this.#tokens = line.length > MAX_LINE ? [] : tokenize(line)
  }

  parse(): Query {
    if (this.#line.length > MAX_LINE) {
      const rest = { start: MAX_LINE, end: this.#line.length }
      throw new SyntaxFault(rest, `a query has at most ${MAX_LINE} characters`)
    }
    if (this.#tokens.length === 0) return EVERYTHING
    const query = this.#alternatives(0)
    const rest = this.#next
    if (rest !== undefined) throw new SyntaxFault(rest, 'this ) has no (', '')
    // The printed form has parentheses around everything nested, so it may be deeper than the line.
    if (depthOf(query) > MAX_DEPTH) throw tooDeep({ start: 0, end: this.#line.length })
    return query
  }

  faultOf(clause: Query, message: string): QueryFault | null {
    const span = this.#spans.get(clause)
    return span === undefined ? null : new SyntaxFault(span, message).fault
  }

  get #next(): Token | undefined {
    return this.#tokens[this.#at]
  }

  /** The end of what was read so far. */
  get #end(): number {
    return this.#tokens[this.#at - 1]?.end ?? 0
  }

  #alternatives(depth: number): Query {
    const nodes = [this.#conjunction(depth)]
    while (this.#next?.kind === 'or') {
      const or = this.#next
      this.#at += 1
      if (!this.#isOperand()) throw new SyntaxFault(or, 'there is nothing after OR', '')
      nodes.push(this.#conjunction(depth))
    }
    return anyOf(nodes)
  }

  #conjunction(depth: number): Query {
    const nodes: Query[] = []
    for (let before: Token | null = null; ;) {
      const token = this.#next
      if (token?.kind === 'and') {
        this.#at += 1
        const isBetween = nodes.length > 0 && before === null && this.#isOperand()
        if (!isBetween) throw new SyntaxFault(token, 'AND stands between two clauses', '')
        before = token
        continue
      }
      if (!this.#isOperand()) {
        if (token !== undefined && nodes.length === 0) throw emptiness(token)
        return allOf(nodes)
      }
      nodes.push(this.#clause(depth))
      before = null
    }
  }

  /** Whether a clause begins here, even a wrong one. */
  #isOperand(): boolean {
    const kind = this.#next?.kind
    return kind !== undefined && kind !== 'or' && kind !== 'and' && kind !== 'close'
  }

  #clause(depth: number): Query {
    const token = this.#next
    if (token === undefined || !this.#isOperand()) throw new Error('bug: there is no clause here')
    if (depth > MAX_DEPTH) throw tooDeep(token)
    this.#at += 1
    if ('of' in token || token.kind === 'field') {
      const query = 'of' in token ? this.#text(token) : this.#field(token)
      return this.#placed(query, { start: token.start, end: this.#end })
    }
    if (token.kind === 'open') return this.#group(token, depth)
    if (token.kind === 'comma')
      throw new SyntaxFault(token, 'a comma stands between the values of a field only', ' ')
    if (token.kind === 'colon') throw new SyntaxFault(token, 'there is no field before the colon')
    if (!this.#isOperand()) throw new SyntaxFault(token, 'there is nothing to exclude', '')
    return { kind: 'not', node: this.#clause(depth + 1) }
  }

  #placed(query: Query, { start, end }: Span): Query {
    this.#spans.set(query, { start, end })
    return query
  }

  #group(open: Token, depth: number): Query {
    if (this.#next?.kind === 'close') {
      const span = { start: open.start, end: this.#next.end }
      throw new SyntaxFault(span, 'there is nothing between the parentheses', '')
    }
    const rest = this.#line.slice(open.start)
    const span = { start: open.start, end: this.#line.length }
    if (this.#next === undefined) throw new SyntaxFault(span, 'this ( has no )', '')
    const query = this.#alternatives(depth + 1)
    if (this.#next === undefined) throw new SyntaxFault(span, 'this ( has no )', `${rest})`)
    this.#at += 1
    return query
  }

  #text(token: TextToken): Query {
    this.#count(token)
    this.#checkClosed(token)
    if (isStar(token)) return EVERYTHING
    this.#checkSpaces(token)
    this.#hint(this.#asAssignment(token) ?? this.#asMark(token))
    return { kind: 'text', test: toTextTest(token) }
  }

  /**
   * Finds `severity=error`, which looks like a field but is a word.
   *
   * @returns null for other texts
   */
  #asAssignment({ kind, start, end }: Token): SyntaxFault | null {
    const found = kind === 'bare' ? ASSIGNMENT.exec(this.#line.slice(start, end)) : null
    const [head = '', name = '', isNot] = found ?? []
    if (!isBuiltinName(name)) return null
    const field = `${isNot === undefined ? '' : '-'}${name}:`
    return new SyntaxFault(
      { start, end: start + head.length },
      `${head} is a word, and ${field} the field`,
      field,
    )
  }

  /** `count > 10` reads like a comparison, `host = web-1` like a field. */
  #checkSpaces(token: TextToken): void {
    if (token.kind !== 'bare' || !/^[<>=]=?$/.test(token.text)) return
    const [name, , value] = this.#tokens.slice(Math.max(0, this.#at - 2), this.#at + 1)
    if (name?.kind !== 'bare' || value?.kind !== 'bare') return
    const span = { start: name.start, end: value.end }
    const text = name.text + token.text.replace(/^==?$/, ':') + value.text
    throw new SyntaxFault(span, 'a comparison is written without blanks', text)
  }

  #field(token: FieldToken): Query {
    const field = this.#named(token, token.name)
    this.#hint(this.#asMark(token) ?? this.#asBuiltin(token, token.name))
    this.#hint(this.#asUrl(token))
    if (isComparison(token.operator)) {
      const value = this.#value(token, token)
      this.#checkEnd(value)
      return {
        kind: 'compare',
        field,
        operator: token.operator,
        value: toBound(value, field, token),
      }
    }
    const values = this.#values(token)
    const [first] = values
    if (values.length === 1 && first !== undefined) this.#checkOrder(token, first, field)
    if (typeOf(field).kind === 'fields')
      return anyOf(values.map((value) => this.#placed(this.#has(value), value)))
    if (values.length === 1 && first !== undefined && isStar(first)) return { kind: 'has', field }
    const tests = values.map((value): ValueTest => {
      if (isStar(value)) throw new SyntaxFault(value, 'a * alone is no value of a list')
      const test = toValueTest(value, field)
      this.#hint(reversedRange(value, test))
      return test
    })
    return { kind: 'field', field, tests }
  }

  /** `count:>10` reads like a comparison; an attribute can have such a text. */
  #checkOrder({ start }: FieldToken, value: TextToken, field: Field): void {
    const text = this.#line.slice(value.start, value.end)
    if (!isCompared(text, field)) return
    const meant = this.#line.slice(start, value.start - 1) + text
    const span = { start, end: value.end }
    const fault = new SyntaxFault(span, `a comparison is written ${meant}`, meant)
    if (field.kind === 'builtin') throw fault
    this.#hint(fault)
  }

  #hint(meant: SyntaxFault | null): void {
    if (meant !== null) this.hints.push(meant.fault)
  }

  /** Finds `!a`, which looks like an exclusion but is the word `a`, and `!a:b`, which tests an attribute `!a`. */
  #asMark({ start }: Token): SyntaxFault | null {
    if (this.#line[start] !== '!') return null
    return new SyntaxFault({ start, end: start + 1 }, '! excludes nothing; - does', '-')
  }

  #named(token: Token, name: string): Field {
    if (name === '') throw new SyntaxFault(token, 'the name of the field is missing')
    const field = toField(name)
    if (field.name.length <= MAX_NAME) return field
    throw new SyntaxFault(token, `the name of a field has at most ${MAX_NAME} characters`)
  }

  /** Finds `level:error`, which looks like a built-in field but tests an attribute. */
  #asBuiltin({ start }: Token, name: string): SyntaxFault | null {
    const field = toField(name)
    const isPlain = field.kind === 'attribute' && this.#line.startsWith(field.name, start)
    const meant = isPlain ? builtinLike(name) : null
    if (meant === null) return null
    const message = `${name} is an attribute; there is a built-in field ${meant}`
    return new SyntaxFault({ start, end: start + name.length }, message, meant)
  }

  #has(token: TextToken): Query {
    if (token.kind === 'regex' || isStar(token) || (token.kind === 'bare' && token.isPrefix))
      throw new SyntaxFault(token, 'has takes the name of a field')
    this.#hint(this.#asBuiltin(token, token.text))
    const field = this.#named(token, token.text)
    if (!HAS_NONE.includes(typeOf(field).kind)) return { kind: 'has', field }
    throw new SyntaxFault(token, `${field.name} is not a field that an event has`)
  }

  /** The values of a list, separated by commas without blanks. */
  #values(field: FieldToken): readonly TextToken[] {
    const values = [this.#value(field, field)]
    for (let token = this.#next; token?.kind === 'comma'; token = this.#next) {
      if (token.start !== values.at(-1)?.end) break
      this.#at += 1
      values.push(this.#value(field, token))
    }
    this.#checkEnd(values.at(-1))
    return values
  }

  #value(field: FieldToken, before: Token): TextToken {
    const token = this.#next
    const isValue = token !== undefined && token.start === before.end && 'of' in token
    if (!isValue) throw this.#missingValue(field, before)
    this.#at += 1
    this.#count(token)
    this.#checkClosed(token)
    return token
  }

  #missingValue(field: FieldToken, before: Token): SyntaxFault {
    const token = this.#next
    if (token?.kind === 'open' && token.start === before.end)
      return new SyntaxFault(token, `several values are written ${field.name}:a,b`)
    const message =
      before.kind === 'comma'
        ? 'a value is missing after the comma'
        : `a value of ${field.name} is missing`
    if (token === undefined || !('of' in token)) return new SyntaxFault(before, message)
    const span = { start: before.start, end: token.end }
    const pieces = [before, token].map(({ start, end }) => this.#line.slice(start, end))
    return new SyntaxFault(span, `${message}: a blank ends the clause`, pieces.join(''))
  }

  /** A value with a colon, a quote or a parenthesis within needs quotes. */
  #checkEnd(value: TextToken | undefined): void {
    const token = this.#next
    if (value === undefined || token === undefined || token.start !== value.end) return
    if (token.kind === 'close') return
    const [rest = ''] = /^[^\s)]*/.exec(this.#line.slice(value.start)) ?? []
    const span = { start: value.start, end: value.start + rest.length }
    const message = 'a value with ( ) : , or " needs quotes'
    throw (
      (value.of === null ? null : this.#asUrl(value.of)) ??
      new SyntaxFault(span, message, quoted(rest.replaceAll('"', '')))
    )
  }

  /**
   * Finds `https://host/path`, which looks like a field but is a URL.
   *
   * @returns null for other fields
   */
  #asUrl({ name, start }: FieldToken): SyntaxFault | null {
    const [url] = /^[a-z][a-z\d+-]*:\/\/[^\s)]+/i.exec(this.#line.slice(start)) ?? []
    if (url === undefined || isBuiltinName(name)) return null
    return new SyntaxFault({ start, end: start + url.length }, 'a URL needs quotes', quoted(url))
  }

  #checkClosed(token: TextToken): void {
    if (token.kind !== 'quoted' || token.isClosed) return
    throw new SyntaxFault(token, 'this quote is not closed', quoted(token.text))
  }

  #count(token: Token): void {
    this.#clauses += 1
    if (this.#clauses > MAX_CLAUSES)
      throw new SyntaxFault(token, `a query has at most ${MAX_CLAUSES} clauses and values`)
  }
}

/** The fault of a missing clause before a token. */
const emptiness = (token: Token): SyntaxFault =>
  new SyntaxFault(token, token.kind === 'or' ? 'there is nothing before OR' : 'this ) has no (', '')

const tooDeep = (span: { readonly start: number; readonly end: number }): SyntaxFault =>
  new SyntaxFault(span, `a query is nested at most ${MAX_DEPTH} times`)

function depthOf(query: Query): number {
  if (query.kind === 'not') return 1 + depthOf(query.node)
  if (query.kind !== 'and' && query.kind !== 'or') return 0
  return 1 + Math.max(0, ...query.nodes.map(depthOf))
}

/** The kinds of `new` and `has`, which are no values of an event. */
const HAS_NONE: readonly FieldKind[] = ['durations', 'fields']

/** The operators of other languages for `:`. */
const ASSIGNMENT = /^([a-z]+)(?:(!)=|==?)/

/** `*` alone: any event, or any value. */
const isStar = (token: TextToken): boolean =>
  token.kind === 'bare' && token.text === '' && token.isPrefix && !token.hasInnerStar
