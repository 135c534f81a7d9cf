/*
 * Counts the occurrences or the events of a time range by one field and by steps of time. All values are counted; the most
 * frequent ones are returned, with the sums over all. Nothing is sampled.
 *
 * The rollups answer when they count by all requested fields (`rollup-rows.ts`), else the events do
 * (`occurrences.ts`).
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { Severity } from '../model/event.js'
import { HOUR_MS } from '../model/time.js'
import type { Field } from '../query/ast.js'
import type { Condition } from './bind.js'
import { createDictionary } from './dictionary-matches.js'
import { matchesNothing } from './filter.js'
import { fieldKey, groupOf, keyText, type FieldNames } from './field-expression.js'
import { countEvents } from './event-count.js'
import { findFewMatches } from './few-matches.js'
import { beginningMs, eventRows, occurrenceRows, type RangeQuestion } from './occurrences.js'
import { MAX_AHEAD_MS } from './range-rows.js'
import { rollupOf, rollupRows, type Counted } from './rollup-rows.js'
import { NO_HOURS } from './whole-hours.js'

export interface CountBy {
  /** Null counts all together. */
  readonly field: Field | null
  /** Seconds of a bucket, which begins at a multiple of it since 1970; 0 for no buckets. */
  readonly stepS: number
  readonly counted: Counted
  /** The values that are returned. */
  readonly top: number
  readonly names: FieldNames
}

export interface ValueCount {
  readonly value: string
  readonly count: number
  /** By the start of the bucket, s since 1970; without empty ones. */
  readonly buckets: ReadonlyMap<number, number>
}

export interface Counts {
  readonly total: number
  readonly buckets: ReadonlyMap<number, number>
  /** Most frequent first. */
  readonly values: readonly ValueCount[]
  /** The events of the range; null when rollups counted the occurrences. */
  readonly events: number | null
  /** What has no value; null for nothing. */
  readonly without: ValueCount | null
  /** How many different values there are. */
  readonly distinct: number
  readonly answeredFrom: 'rollup' | 'events'
}

interface CountRow {
  readonly value: string
  readonly is_sum: 0 | 1
  readonly counted: number
  readonly events: number
  readonly known: number
  readonly bucket_s: readonly number[]
  readonly bucket_n: readonly number[]
}

type Params = Readonly<Record<string, unknown>>

const countsSql = statement<Params, CountRow>('event_counts')

/** More different values take too much memory; the question is then asked of a shorter range. */
const MAX_GROUPS = 1_000_000
/** The most memory of one query, because the other queries need some too. */
const MAX_BYTES = 2_000_000_000

/** The limits of a question that groups. */
export const GROUP_LIMITS = {
  max_rows_to_group_by: String(MAX_GROUPS),
  group_by_overflow_mode: 'throw',
  max_memory_usage: String(MAX_BYTES),
} as const

const NOTHING: Counts = {
  total: 0,
  buckets: new Map(),
  values: [],
  events: 0,
  without: null,
  distinct: 0,
  answeredFrom: 'rollup',
}

interface CountOptions {
  readonly store: Pick<Store, 'query'>
  readonly retention: Kept
  readonly fewMatches: number
}

/** Says since which time of arrival all events of these sources and severities are stored; null stands for all. */
export interface Kept {
  keptSinceMs(sources: readonly string[] | null, severities: readonly Severity[] | null): number
}

interface RowsOf {
  /** Of a row of `events`. */
  readonly expressions: readonly Condition[]
  readonly counted?: Counted
}

export type Counter = ReturnType<typeof createCounter>

export function createCounter({ store, retention, fewMatches }: CountOptions) {
  /** The start of the first hour of which no event of these sources and severities was dropped, in ms since 1970. */
  const keptMs = ({ filter: { sources, severities } }: RangeQuestion): number =>
    Math.ceil((retention.keptSinceMs(sources, severities) + MAX_AHEAD_MS) / HOUR_MS) * HOUR_MS

  const matchesOf = (question: RangeQuestion, options: RequestOptions) =>
    createDictionary(store, question.filter, options).matches(beginningMs(question), question.toMs)

  /** A statement for a FROM clause that reads the occurrences or the events of a range from the table `events`. */
  const rowsOf = async (
    question: RangeQuestion,
    { expressions, counted = 'occurrences' }: RowsOf,
    options: RequestOptions,
  ): Promise<Condition> => {
    const found = await matchesOf(question, options)
    if (counted === 'events') return eventRows(question, { found, expressions, hours: NO_HOURS })
    const places = await findFewMatches(store, { question, found, most: fewMatches }, options)
    return occurrenceRows(question, { found, expressions, places })
  }

  /**
   * The rows of a rollup that counts by the requested fields, from `sinceMs` on, and those of the
   * events before it; null when none does.
   */
  const rolledUpRows = (
    question: RangeQuestion,
    by: CountBy,
    sinceMs = keptMs(question),
  ): Condition | null => {
    const rollup = rollupOf(question.filter, by)
    return rollup === null ? null : rollupRows(question, rollup, { ...by, keptMs: sinceMs })
  }

  const countBy = async (
    question: RangeQuestion,
    by: CountBy,
    options: RequestOptions,
  ): Promise<Counts> => {
    if (question.fromMs >= question.toMs || matchesNothing(question.filter)) return NOTHING
    const rolledUp = rolledUpRows(question, by)
    if (rolledUp !== null) return await askRollup(store, { rows: rolledUp, by }, options)
    const key = by.field === null ? NO_VALUE : fieldKey(by.field, 'field_')
    const rows = await rowsOf(question, { expressions: [key], counted: by.counted }, options)
    return await ask(store, { rows, by }, options)
  }

  /**
   * Counts of a time when events may be gone already; null when no rollup counts by the requested
   * fields.
   */
  const rolledUpCounts = async (
    question: RangeQuestion,
    by: CountBy,
    options: RequestOptions,
  ): Promise<Counts | null> => {
    const rows = rolledUpRows(question, by, 0)
    return rows === null ? null : await askRollup(store, { rows, by }, options)
  }

  /** The number of events of a range. */
  const events = async (question: RangeQuestion, options: RequestOptions): Promise<number> => {
    if (question.fromMs >= question.toMs || matchesNothing(question.filter)) return 0
    const found = await matchesOf(question, options)
    return await countEvents(store, question, { found, keptMs: keptMs(question) }, options)
  }

  return {
    rowsOf,
    countBy,
    rolledUpCounts,
    events,
    keptMs,
    isRolledUp: (question: RangeQuestion, by: CountBy): boolean =>
      rolledUpRows(question, by) !== null,
  }
}

interface Counting {
  readonly rows: Condition
  readonly by: CountBy
}

async function ask(
  store: Pick<Store, 'query'>,
  { rows, by }: Counting,
  options: RequestOptions,
): Promise<Counts> {
  const { sql, params } = toStatement(rows, by)
  const settings = { ...GROUP_LIMITS, ...options.settings }
  return toCounts(await store.query(sql, params, { ...options, settings }), by.top)
}

async function askRollup(
  store: Pick<Store, 'query'>,
  counting: Counting,
  options: RequestOptions,
): Promise<Counts> {
  const counts = await ask(store, counting, options)
  const events = counting.by.counted === 'events' ? counts.total : null
  return { ...counts, events, answeredFrom: 'rollup' }
}

function toStatement(rows: Condition, { field, names, stepS, counted, top }: CountBy) {
  const text = field === null ? NO_VALUE : keyText(field, { key: 'key', prefix: 'text_', names })
  const sql = countsSql.sql
    .replace('/*rows*/', () => rows.sql)
    .replace('/*text*/', () => text.sql)
    .replace('/*group*/', () => groupOf(field, 'k0'))
  const params = {
    ...rows.params,
    ...text.params,
    step_s: stepS,
    by_events: counted === 'events' ? 1 : 0,
    // The sums, those without a value, and the values.
    limit: top + 2,
  }
  return { sql: { ...countsSql, sql }, params }
}

const NO_VALUE: Condition = { sql: "''", params: {} }

function toCounts(rows: readonly CountRow[], top: number): Counts {
  const sum = rows.find((row) => row.is_sum === 1)
  if (sum === undefined) return { ...NOTHING, answeredFrom: 'events' }
  const values = rows.filter((row) => row.is_sum === 0).map(toValue)
  return {
    total: sum.counted,
    buckets: toBuckets(sum),
    values: values.filter(({ value }) => value !== '').slice(0, top),
    without: values.find(({ value }) => value === '') ?? null,
    distinct: sum.known,
    events: sum.events,
    answeredFrom: 'events',
  }
}

const toValue = (row: CountRow): ValueCount => ({
  value: row.value,
  count: row.counted,
  buckets: toBuckets(row),
})

const toBuckets = (row: CountRow): ReadonlyMap<number, number> =>
  new Map(row.bucket_s.map((start, i) => [start, row.bucket_n[i] ?? 0]))
