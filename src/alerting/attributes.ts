/*
 * Compares the attributes of each row with the values of many queries in one pass. ClickHouse takes
 * long to parse a hundred conditions on attributes, so the values are passed as array parameters.
 * Matches are those of `events/attribute-condition.ts`. For each row ClickHouse returns the indexes
 * of the values that it has. For each number it returns the position k among the sorted thresholds
 * of all queries: k = 2j + 1 for a number equal to threshold j (from 0), k = 2j for one between
 * thresholds j - 1 and j.
 */

import { equalJson, numberOf, type AttributeClause } from '../events/attribute-condition.js'
import { bound, type Condition } from '../events/bind.js'
import type { Comparison, ValueTest } from '../query/ast.js'

/** Values of an attribute. */
interface Equal {
  readonly path: string
  /** The JSON texts of the value as they are stored. */
  readonly json: readonly string[]
}

/** A comparison of an attribute with a number. */
interface Threshold {
  readonly path: string
  readonly threshold: number
}

/** The comparisons with attributes that a query makes. */
export interface AttributesAsked {
  readonly equals: Equal[]
  readonly thresholds: Threshold[]
}

/** The comparisons of all queries as array parameters; ClickHouse returns indexes into them. */
export interface AttributeLists {
  /** Each value together with its path. */
  readonly keys: readonly string[]
  readonly paths: readonly string[]
  /** The thresholds of each path in `paths`, ascending. */
  readonly thresholds: readonly (readonly number[])[]
  /** The index of a threshold among those of its path. */
  readonly placeOf: (path: string, threshold: number) => number
}

/** The values and numbers of one row. */
export interface RowAttributes {
  readonly keys: ReadonlySet<string>
  /** Whether one number at the path passes all of the comparisons. */
  readonly hasNumber: (path: string, all: readonly NumberTest[]) => boolean
}
type NumberTest = readonly [operator: Comparison, threshold: number]

export type MatchesAttributes = (row: RowAttributes) => boolean

const SEPARATOR = '\x01'
const keyOf = (path: string, json: string): string => path + SEPARATOR + json

/** @returns null for a clause that needs a query of its own, such as a regular expression */
export function compileAttribute(
  clause: AttributeClause,
  asked: AttributesAsked,
): MatchesAttributes | null {
  const path = clause.field.name
  // `correction_reason` is a column and no attribute.
  if (clause.kind === 'has' || path === 'correction_reason') return null
  if (clause.kind === 'compare')
    return compileNumbers(path, [[clause.operator, Number(clause.value)]], asked)
  const all: MatchesAttributes[] = []
  for (const test of clause.tests) {
    const holds = compileTest(path, test, asked)
    if (holds === null) return null
    all.push(holds)
  }
  return (row) => all.some((holds) => holds(row))
}

function compileTest(
  path: string,
  test: ValueTest,
  asked: AttributesAsked,
): MatchesAttributes | null {
  if (test.kind === 'range') {
    const [from, to] = [Number(test.from), Number(test.to)]
    return compileNumbers(
      path,
      [
        ['>=', from],
        ['<=', to],
      ],
      asked,
    )
  }
  if (test.kind !== 'equal') return null
  const json = equalJson(test.text)
  asked.equals.push({ path, json })
  const keys = json.map((one) => keyOf(path, one))
  return (row) => keys.some((key) => row.keys.has(key))
}

function compileNumbers(
  path: string,
  all: readonly NumberTest[],
  asked: AttributesAsked,
): MatchesAttributes {
  for (const [, threshold] of all) asked.thresholds.push({ path, threshold })
  return (row) => row.hasNumber(path, all)
}

export function listsOf(all: readonly AttributesAsked[]): AttributeLists {
  const keys = new Set(
    all.flatMap(({ equals }) =>
      equals.flatMap(({ path, json }) => json.map((one) => keyOf(path, one))),
    ),
  )
  const byPath = new Map<string, Set<number>>()
  for (const { path, threshold } of all.flatMap(({ thresholds }) => thresholds))
    byPath.set(path, (byPath.get(path) ?? new Set()).add(threshold))
  const thresholds = [...byPath.values()].map((some) => [...some].toSorted((a, b) => a - b))
  const paths = [...byPath.keys()]
  const places = new Map(
    paths.map((path, i) => [path, new Map(thresholds[i]?.map((l, at) => [l, at]))]),
  )
  const placeOf = (path: string, threshold: number): number =>
    places.get(path)?.get(threshold) ?? -1
  return { keys: [...keys], paths, thresholds, placeOf }
}

export const isEmpty = ({ keys, paths }: AttributeLists): boolean =>
  keys.length + paths.length === 0

/**
 * The most values and thresholds of one query. Its cost grows with them, because ClickHouse
 * compares each row with all of them.
 */
export const MAX_ATTRIBUTES = 2_000

/** The number of values and thresholds that each row is compared with. */
export const sizeOf = ({ keys, thresholds }: AttributeLists): number =>
  keys.length + thresholds.reduce((sum, some) => sum + some.length, 0)

const NAMES = String.raw`splitByChar('\x01', attribute_names)`
const VALUES = String.raw`splitByChar('\x01', attribute_values)`

/** SQL of a text for each row of `events`. `3,1:7` means that the row has value 3, and k = 7 for the first path. */
export const attributesSql = ({ keys, paths, thresholds }: AttributeLists): Condition =>
  bound('attribute', (bind) => {
    const found: string[] = []
    if (keys.length > 0) {
      const numbers = bind(
        'Array(UInt32)',
        keys.map((_, i) => i + 1),
      )
      const number = String.raw`transform(concat(n, '\x01', v), ${bind('Array(String)', keys)}, ${numbers}, toUInt32(0))`
      found.push(
        `arrayMap(i -> toString(i), arrayFilter(i -> i > 0, arrayMap((n, v) -> ${number}, ${NAMES}, ${VALUES})))`,
      )
    }
    if (paths.length > 0) {
      const numberOfPath = `indexOf(${bind('Array(String)', paths)}, n)`
      const all = `arrayFilter(t -> t.1 > 0 AND NOT isNaN(t.2), arrayMap((n, v) -> (${numberOfPath}, ifNull(${numberOf('v')}, nan)), ${NAMES}, ${VALUES}))`
      const own = `${bind('Array(Array(Float64))', thresholds)}[t.1]`
      const k = `arraySum(threshold -> (threshold < t.2) + (threshold <= t.2), ${own})`
      found.push(`arrayMap(t -> concat(toString(t.1), ':', toString(toUInt32(${k}))), ${all})`)
    }
    return `arrayStringConcat(arraySort(arrayDistinct(arrayConcat(${found.join(', ')}))), ',')`
  })

export function readAttributes(text: string, lists: AttributeLists): RowAttributes {
  const keys = new Set<string>()
  const standing = new Map<string, number[]>()
  for (const one of text === '' ? [] : text.split(',')) {
    const [number, k] = one.split(':')
    const at = Number(number) - 1
    const path = lists.paths[at] ?? ''
    if (k === undefined) keys.add(lists.keys[at] ?? '')
    else standing.set(path, [...(standing.get(path) ?? []), Number(k)])
  }
  return {
    keys,
    hasNumber: (path, all) =>
      (standing.get(path) ?? []).some((k) =>
        all.every(([operator, threshold]) => holdsAt(k, operator, lists.placeOf(path, threshold))),
      ),
  }
}

function holdsAt(k: number, operator: Comparison, threshold: number): boolean {
  switch (operator) {
    case '>':
      return k > 2 * threshold + 1
    case '>=':
      return k >= 2 * threshold + 1
    case '<':
      return k < 2 * threshold + 1
    case '<=':
      return k <= 2 * threshold + 1
  }
}

/** The attributes of a row that matches no value and no threshold. */
export const NO_ATTRIBUTES = readAttributes('', listsOf([]))
