/*
 * Metrics of the occurrences of a time range by groups, in descending order of the first metric.
 * All occurrences of an event have its attributes, so each metric counts an event's value once for
 * each of its occurrences in the range. Every metric is exact. A quantile is an actual value: the
 * smallest one that is at least as large as the given share of the occurrences (nearest rank),
 * computed from the counts of all values without a sketch. A series has the same metrics by steps
 * of time for the returned groups, which are determined first.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { AppError } from '../model/errors.js'
import type { Field } from '../query/ast.js'
import { attributeNumber } from './attribute-condition.js'
import { bound, type Condition } from './bind.js'
import type { Bounded, Counting } from './bounded-range.js'
import { GROUP_LIMITS, type Counter } from './counts.js'
import { fieldKey, keyText, type FieldNames } from './field-expression.js'
import { matchesNothing } from './filter.js'
import type { EventQuestion, RangeQuestion } from './occurrences.js'
import { numberSql, type NumberFunction } from './number-functions.js'

export type Metric =
  | { readonly kind: 'count' }
  | { readonly kind: 'distinct'; readonly field: Field }
  | { readonly kind: 'number'; readonly of: NumberFunction; readonly attribute: string }

export interface StatsQuery {
  readonly question: EventQuestion
  readonly by: readonly Field[]
  /** At least one. */
  readonly metrics: readonly Metric[]
  /** Seconds; 0 for no series. */
  readonly stepS: number
  /** The number of groups that are returned. */
  readonly top: number
  readonly names: FieldNames
}

/** In the order of the metrics; null where nothing has a value. */
type Values = readonly (number | null)[]

export interface StatsGroup {
  /** In the order of the fields; '' where the field has no value. */
  readonly keys: readonly string[]
  readonly values: Values
  /** Ascending, without empty steps. */
  readonly series: readonly { readonly startS: number; readonly values: Values }[]
}

export interface Stats {
  readonly groups: readonly StatsGroup[]
  /** How many groups there are. */
  readonly groupCount: number
}

type Params = Readonly<Record<string, unknown>>
type StatsRow = Readonly<Record<`m${number}`, number | null>> & {
  readonly bucket: number
  readonly keys: readonly string[]
  readonly groups: number
}

const statsSql = statement<Params, StatsRow>('event_stats')

export const createStats =
  ({ store, counter, bounded }: Counting) =>
  (query: StatsQuery, signal?: AbortSignal): Promise<Bounded<Stats>> =>
    bounded(query.question, signal, async (range, options) => {
      if (range.fromMs >= range.toMs || matchesNothing(range.filter)) return nothingOf(query)
      return isCounting(query)
        ? await counted(counter, query, { range, options })
        : await grouped({ store, counter }, query, { range, options })
    })

/** The result without events: without grouping there is one group, which is empty. */
const nothingOf = ({ by, metrics }: StatsQuery): Stats =>
  by.length > 0
    ? { groups: [], groupCount: 0 }
    : { groups: [{ keys: [], values: metrics.map(emptyOf), series: [] }], groupCount: 1 }

const emptyOf = ({ kind }: Metric): number | null => (kind === 'number' ? null : 0)

/** Whether the rollups may have the answer: all metrics are counts, by at most one field. */
const isCounting = ({ by, metrics }: StatsQuery): boolean =>
  by.length <= 1 && metrics.every(({ kind }) => kind === 'count')

interface Asked {
  readonly range: RangeQuestion
  readonly options: RequestOptions
}

async function counted(
  counter: Counter,
  { by, metrics, stepS, top, names }: StatsQuery,
  { range, options }: Asked,
): Promise<Stats> {
  const field = by[0] ?? null
  const asked = { field, stepS, counted: 'occurrences', top, names } as const
  const counts = await counter.countBy(range, asked, options)
  const toGroup = (
    keys: readonly string[],
    total: number,
    buckets: ReadonlyMap<number, number>,
  ): StatsGroup => ({
    keys,
    values: metrics.map(() => total),
    series:
      stepS === 0
        ? []
        : [...buckets]
            .filter(([, n]) => n !== 0)
            .map(([startS, n]) => ({ startS, values: metrics.map(() => n) })),
  })
  if (field === null) return { groups: [toGroup([], counts.total, counts.buckets)], groupCount: 1 }
  const { values, without, distinct } = counts
  const groups = (without === null ? values : [...values, without])
    .toSorted((a, b) => b.count - a.count || (a.value === '' ? -1 : 0))
    .slice(0, top)
    .map(({ value, count, buckets }) => toGroup([value], count, buckets))
  return { groups, groupCount: distinct + (without === null ? 0 : 1) }
}

interface Sources {
  readonly store: Pick<Store, 'query'>
  readonly counter: Counter
}

async function grouped(
  { store, counter }: Sources,
  query: StatsQuery,
  { range, options }: Asked,
): Promise<Stats> {
  const { by, metrics, stepS, top, names } = query
  const numbers = [
    ...new Set(metrics.flatMap((one) => (one.kind === 'number' ? [one.attribute] : []))),
  ]
  const fields = [...by, ...metrics.flatMap((one) => (one.kind === 'distinct' ? [one.field] : []))]
  const expressions = [
    ...fields.map((field, i) => fieldKey(field, `field${i}_`)),
    ...numbers.map((path, i) => bound(`number${i}_`, (bind) => attributeNumber(path, bind))),
  ]
  const rows = await counter.rowsOf(range, { expressions }, options)
  const texts = fields.map((field, i) =>
    keyText(field, { key: `k${i}`, prefix: `text${i}_`, names }),
  )
  let distinct = by.length
  const columns = metrics.map((metric, i): string => {
    if (metric.kind === 'count') return `toInt64(sum(occurrences)) AS m${i}`
    if (metric.kind === 'distinct') {
      const text = texts[distinct++]?.sql ?? ''
      return `toInt64(uniqExactIf(toString(${text}), notEmpty(toString(${text})))) AS m${i}`
    }
    const value = `k${fields.length + numbers.indexOf(metric.attribute)}`
    return `${numberSql(metric.of, value)} AS m${i}`
  })
  const ask = async (asked: Pick<Ask, 'stepS' | 'limit' | 'chosen'>) => {
    const whole = { ...asked, rows, columns, keys: texts.slice(0, by.length), texts }
    return await askStats(store, whole, options)
  }
  const found = await ask({ stepS: 0, limit: top, chosen: null })
  if (found.length === 0) return nothingOf(query)
  const series =
    stepS === 0
      ? []
      : await ask({ stepS, limit: MAX_SERIES_ROWS + 1, chosen: found.map(({ keys }) => keys) })
  if (series.length > MAX_SERIES_ROWS) throw tooManySteps()
  const valuesOf = (row: StatsRow): Values => metrics.map((_, i) => row[`m${i}`] ?? null)
  const groups = found.map((row) => ({
    keys: row.keys,
    values: valuesOf(row),
    series: series
      .filter(({ keys }) => keys.every((key, i) => key === row.keys[i]))
      .map((step) => ({ startS: step.bucket, values: valuesOf(step) }))
      .toSorted((a, b) => a.startS - b.startS),
  }))
  return { groups, groupCount: found[0]?.groups ?? 0 }
}

/** 100 groups of 300 steps, and of one more where the range begins within a step. */
const MAX_SERIES_ROWS = 30_100

/** Without an end, the range may also have many steps in the future. */
function tooManySteps(): AppError {
  const message = `must be longer: the groups have more than ${MAX_SERIES_ROWS} steps together`
  return new AppError('validation_error', 'invalid: step', {
    details: { errors: [{ in: 'query', path: 'step', message }] },
  })
}

interface Ask {
  readonly rows: Condition
  readonly columns: readonly string[]
  readonly keys: readonly Condition[]
  readonly texts: readonly Condition[]
  readonly stepS: number
  readonly limit: number
  /** The keys of the groups to read; null for all. */
  readonly chosen: readonly (readonly string[])[] | null
}

async function askStats(
  store: Pick<Store, 'query'>,
  { rows, columns, keys, texts, stepS, limit, chosen }: Ask,
  options: RequestOptions,
): Promise<readonly StatsRow[]> {
  const parts: Readonly<Record<string, string>> = {
    keys: keys.map(({ sql }) => `toString(${sql})`).join(', '),
    metrics: columns.join(', '),
    rows: rows.sql,
    chosen: chosen === null ? '' : 'AND keys IN {chosen:Array(Array(String))}',
    order: 'm0',
  }
  const params = {
    ...rows.params,
    ...Object.assign({}, ...texts.map((text) => text.params)),
    ...(chosen === null ? {} : { chosen }),
    step_s: stepS,
    limit,
  }
  const sql = statsSql.sql.replaceAll(/\/\*([a-z]+)\*\//g, (_, name: string) => parts[name] ?? '')
  const settings = { ...GROUP_LIMITS, ...options.settings }
  return await store.query({ ...statsSql, sql }, params, { ...options, settings })
}
