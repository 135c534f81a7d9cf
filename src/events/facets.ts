/*
 * The most frequent values of several fields. A field is counted from a rollup if one counts by it;
 * all others are counted in one pass over the events. All values are counted, so the counts are
 * exact.
 */

import type { RequestOptions } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { Field } from '../query/ast.js'
import type { Bounded, Counting } from './bounded-range.js'
import { GROUP_LIMITS, type CountBy, type ValueCount } from './counts.js'
import { fieldKey, keyText, type FieldNames } from './field-expression.js'
import { matchesNothing } from './filter.js'
import type { EventQuestion, RangeQuestion } from './occurrences.js'

export interface FacetsQuery {
  readonly question: EventQuestion
  readonly fields: readonly Field[]
  /** The number of values that are returned of each field. */
  readonly top: number
  readonly names: FieldNames
}

interface Facet {
  /** Most frequent first. */
  readonly values: readonly Pick<ValueCount, 'value' | 'count'>[]
  /** The number of different values. */
  readonly distinct: number
}

interface Facets {
  readonly total: number
  /** In the order of the fields. */
  readonly facets: readonly Facet[]
}

interface FacetRow {
  readonly field: number
  readonly value: string
  readonly counted: number
  readonly known: number
}

const facetsSql = statement<Readonly<Record<string, unknown>>, FacetRow>('event_facets')

export const createFacets =
  ({ store, counter, bounded }: Counting) =>
  ({ question, fields, top, names }: FacetsQuery, signal?: AbortSignal): Promise<Bounded<Facets>> =>
    bounded(question, signal, async (range, options) => {
      if (range.fromMs >= range.toMs || matchesNothing(range.filter))
        return { total: 0, facets: fields.map(() => ({ values: [], distinct: 0 })) }
      const byOf = (field: Field): CountBy => ({
        field,
        stepS: 0,
        counted: 'occurrences',
        top,
        names,
      })
      // Whether events were dropped in only a small part of the range. Each field that is counted
      // from rollups reads the days with dropped events again, so rollups pay off only then.
      const isMostlyKept =
        (counter.keptMs(range) - range.fromMs) * fields.length <= range.toMs - range.fromMs
      const isRolledUp = fields.map(
        (field) => isMostlyKept && counter.isRolledUp(range, byOf(field)),
      )
      const others = fields.filter((_, i) => isRolledUp[i] === false)
      const ofEvents =
        others.length === 0
          ? []
          : countFields({ store, counter }, { range, fields: others, top, names }, options)
      const all = await Promise.all(
        fields.map(async (field, i) =>
          isRolledUp[i] === true
            ? await counter.countBy(range, byOf(field), options)
            : (await ofEvents)[others.indexOf(field)],
        ),
      )
      const facets = all.filter((facet) => facet !== undefined)
      return { total: facets[0]?.total ?? 0, facets }
    })

interface CountedFields extends Pick<FacetsQuery, 'fields' | 'top' | 'names'> {
  readonly range: RangeQuestion
}

/** Counts by several fields from the events; the results are in the order of the fields. */
async function countFields(
  { store, counter }: Pick<Counting, 'store' | 'counter'>,
  { range, fields, top, names }: CountedFields,
  options: RequestOptions,
): Promise<readonly (Facet & { readonly total: number })[]> {
  const keys = fields.map((field, i) => fieldKey(field, `field${i}_`))
  const rows = await counter.rowsOf(range, { expressions: keys }, options)
  const texts = fields.map((field, i) =>
    keyText(field, { key: `k${i}`, prefix: `text${i}_`, names }),
  )
  const perField = (write: (i: number) => string): string =>
    fields.map((_, i) => write(i)).join(', ')
  const parts: Readonly<Record<string, string>> = {
    rows: rows.sql,
    keys: perField((i) => `k${i}, grouping(k${i}) AS is_other${i}`),
    sets: perField((i) => `(k${i})`),
    fields: perField((i) => `is_other${i} = 0, ${i}`),
    texts: perField((i) => `is_other${i} = 0, toString(${texts[i]?.sql ?? ''})`),
  }
  const sql = facetsSql.sql.replaceAll(/\/\*([a-z]+)\*\//g, (_, name: string) => parts[name] ?? '')
  const params = Object.assign({}, rows.params, ...texts.map((text) => text.params))
  const settings = { ...GROUP_LIMITS, ...options.settings }
  const found = await store.query(
    { ...facetsSql, sql },
    // The most frequent values, and the row of events without a value.
    { ...params, all: fields.length, limit: top + 1 },
    { ...options, settings },
  )
  const total = found.find(({ field }) => field === fields.length)?.counted ?? 0
  return fields.map((_, i) => {
    const own = found.filter(({ field, value }) => field === i && value !== '')
    const values = own.slice(0, top).map(({ value, counted }) => ({ value, count: counted }))
    return { values, distinct: own[0]?.known ?? 0, total }
  })
}
