/*
 * Compares the attributes of each row with the values of many queries in one pass. ClickHouse takes long to parse a hundred
 * conditions on attributes, so the values are parameters: lists. The meaning is that of `events/attribute-condition.ts`.
 * For each row ClickHouse returns which of the values it has, and for each number its position k among the sorted thresholds
 * that queries compare with: k = 2j + 1 where it equals threshold j (from 0), 2j where it lies between thresholds j - 1 and j.
 */

import { equalJson, numberOf, type AttributeClause } from '../events/attribute-condition.js'
import { bound, type Condition } from '../events/bind.js'
import type { Comparison, ValueTest } from '../query/ast.js'

/** Values of an attribute. */
interface Equal {
  readonly path: string
  /** As they are stored. */
  readonly json: readonly string[]
}

/** A comparison of an attribute with a number. */
interface Threshold {
  readonly path: string
  readonly threshold: number
}

/** What is asked of the attributes of rows. */
export interface AttributesAsked {
  readonly equals: Equal[]
  readonly thresholds: Threshold[]
}

/** The attributes that queries compare, as the lists of parameters whose indexes ClickHouse returns. */
export interface AttributeLists {
  /** The values with their paths. */
  readonly keys: readonly string[]
  readonly paths: readonly string[]
  /** Ascending, by path. */
  readonly thresholds: readonly (readonly number[])[]
  /** The index of a threshold among those of its path. */
  readonly placeOf: (path: string, threshold: number) => number
}

/** What a row has. */
export interface RowAttributes {
  readonly keys: ReadonlySet<string>
  /** Whether a number of the path fulfils all of the comparisons. */
  readonly hasNumber: (path: string, all: readonly NumberTest[]) => boolean
}
type NumberTest = readonly [operator: Comparison, threshold: number]

export type MatchesAttributes = (row: RowAttributes) => boolean

const SEPARATOR = '\x01'
const keyOf = (path: string, json: string): string => path + SEPARATOR + json

/** @returns null for a clause that is asked alone, such as one with a regular expression */
export function compileAttribute(
  clause: AttributeClause,
  asked: AttributesAsked,
): MatchesAttributes | null {
  const path = clause.field.name
  // The reason of a correction is a column.
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

/** The most values and numbers of one question. Its cost grows with them, because ClickHouse compares each row with all. */
export const MAX_ATTRIBUTES = 2_000

/** How many values and numbers ClickHouse compares each row with. */
export const sizeOf = ({ keys, thresholds }: AttributeLists): number =>
  keys.length + thresholds.reduce((sum, some) => sum + some.length, 0)

const NAMES = String.raw`splitByChar('\x01', attribute_names)`
const VALUES = String.raw`splitByChar('\x01', attribute_values)`

/** SQL of one text for each row of `events`, such as `3,1:7`: it has value 3, and k = 7 for the first path. */
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

/** The text of a row that has none of them. */
export const NO_ATTRIBUTES = readAttributes('', listsOf([]))
