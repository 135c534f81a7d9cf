/*
 * Counts the occurrences or the events of a time range by one field and by steps of time. All values are counted; the most
 * frequent ones are returned, with the sums over all. Nothing is sampled.
 *
 * The rollups answer when they count by all that is asked for (`rollup-rows.ts`), else the events do (`occurrences.ts`).
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { DAY_MS } from '../model/time.js'
import type { Field } from '../query/ast.js'
import type { Condition } from './bind.js'
import { toConditions } from './conditions.js'
import { createDictionary } from './dictionary-matches.js'
import { matchesNothing } from './filter.js'
import { fieldText, type FieldNames } from './field-expression.js'
import { beginningMs, occurrenceRows, repeatedWithin, type RangeQuestion } from './occurrences.js'
import { MAX_AHEAD_MS } from './range-rows.js'
import { isRolledUp, rollupRows } from './rollup-rows.js'

export interface CountBy {
  /** Null counts all together. */
  readonly field: Field | null
  /** Seconds of a bucket, which begins at a multiple of it since 1970; 0 for no buckets. */
  readonly stepS: number
  readonly counted: 'occurrences' | 'events'
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
  /** How many different values there are. */
  readonly distinct: number
  readonly answeredFrom: 'rollup' | 'events'
}

interface CountRow {
  readonly value: string
  readonly is_sum: 0 | 1
  readonly counted: number
  readonly known: number
  readonly bucket_s: readonly number[]
  readonly bucket_n: readonly number[]
}

type Params = Readonly<Record<string, unknown>>

const countsSql = statement<Params, CountRow>('event_counts')
const begunSql = statement<Params, { readonly events: number }>('event_begun')

/** More different values take too much memory; the question is then asked of a shorter range. */
const MAX_GROUPS = 1_000_000
/** Of one question; the other questions need some too. */
const MAX_BYTES = 2_000_000_000

/** The limits of a question that groups. */
const GROUP_LIMITS = {
  max_rows_to_group_by: String(MAX_GROUPS),
  group_by_overflow_mode: 'throw',
  max_memory_usage: String(MAX_BYTES),
} as const

const NOTHING = { total: 0, buckets: new Map(), values: [], distinct: 0 } as const

interface CountOptions {
  readonly store: Pick<Store, 'query'>
  /** Days after their arrival when events are dropped. */
  readonly retentionDays: number
}

export type Counter = ReturnType<typeof createCounter>

export function createCounter({ store, retentionDays }: CountOptions) {
  /** Whether all events of the range are still stored. */
  const isKept = (fromMs: number): boolean =>
    fromMs >= Date.now() - retentionDays * DAY_MS + MAX_AHEAD_MS

  const matchesOf = (question: RangeQuestion, options: RequestOptions) =>
    createDictionary(store, question.filter, options).matches(beginningMs(question), question.toMs)

  return {
    countBy: async (
      question: RangeQuestion,
      by: CountBy,
      options: RequestOptions,
    ): Promise<Counts> => {
      const { filter, fromMs, toMs } = question
      const isByRollup =
        by.counted === 'occurrences' && isRolledUp(filter, by.field) && isKept(fromMs)
      const answeredFrom = isByRollup ? 'rollup' : 'events'
      if (fromMs >= toMs || matchesNothing(filter)) return { ...NOTHING, answeredFrom }
      const rows = isByRollup
        ? rollupRows(question, by)
        : occurrenceRows(question, await matchesOf(question, options), [
            by.field === null ? NO_VALUE : fieldText(by.field, 'field_', by.names),
          ])
      const params = {
        ...rows.params,
        step_s: by.stepS,
        by_events: by.counted === 'events' ? 1 : 0,
        limit: by.top + 1,
      }
      const sql = countsSql.sql.replace('/*rows*/', () => rows.sql)
      const settings = { ...GROUP_LIMITS, ...options.settings }
      const found = await store.query({ ...countsSql, sql }, params, { ...options, settings })
      return { ...toCounts(found), answeredFrom }
    },

    /** The events of a range. */
    events: async (question: RangeQuestion, options: RequestOptions): Promise<number> => {
      const { filter, fromMs, toMs, endMs } = question
      if (fromMs >= toMs || matchesNothing(filter)) return 0
      const found = await matchesOf(question, options)
      const conditions = toConditions(filter, { found, endMs })
      const repeated = repeatedWithin(question)
      const parts: Readonly<Record<string, string>> = {
        conditions: conditions.map(({ sql }) => `AND ${sql}`).join('\n        '),
        repeated: `AND ${repeated.sql}`,
      }
      const params = {
        from_ms: beginningMs(question),
        arrived_ms: Math.max(0, beginningMs(question) - MAX_AHEAD_MS),
        ...repeated.params,
        ...Object.assign({}, ...conditions.map((one) => one.params)),
      }
      const sql = begunSql.sql.replaceAll(
        /\/\*([a-z]+)\*\//g,
        (_, name: string) => parts[name] ?? '',
      )
      const [row] = await store.query({ ...begunSql, sql }, params, options)
      return row?.events ?? 0
    },
  }
}

const NO_VALUE: Condition = { sql: "''", params: {} }

function toCounts(rows: readonly CountRow[]): Omit<Counts, 'answeredFrom'> {
  const sum = rows.find((row) => row.is_sum === 1)
  if (sum === undefined) return NOTHING
  return {
    total: sum.counted,
    buckets: toBuckets(sum),
    values: rows
      .filter((row) => row.is_sum === 0)
      .map((row) => ({ value: row.value, count: row.counted, buckets: toBuckets(row) })),
    distinct: sum.known,
  }
}

const toBuckets = (row: CountRow): ReadonlyMap<number, number> =>
  new Map(row.bucket_s.map((start, i) => [start, row.bucket_n[i] ?? 0]))
