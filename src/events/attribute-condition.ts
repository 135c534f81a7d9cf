/*
 * Conditions on attributes, which are paths into `tags`: the names on the way to a value, joined by dots. `events` has the paths
 * of a row and their values as JSON, as `model/stored-tags.ts` describes. A value is compared as its text. A path that is there
 * several times (a list, or a name with dots beside the same path) matches when one of its values does.
 */

import { shortestNumber } from '../model/stored-tags.js'
import type { Comparison, Query, ValueTest } from '../query/ast.js'
import type { Bind } from './bind.js'

export type AttributeClause = Extract<Query, { kind: 'field' | 'compare' | 'has' }>

/** The reason of a corrected priority is listed as an attribute, but stored in a column. */
const REASON = 'correction_reason'
/** The reason as JSON, escaped like JavaScript does. */
const REASON_JSON = String.raw`replaceAll(toJSONString(${REASON}), '\\/', '/')`
const NAMES = String.raw`splitByChar('\x01', attribute_names)`
const VALUES = String.raw`splitByChar('\x01', attribute_values)`

/** @returns an SQL condition on a row of `events` */
export function attributeCondition(clause: AttributeClause, bind: Bind): string {
  const path = clause.field.name
  const own = path === REASON ? (test: string) => ` OR (notEmpty(${REASON})${test})` : () => ''
  if (clause.kind === 'has') return `(${isNamed(path, bind)}${own('')})`
  const test = writeTest(clause, bind)
  const holds = `arrayExists((n, v) -> n = ${bind('String', path)} AND (${test('v')}), ${NAMES}, ${VALUES})`
  return `((${hasPath(path, bind)} AND ${holds})${own(` AND (${test(REASON_JSON)})`)})`
}

/** @returns SQL of an attribute's text in a row of `events`; NULL where the event has none, the first where it has several */
export function attributeText(path: string, bind: Bind): string {
  const text = textOf(firstValue(path, bind))
  const own = `if(${hasPath(path, bind)}, ${text}, NULL)`
  return path === REASON ? `if(notEmpty(${REASON}), ${REASON}, ${own})` : own
}

/** @returns SQL of an attribute's number in a row of `events`; NULL where its text is no number */
export const attributeNumber = (path: string, bind: Bind): string =>
  path === REASON ? "CAST(NULL, 'Nullable(Float64)')" : numberOf(firstValue(path, bind))

/**
 * The condition of a clause that indexes serve: by_attribute when the values are listed, by_attribute_names for others.
 *
 * @returns null for a clause that no index serves
 */
export function indexedAttribute(clause: Query, bind: Bind): string | null {
  if (!isAttributeClause(clause) || clause.field.name === REASON) return null
  const path = clause.field.name
  if (clause.kind === 'has') return isNamed(path, bind)
  const texts = listedTexts(clause)
  if (texts === null) return hasPath(path, bind)
  const name = bind('String', path)
  const hashes = texts.map(
    (text) =>
      `cityHash64(${name}, ${unquoted(bind('String', quotedJson(shortestNumber(text) ?? text)))})`,
  )
  const all = `arrayMap((name, value) -> cityHash64(name, ${unquoted('value')}), ${NAMES}, ${VALUES})`
  return `hasAny(${all}, [${hashes.join(', ')}])`
}

/** Whether the values of an attribute are listed, so that an index finds them. */
export const isListedAttribute = (clause: Query): boolean =>
  isAttributeClause(clause) && clause.field.name !== REASON && listedTexts(clause) !== null

const isAttributeClause = (clause: Query): clause is AttributeClause =>
  'field' in clause && clause.field.kind === 'attribute'

function listedTexts(clause: AttributeClause): readonly string[] | null {
  if (clause.kind !== 'field') return null
  const texts = clause.tests.map((test) => (test.kind === 'equal' ? test.text : null))
  return texts.length > 0 && texts.every((text) => text !== null) ? texts : null
}

const hasPath = (path: string, bind: Bind): string => `has(${NAMES}, ${bind('String', path)})`

/** The path itself, or one below it. */
function isNamed(path: string, bind: Bind): string {
  const escaped = path.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`)
  return `match(attribute_names, ${bind('String', String.raw`(?:^|\x01)${escaped}(?:[.\x01]|$)`)})`
}

/** The JSON of the first value, '' for none. */
const firstValue = (path: string, bind: Bind): string =>
  `arrayElement(${VALUES}, indexOf(${NAMES}, ${bind('String', path)}))`

const unquoted = (json: string): string => `trim(BOTH '"' FROM ${json})`
const quotedJson = (text: string): string => JSON.stringify(text)

const textOf = (json: string): string =>
  String.raw`multiIf(NOT startsWith(${json}, '"'), ${json}, position(${json}, '\\') > 0, JSONExtractString(${json}), substring(${json}, 2, length(${json}) - 2))`

/** The JSON that values of a text are stored as. */
export function equalJson(text: string): readonly string[] {
  const number = shortestNumber(text)
  const quoted = quotedJson(number ?? text)
  return number !== null || !text.startsWith('"') ? [quoted, number ?? text] : [quoted]
}

const NUMBER = `'^"?-?(?:0|[1-9][0-9]*)(?:\\\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"?$'`
/** @returns SQL of the number of a value; NULL where its text is none, or one that is too large (`1e400`) */
export const numberOf = (json: string): string =>
  `if(match(${json}, ${NUMBER}), nullIf(nullIf(toFloat64OrNull(${unquoted(json)}), inf), -inf), NULL)`

/** @returns a function that writes the condition on the JSON of a value */
function writeTest(
  clause: Exclude<AttributeClause, { kind: 'has' }>,
  bind: Bind,
): (json: string) => string {
  if (clause.kind === 'compare') return compared(clause.operator, clause.value, bind)
  const tests = clause.tests.map((test) => tested(test, bind))
  return (json) => (tests.length === 0 ? '0' : tests.map((test) => test(json)).join(' OR '))
}

function tested(test: ValueTest, bind: Bind): (json: string) => string {
  switch (test.kind) {
    case 'equal': {
      const texts = equalJson(test.text).map((text) => bind('String', text))
      return (json) => texts.map((text) => `${json} = ${text}`).join(' OR ')
    }
    case 'prefix': {
      const prefix = bind('String', test.text)
      return (json) => `startsWith(${textOf(json)}, ${prefix})`
    }
    case 'regex': {
      const pattern = bind('String', test.pattern)
      return (json) => `match(${textOf(json)}, ${pattern})`
    }
    case 'range': {
      const [from, to] = [compared('>=', test.from, bind), compared('<=', test.to, bind)]
      return (json) => `(${from(json)} AND ${to(json)})`
    }
    case 'word':
    case 'phrase':
      throw new Error(`bug: a ${test.kind} is searched in texts`)
  }
}

function compared(operator: Comparison, value: string, bind: Bind): (json: string) => string {
  const bound = bind('Float64', Number(value))
  return (json) => `ifNull(${numberOf(json)} ${operator} ${bound}, 0)`
}
