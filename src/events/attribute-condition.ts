/*
 * Conditions on attributes, which are paths into the JSON of `tags`: the names on the way to a value, joined by dots. A name
 * may itself have dots, so `a.b.c` is looked for at `a` → `b.c` as well. The value is compared as its text; null and objects
 * are no values, and a list has its JSON as its text.
 */

import type { Comparison, Query, ValueTest } from '../query/ast.js'
import type { Bind } from './bind.js'

/** Objects are looked into this deep; ClickHouse bounds the size of a statement. */
const MAX_LEVELS = 10

type AttributeClause = Extract<Query, { kind: 'field' | 'compare' | 'has' }>

/** @returns an SQL condition on a row of `events` */
export function attributeCondition(clause: AttributeClause, bind: Bind): string {
  const path = clause.field.name
  const name = bind('String', path)
  const isOwn = path === 'correction_reason' ? CORRECTED : '0'
  if (clause.kind === 'has') {
    const pairs = pairsAt(path, name, true)
    const isHere = `(p.1 = ${name} OR startsWith(p.1, concat(${name}, '.')))`
    return `(${isOwn} OR arrayExists(p -> ${isHere} AND ${HAS_VALUE}, ${pairs}))`
  }
  const values = attributeValues(path, bind)
  const test =
    clause.kind === 'compare'
      ? compared(clause.operator, clause.value, bind)
      : clause.tests.map((one) => tested(one, bind)).join(' OR ')
  return `arrayExists(v -> ${test}, ${values})`
}

const CORRECTED = 'notEmpty(correction_reason)'

/** @returns SQL of an attribute's text in a row of `events`; NULL where the event has none, the first where it has several */
export const attributeText = (path: string, bind: Bind): string =>
  `arrayElementOrNull(${attributeValues(path, bind)}, 1)`

/** @returns SQL of an attribute's number in a row of `events`; NULL where its text is no number */
export const attributeNumber = (path: string, bind: Bind): string =>
  `arrayMap(v -> ${AS_NUMBER}, [${attributeText(path, bind)}])[1]`

/** SQL of an attribute's texts in a row of `events`; names with dots may give several. */
function attributeValues(path: string, bind: Bind): string {
  const name = bind('String', path)
  const pairs = pairsAt(path, name, false)
  const texts = `arrayMap(p -> ${TEXT}, arrayFilter(p -> p.1 = ${name} AND ${IS_VALUE}, ${pairs}))`
  return path === 'correction_reason' ? `if(${CORRECTED}, [correction_reason], ${texts})` : texts
}

/** p is a path and its JSON. */
const IS_VALUE = `NOT startsWith(p.2, '{') AND p.2 != 'null'`
const TEXT = `if(startsWith(p.2, '"'), JSONExtractString(p.2), p.2)`
/** Without its names, the JSON of an object has more than brackets and null. */
const HAS_VALUE = String.raw`match(replaceRegexpAll(p.2, '"(?:[^"\\\\]|\\\\.)*":', ''), '["\\[0-9tf-]')`

/** The paths of `tags` that lead to or, when asked for, beyond a path, with their JSON. */
function pairsAt(path: string, name: string, isBeyond: boolean): string {
  const isBefore = `startsWith(${name}, concat(p.1, '.'))`
  const isAfter = isBeyond ? ` OR startsWith(p.1, concat(${name}, '.'))` : ''
  const kept = (pairs: string): string =>
    `arrayFilter(p -> p.1 = ${name} OR ${isBefore}${isAfter}, ${pairs})`
  // A row whose JSON does not have the first name is not parsed. A name may be written with escapes.
  const mayHave = `position(tags, splitByChar('.', ${name})[1]) > 0 OR position(tags, '\\\\') > 0`
  let pairs = kept(`JSONExtractKeysAndValuesRaw(if(${mayHave}, tags, ''))`)
  const levels = Math.min(path.split('.').length, MAX_LEVELS)
  for (let level = 1; level < levels; level += 1) pairs = kept(withinObjects(pairs))
  return pairs
}

const withinObjects = (pairs: string): string =>
  `arrayFlatten(arrayMap(p -> if(startsWith(p.2, '{'), arrayMap(q -> (concat(p.1, '.', q.1), q.2), ` +
  `JSONExtractKeysAndValuesRaw(p.2)), [p]), ${pairs}))`

const NUMBER = `'^-?(?:0|[1-9][0-9]*)(?:\\\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$'`
const AS_NUMBER = `if(match(v, ${NUMBER}), toFloat64OrNull(v), NULL)`
const IS_NUMBER = new RegExp('^-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?$')

function tested(test: ValueTest, bind: Bind): string {
  switch (test.kind) {
    case 'equal': {
      const equal = `v = ${bind('String', test.text)}`
      // Greater numbers are not exact: they are ids, which are compared as texts.
      const isExact = IS_NUMBER.test(test.text) && Math.abs(Number(test.text)) < 2 ** 53
      return isExact ? `${equal} OR ${number('=', test.text, bind)}` : equal
    }
    case 'prefix':
      return `startsWith(v, ${bind('String', test.text)})`
    case 'regex':
      return `match(v, ${bind('String', test.pattern)})`
    case 'range':
      return `${number('>=', test.from, bind)} AND ${number('<=', test.to, bind)}`
    case 'word':
    case 'phrase':
      throw new Error(`bug: a ${test.kind} is searched in texts`)
  }
}

const compared = (operator: Comparison, value: string, bind: Bind): string =>
  number(operator, value, bind)

const number = (operator: Comparison | '=', value: string, bind: Bind): string =>
  `ifNull(${AS_NUMBER} ${operator} ${bind('Float64', Number(value))}, 0)`
