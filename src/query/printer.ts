import type { Field, Query, TextTest, ValueTest } from './ast.js'
import { isNumber, nameOf, toSeverity, typeOf } from './fields.js'
import { PLAIN_NAME, isKeyword } from './lexer.js'

/** Converts a query to a line that parses to the same query. */
export const printQuery = (query: Query): string =>
  query.kind === 'and' && query.nodes.length === 0 ? '' : print(query)

function print(query: Query): string {
  switch (query.kind) {
    case 'and':
      return query.nodes.length === 0 ? '*' : query.nodes.map(printOperand).join(' ')
    case 'or':
      return query.nodes.length === 0 ? '-*' : query.nodes.map(printOperand).join(' OR ')
    case 'not':
      return `-${printOperand(query.node)}`
    case 'text':
      return printTextTest(query.test, true)
    case 'field':
      return `${printName(query.field)}:${query.tests.map((test) => printValue(test, query.field)).join(',')}`
    case 'compare':
      return `${printName(query.field)}${query.operator}${query.value}`
    case 'has':
      return `has:${printName(query.field)}`
  }
}

const printOperand = (query: Query): string => {
  const isList = (query.kind === 'and' || query.kind === 'or') && query.nodes.length > 0
  return isList ? `(${print(query)})` : print(query)
}

export function printName(field: Field): string {
  const name = nameOf(field)
  return PLAIN_NAME.test(name) ? name : quoted(name)
}

/** @param isClause whether it is a clause of its own, where minus, comparisons and keywords have a meaning */
function printTextTest(test: TextTest, isClause: boolean): string {
  switch (test.kind) {
    case 'word':
      return isClause && isKeyword(test.text) ? `\\${test.text}` : escaped(test.text, isClause)
    case 'prefix':
      return `${escaped(test.text, isClause)}*`
    case 'phrase':
      return quoted(test.text)
    case 'regex':
      return `/${test.pattern.replaceAll(/\\[^]|\//gu, (part) => (part === '/' ? '\\/' : part))}/`
  }
}

export function printValue(test: ValueTest, field: Field): string {
  switch (test.kind) {
    case 'equal':
      return isPlain(test.text, field) ? test.text : quoted(test.text)
    case 'range':
      return `${test.from}..${test.to}`
    case 'word':
    case 'prefix':
    case 'phrase':
    case 'regex':
      return printTextTest(test, false)
  }
}

/** Whether a value needs no quotes. */
function isPlain(text: string, field: Field): boolean {
  if (text === '' || /[\s():,"*\\]|^\//.test(text)) return false
  if (!text.includes('..')) return true
  // It could be taken for a range.
  const { kind } = typeOf(field)
  const ends = text.split('..')
  return !ends.some((end) => isNumber(end) || (kind === 'severities' && toSeverity(end) !== null))
}

export const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`

function escaped(text: string, isClause: boolean): string {
  const most = text.replaceAll(isClause ? /[\s():,"*\\<>]/g : /[\s():,"*\\]/g, '\\$&')
  const isMisread = text.startsWith('/') || (isClause && text.startsWith('-'))
  return isMisread ? `\\${most}` : most
}
