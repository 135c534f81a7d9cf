/*
 * The attributes that queries compare, all read in one pass over each row. ClickHouse takes long to parse a hundred conditions on
 * attributes, so what is compared with is lists of parameters. It means what `events/attribute-condition.ts` says. Of a row is told
 * which of the values it has, and for numbers where each stands among the lines that it is compared with: k is the count of
 * lines below it and of lines that are not above it, so that it equals line j (from 0, ascending) at k = 2j + 1.
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
interface Line {
  readonly path: string
  readonly line: number
}

/** What is asked of the attributes of rows. */
export interface AttributesAsked {
  readonly equals: Equal[]
  readonly lines: Line[]
}

/** The attributes that queries compare, as the lists of parameters whose indexes ClickHouse returns. */
export interface AttributeLists {
  /** The values with their paths. */
  readonly keys: readonly string[]
  readonly paths: readonly string[]
  /** Ascending, by path. */
  readonly lines: readonly (readonly number[])[]
  /** Where a line of a path stands among its lines. */
  readonly placeOf: (path: string, line: number) => number
}

/** What a row has. */
export interface RowAttributes {
  readonly keys: ReadonlySet<string>
  /** Whether a number of the path fulfils all of the comparisons. */
  readonly hasNumber: (path: string, all: readonly NumberTest[]) => boolean
}
type NumberTest = readonly [operator: Comparison, line: number]

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
  for (const [, line] of all) asked.lines.push({ path, line })
  return (row) => row.hasNumber(path, all)
}

export function listsOf(all: readonly AttributesAsked[]): AttributeLists {
  const keys = new Set(
    all.flatMap(({ equals }) =>
      equals.flatMap(({ path, json }) => json.map((one) => keyOf(path, one))),
    ),
  )
  const byPath = new Map<string, Set<number>>()
  for (const { path, line } of all.flatMap(({ lines }) => lines))
    byPath.set(path, (byPath.get(path) ?? new Set()).add(line))
  const lines = [...byPath.values()].map((some) => [...some].toSorted((a, b) => a - b))
  const paths = [...byPath.keys()]
  const places = new Map(paths.map((path, i) => [path, new Map(lines[i]?.map((l, at) => [l, at]))]))
  const placeOf = (path: string, line: number): number => places.get(path)?.get(line) ?? -1
  return { keys: [...keys], paths, lines, placeOf }
}

export const isEmpty = ({ keys, paths }: AttributeLists): boolean =>
  keys.length + paths.length === 0

/** The most values and numbers of one question. Its cost grows with them, because ClickHouse compares each row with all. */
export const MAX_ATTRIBUTES = 2_000

/** With how much ClickHouse compares a row. */
export const sizeOf = ({ keys, lines }: AttributeLists): number =>
  keys.length + lines.reduce((sum, some) => sum + some.length, 0)

const NAMES = String.raw`splitByChar('\x01', attribute_names)`
const VALUES = String.raw`splitByChar('\x01', attribute_values)`

/** SQL of what a row of `events` has, as one text: `3,1:7` is key 3, and k = 7 of the first path. */
export const attributesSql = ({ keys, paths, lines }: AttributeLists): Condition =>
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
      const own = `${bind('Array(Array(Float64))', lines)}[t.1]`
      const k = `arraySum(line -> (line < t.2) + (line <= t.2), ${own})`
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
        all.every(([operator, line]) => holdsAt(k, operator, lists.placeOf(path, line))),
      ),
  }
}

function holdsAt(k: number, operator: Comparison, line: number): boolean {
  switch (operator) {
    case '>':
      return k > 2 * line + 1
    case '>=':
      return k >= 2 * line + 1
    case '<':
      return k < 2 * line + 1
    case '<=':
      return k <= 2 * line + 1
  }
}

/** Of what has none. */
export const NO_ATTRIBUTES = readAttributes('', listsOf([]))
