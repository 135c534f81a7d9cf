/*
 * Converts any clause of a query into an SQL condition for each row of `events`. The condition is
 * never NULL, so that its negation is its complement.
 */

import type { Comparison, Query, ValueTest } from '../query/ast.js'
import { attributeCondition } from './attribute-condition.js'
import type { Bind } from './bind.js'
import { severitiesOf, type Redirects } from './filter.js'
import { anywhere, inMessage } from './text-condition.js'
import { toTerm } from './terms.js'

export interface RowContext {
  readonly bind: Bind
  /** The end of the time range, which `new` looks back from. */
  readonly endMs: number
  /** The arrival of each row, from which `new` looks back when rows are selected by arrival. */
  readonly arrival?: Arrival
  readonly redirects: Redirects
  /** A condition that few events meet; only these are of interest. Default: the time range. */
  readonly among?: string
}

export interface Arrival {
  /** SQL of a DateTime. */
  readonly sql: string
  /** No row arrived before it. */
  readonly fromMs: number
}

type FieldClause = Extract<Query, { kind: 'field' }>
type CompareClause = Extract<Query, { kind: 'compare' }>

export function rowCondition(query: Query, context: RowContext): string {
  if ('field' in query && query.field.kind === 'attribute')
    return attributeCondition(query, context.bind)
  switch (query.kind) {
    case 'and':
    case 'or':
      return joined(query, context)
    case 'not':
      return `(NOT ${rowCondition(query.node, context)})`
    case 'text':
      return `(${anywhere(toTerm(query.test), context.bind)})`
    case 'field':
      return `(${fieldCondition(query, context)})`
    case 'compare':
      return `(${compareCondition(query, context)})`
    case 'has':
      return HAS[query.field.name] ?? '1'
  }
}

function joined(
  { kind, nodes }: Extract<Query, { kind: 'and' | 'or' }>,
  context: RowContext,
): string {
  if (nodes.length === 0) return kind === 'and' ? '1' : '0'
  const conditions = nodes.map((node) => rowCondition(node, context))
  return `(${conditions.join(kind === 'and' ? ' AND ' : ' OR ')})`
}

/** A column, and the form in which its texts are compared. */
interface TextColumn {
  readonly sql: string
  readonly isAnyCase: boolean
}

const TEXTS: Readonly<Record<string, TextColumn>> = {
  source: { sql: 'source', isAnyCase: false },
  environment: { sql: 'environment', isAnyCase: false },
  host: { sql: 'host', isAnyCase: false },
  priority: { sql: 'priority', isAnyCase: false },
  type: { sql: 'type', isAnyCase: false },
  trace: { sql: 'trace_id', isAnyCase: true },
  span: { sql: 'span_id', isAnyCase: true },
}

type Write = (clause: FieldClause, context: RowContext) => string

const FIELDS: Readonly<Record<string, Write>> = {
  severity: (clause, { bind }) => `severity IN ${bind('Array(String)', severitiesOf(clause))}`,
  template: ({ tests }, { bind }) =>
    `template_id IN ${bind('Array(UInt64)', textsIn(tests).map(toTemplateNumber))}`,
  message: ({ tests }, { bind }) =>
    tests.map((test) => `(${messageCondition(test, bind)})`).join(' OR '),
  id: ({ tests }, { bind }) => numberTests('id', tests, bind),
  count: ({ tests }, { bind, among }) =>
    countCondition((count) => numberTests(count, tests, bind), among),
  new: ({ tests }, context) =>
    textsIn(tests)
      .map((span) => newCondition(span, context))
      .join(' OR '),
}

function fieldCondition(clause: FieldClause, context: RowContext): string {
  const { name } = clause.field
  if (clause.tests.length === 0) return '0'
  const column = TEXTS[name]
  if (column !== undefined) return textsCondition(column, clause.tests, context.bind)
  const write = FIELDS[name]
  if (write === undefined) throw new Error(`bug: ${name} has no values here`)
  return write(clause, context)
}

function compareCondition(clause: CompareClause, { bind, among }: RowContext): string {
  const { field, operator, value } = clause
  if (field.name === 'severity') return `severity IN ${bind('Array(String)', severitiesOf(clause))}`
  const compared = (number: string): string => compareNumber(number, operator, value, bind)
  if (field.name === 'id') return compared('id')
  if (field.name === 'count') return countCondition(compared, among)
  throw new Error(`bug: ${field.name} has no order`)
}

export const toTemplateNumber = (id: string): bigint => BigInt(`0x${id}`)

const textsIn = (tests: readonly ValueTest[]): readonly string[] =>
  tests.flatMap((test) => (test.kind === 'equal' ? [test.text] : []))

function textsCondition(
  { sql, isAnyCase }: TextColumn,
  tests: readonly ValueTest[],
  bind: Bind,
): string {
  const written = (text: string): string => (isAnyCase ? text.toLowerCase() : text)
  const column = isAnyCase ? `lowerUTF8(${sql})` : sql
  const equal = textsIn(tests).map(written)
  const conditions = tests.flatMap((test) => {
    if (test.kind === 'prefix')
      return [`startsWith(${column}, ${bind('String', written(test.text))})`]
    return test.kind === 'regex' ? [`match(${sql}, ${bind('String', test.pattern)})`] : []
  })
  if (equal.length > 0) conditions.unshift(`${column} IN ${bind('Array(String)', equal)}`)
  return conditions.join(' OR ')
}

function messageCondition(test: ValueTest, bind: Bind): string {
  if (test.kind === 'equal' || test.kind === 'range')
    throw new Error(`bug: a message is searched, and not ${test.kind}`)
  return inMessage(toTerm(test), bind)
}

const compareNumber = (column: string, operator: Comparison, value: string, bind: Bind): string =>
  `${column} ${operator} ${bind('Int64', Number(value))}`

function numberTests(column: string, tests: readonly ValueTest[], bind: Bind): string {
  const conditions = tests.map((test) => {
    if (test.kind !== 'range') return null
    const [from, to] = [test.from, test.to].map((end) => bind('Int64', Number(end)))
    return `${column} BETWEEN ${from} AND ${to}`
  })
  const equal = textsIn(tests).map(Number)
  if (equal.length > 0) conditions.unshift(`${column} IN ${bind('Array(Int64)', equal)}`)
  return conditions.filter((condition) => condition !== null).join(' OR ')
}

/** The repeats; they may arrive a day before their event. */
const REPEATS =
  'FROM event_occurrences WHERE arrival >= ' +
  'toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000)))'
const IN_RANGE =
  'events.ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND events.ts < fromUnixTimestamp64Milli({to_ms:Int64})'

/** A condition on the number of occurrences: that of the event's row plus its repeats. */
function countCondition(holds: (count: string) => string, among?: string): string {
  const repeats =
    among === undefined ? REPEATS : `${REPEATS} AND id IN (SELECT id FROM events WHERE ${among})`
  return (
    `(id IN (SELECT events.id FROM events INNER JOIN (SELECT id, sum(n) AS repeats ${repeats} GROUP BY id) AS repeated ` +
    `ON events.id = repeated.id WHERE ${among ?? IN_RANGE} AND (${holds('(events.n + repeated.repeats)')}))` +
    ` OR ((${holds('n')}) AND id NOT IN (SELECT id ${repeats})))`
  )
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** SQL of a template's number, or of its target when it was merged. */
export function mapped(template: string, redirects: Redirects, bind: Bind): string {
  const ids = (names: readonly string[]): string =>
    bind('Array(UInt64)', names.map(toTemplateNumber))
  const from = ids(redirects.map((one) => one.from))
  const into = ids(redirects.map((one) => one.into))
  return `transform(${template}, ${from}, ${into}, ${template})`
}

function newCondition(span: string, { bind, endMs, arrival, redirects }: RowContext): string {
  const lengthMs = Number(span.slice(0, -1)) * (UNIT_MS[span.slice(-1)] ?? 0)
  const since = bind('Int64', Math.max(0, Math.floor((arrival?.fromMs ?? endMs) - lengthMs)))
  const root = mapped('template_id', redirects, bind)
  const news =
    `SELECT ${root} AS root, toUnixTimestamp(min(first_ts)) AS first FROM template_totals WHERE template_id != 0 ` +
    `GROUP BY root HAVING min(first_ts) >= fromUnixTimestamp64Milli(${since})`
  if (arrival === undefined) return `${root} IN (SELECT root FROM (${news}))`
  const lists = `(SELECT (groupArray(root), groupArray(first)) FROM (${news}))`
  const first = `transform(${root}, tupleElement(${lists}, 1), tupleElement(${lists}, 2), toUInt32(0))`
  return `${first} + ${bind('Int64', lengthMs / 1000)} >= toUnixTimestamp(${arrival.sql})`
}

/** The conditions of `has` for fields that an event may lack; every event has the others. */
const HAS: Readonly<Record<string, string>> = {
  source: 'notEmpty(source)',
  environment: 'notEmpty(environment)',
  host: 'notEmpty(host)',
  template: 'template_id != 0',
  trace: 'notEmpty(trace_id)',
  span: 'notEmpty(span_id)',
}
