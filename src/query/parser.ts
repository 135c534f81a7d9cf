import { EVERYTHING, allOf, anyOf, type Field, type Query, type ValueTest } from './ast.js'
import { SyntaxFault, type QueryFault } from './fault.js'
import { MAX_NAME, builtinLike, isBuiltinName, toField, typeOf, type FieldKind } from './fields.js'
import { tokenize, type FieldToken, type Span, type TextToken, type Token } from './lexer.js'
import { quoted } from './printer.js'
import { isCompared, reversedRange, toBound, toTextTest, toValueTest } from './values.js'

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
  const { query, fault, hints } = parser
  const helps = ({ position, length, suggestion }: QueryFault): boolean =>
    new Parser(line.slice(0, position) + suggestion + line.slice(position + length)).fault === null
  if (fault !== null)
    return { query: null, fault: helps(fault) ? fault : { ...fault, suggestion: null } }
  return { query, fault, hints: hints.filter(helps), faultOf: parser.faultOf }
}

/** Parses by recursive descent: alternatives of conjunctions of clauses. */
class Parser {
  readonly hints: QueryFault[] = []
  /** Every event, if there is a fault. */
  readonly query: Query = EVERYTHING
  readonly fault: QueryFault | null = null
  readonly #line: string
  #tokens: readonly Token[] = []
  /** Where each clause stands. */
  readonly #spans = new Map<Query, Span>()
  #at = 0
  #clauses = 0
  /** The parentheses that are not closed yet. */
  #open = 0

  constructor(line: string) {
    this.#line = line
    try {
      this.query = this.#parse()
    } catch (error) {
      if (!(error instanceof SyntaxFault)) throw error
      this.fault = error.fault
    }
  }

  #parse(): Query {
    if (this.#line.length > MAX_LINE) {
      const rest = { start: MAX_LINE, end: this.#line.length }
      throw new SyntaxFault(rest, `a query has at most ${MAX_LINE} characters`)
    }
    this.#tokens = tokenize(this.#line)
    if (this.#tokens.length === 0) return EVERYTHING
    const query = this.#alternatives(0)
    const rest = this.#next
    if (rest !== undefined) throw strayed(rest)
    // The printed form has parentheses around everything nested, so it may be deeper than the line.
    if (depthOf(query) > MAX_DEPTH) throw tooDeep({ start: 0, end: this.#line.length })
    return query
  }

  readonly faultOf = (clause: Query, message: string): QueryFault | null => {
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
      if (this.#operand === undefined) throw new SyntaxFault(or, 'there is nothing after OR', '')
      nodes.push(this.#conjunction(depth))
    }
    return anyOf(nodes)
  }

  #conjunction(depth: number): Query {
    const nodes: Query[] = []
    for (;;) {
      const token = this.#next
      if (token?.kind === 'and') {
        this.#at += 1
        if (nodes.length === 0 || this.#operand === undefined)
          throw new SyntaxFault(token, 'AND stands between two clauses', '')
      }
      const operand = this.#operand
      if (operand !== undefined) nodes.push(this.#clause(operand, depth))
      else if (token !== undefined && nodes.length === 0) throw strayed(token)
      else return allOf(nodes)
    }
  }

  /** The token with which a clause begins here, even a wrong one. */
  get #operand(): Token | undefined {
    const token = this.#next
    return token?.kind === 'or' || token?.kind === 'and' || token?.kind === 'close'
      ? undefined
      : token
  }

  #clause(token: Token, depth: number): Query {
    if (depth > MAX_DEPTH) throw tooDeep(token)
    this.#at += 1
    if ('of' in token || token.kind === 'field') {
      const query = 'of' in token ? this.#text(token) : this.#field(token)
      return this.#placed(query, { start: token.start, end: this.#end })
    }
    if (token.kind === 'open') return this.#group(token, depth)
    if (token.kind === 'comma')
      throw this.#asAssignment(this.#tokens[this.#at - 2]) ?? new SyntaxFault(token, COMMA, ' ')
    if (token.kind === 'colon') throw new SyntaxFault(token, 'there is no field before the colon')
    const operand = this.#operand
    if (operand === undefined) throw new SyntaxFault(token, 'there is nothing to exclude', '')
    return { kind: 'not', node: this.#clause(operand, depth + 1) }
  }

  #placed(query: Query, { start, end }: Span): Query {
    this.#spans.set(query, { start, end })
    return query
  }

  #group(open: Token, depth: number): Query {
    const { start } = open
    this.#open += 1
    if (this.#next?.kind === 'close') {
      const span = { start, end: this.#next.end }
      throw new SyntaxFault(span, 'there is nothing between the parentheses', '')
    }
    const query = this.#alternatives(depth + 1)
    if (this.#next === undefined) {
      const span = { start, end: this.#line.length }
      throw new SyntaxFault(span, 'this ( has no )', this.#textOf(span) + ')'.repeat(this.#open))
    }
    this.#at += 1
    this.#open -= 1
    return query
  }

  #textOf({ start, end }: Span): string {
    return this.#line.slice(start, end)
  }

  #text(token: TextToken): Query {
    this.#check(token)
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
  #asAssignment(token: Token | undefined): SyntaxFault | null {
    if (token?.kind !== 'bare') return null
    const { start } = token
    const found = ASSIGNMENT.exec(this.#textOf(token))
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
    const name = this.#tokens[this.#at - 2]
    const value = this.#next
    if (name?.kind !== 'bare' || value?.kind !== 'bare') return
    const span = { start: name.start, end: value.end }
    const text = this.#textOf(name) + token.text.replace(/^==?$/, ':') + this.#textOf(value)
    throw new SyntaxFault(span, 'a comparison is written without blanks', text)
  }

  #field(token: FieldToken): Query {
    const field = this.#named(token, token.name)
    this.#hint(this.#asMark(token) ?? this.#asBuiltin(token, token.name))
    this.#hint(this.#asUrl(token))
    const { operator } = token
    if (operator !== ':') {
      const value = this.#value(token, token)
      this.#checkEnd(token, value)
      return { kind: 'compare', field, operator, value: toBound(value, field, token) }
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
    const text = this.#textOf(value)
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
    if (token.kind === 'regex' || (token.kind === 'bare' && token.isPrefix))
      throw new SyntaxFault(token, 'has takes the name of a field')
    this.#hint(this.#asBuiltin(token, token.text))
    const field = this.#named(token, token.text)
    if (!HAS_NONE.includes(typeOf(field).kind)) return { kind: 'has', field }
    throw new SyntaxFault(token, `${field.name} is not a field that an event has`)
  }

  /** The values of a list, separated by commas without blanks. */
  #values(field: FieldToken): readonly TextToken[] {
    let value = this.#value(field, field)
    const values = [value]
    for (let token = this.#next; token?.kind === 'comma'; token = this.#next) {
      if (token.start !== value.end) break
      this.#at += 1
      value = this.#value(field, token)
      values.push(value)
    }
    this.#checkEnd(field, value)
    return values
  }

  #value(field: FieldToken, before: Token): TextToken {
    const token = this.#next
    const isValue = token !== undefined && token.start === before.end && 'of' in token
    if (!isValue) throw this.#missingValue(field, before)
    this.#at += 1
    this.#check(token)
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
    const meant = this.#textOf(before) + this.#textOf(token)
    return new SyntaxFault(span, `${message}: a blank ends the clause`, meant)
  }

  /** A value with a colon, a quote or a parenthesis within needs quotes. */
  #checkEnd(field: FieldToken, value: TextToken): void {
    const token = this.#next
    if (token?.start !== value.end || token.kind === 'close') return
    const rest = this.#line.slice(value.end)
    const span = { start: value.start, end: value.end + rest.search(/[\s)]|$/) }
    const before = this.#tokens[this.#at - 2]
    const isList = before?.kind === 'comma' && token.kind === 'colon'
    if (isList && isBuiltinName(this.#textOf(value))) throw new SyntaxFault(before, COMMA, ' ')
    const meant = isList || value.kind === 'quoted' ? null : quoted(this.#textOf(span))
    throw (
      this.#asUrl(field) ?? new SyntaxFault(span, 'a value with ( ) : , or " needs quotes', meant)
    )
  }

  /**
   * Finds `https://host/path`, which looks like a field but is a URL.
   *
   * @returns null for other fields
   */
  #asUrl({ start }: FieldToken): SyntaxFault | null {
    const [url] = /^[a-z][a-z\d+-]*:\/\/[^\s)]+/i.exec(this.#line.slice(start)) ?? []
    if (url === undefined) return null
    return new SyntaxFault({ start, end: start + url.length }, 'a URL needs quotes', quoted(url))
  }

  /** Counts a clause or value. */
  #check(token: TextToken): void {
    this.#clauses += 1
    if (this.#clauses > MAX_CLAUSES)
      throw new SyntaxFault(token, `a query has at most ${MAX_CLAUSES} clauses and values`)
    if (token.kind === 'quoted' && !token.isClosed)
      throw new SyntaxFault(
        token,
        'this quote is not closed',
        quoted(token.text) + ')'.repeat(this.#open),
      )
  }
}

const COMMA = 'a comma stands between the values of a field only'

/** The fault of an OR or a closing parenthesis. */
const strayed = (token: Token): SyntaxFault =>
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
