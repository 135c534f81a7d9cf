/*
 * The most frequent values of several fields. Each field is counted by itself, from a rollup where one counts by it, a few at a
 * time. All values are counted, so the counts are exact.
 */

import type { Bounded, createBoundedRange } from './bounded-range.js'
import type { Counter, Counts } from './counts.js'
import type { Field } from '../query/ast.js'
import type { FieldNames } from './field-expression.js'
import type { EventQuestion } from './occurrences.js'

export interface FacetsQuery {
  readonly question: EventQuestion
  readonly fields: readonly Field[]
  /** The values of each field that are returned. */
  readonly top: number
  readonly names: FieldNames
}

interface Facets {
  readonly total: number
  /** In the order of the fields. */
  readonly facets: readonly Pick<Counts, 'distinct' | 'values'>[]
}

/** More are no faster on a few cores. */
const AT_ONCE = 2

interface FacetsOptions {
  readonly counter: Counter
  readonly bounded: ReturnType<typeof createBoundedRange>
}

export const createFacets =
  ({ counter, bounded }: FacetsOptions) =>
  ({ question, fields, top, names }: FacetsQuery, signal?: AbortSignal): Promise<Bounded<Facets>> =>
    bounded(question, signal, async (range, options) => {
      const counted: Counts[] = []
      const waiting = fields.map((field, i) => async () => {
        const by = { field, stepS: 0, counted: 'occurrences', top, names } as const
        counted[i] = await counter.countBy(range, by, options)
      })
      const lane = async (): Promise<void> => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next()
      }
      await Promise.all(Array.from({ length: AT_ONCE }, lane))
      return { total: counted[0]?.total ?? 0, facets: counted }
    })
