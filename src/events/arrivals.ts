/*
 * Finds the events that were stored since a position. ClickHouse numbers the inserts of a table in
 * the order in which they become visible, and merges keep the number of each row (`_block_number`).
 * The greatest number is therefore an exact position among the arrivals, whichever instance stored
 * them and however late an event is. The name of a part has the numbers of its first and last
 * insert, so parts without new rows are not read. Each shard of a cluster counts by itself.
 * Replicated tables number an insert before it is visible, and number each day separately: there
 * the position is not exact when several instances insert at the same time.
 */

import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { ListedEvent } from '../model/event.js'
import type { Query } from '../query/ast.js'
import { bound, type Condition } from './bind.js'
import { createEventReader, toListed } from './event.js'
import type { Redirects } from './filter.js'
import { SHORT_PAGE } from './page.js'
import { END_MS, MAX_AHEAD_MS, readRows, type ListedRow } from './range-rows.js'
import { rowCondition } from './row-condition.js'

/** The number of the newest insert on each shard; a shard that is missing has none. */
export type Blocks = readonly (readonly [shard: number, block: number])[]

interface ArrivalQuery {
  readonly query: Query
  readonly redirects: Redirects
  /** Exclusive. */
  readonly after: Blocks
  /** Inclusive. */
  readonly upTo: Blocks
  readonly limit: number
  /** The current time, which `new` looks back from. */
  readonly nowMs: number
}

export interface Arrived {
  readonly matched: number
  /** The newest of the events, by their time; fewer than the limit when they are large. */
  readonly events: readonly ListedEvent[]
}

const newestSql = statement<
  Record<string, never>,
  { readonly shard: number; readonly block: number }
>('event_newest_blocks')
const countSql = statement<Readonly<Record<string, unknown>>, { readonly matched: number }>(
  'event_arrived_count',
)

/** The most bytes of text that are read of many events: a message of the tail holds less (`tail-messages.ts`). */
const MOST_BYTES = 1024 * 1024
/** Few events arrive between two reads, so one thread is enough. */
const SETTINGS = { max_threads: 1 }

export type Arrivals = ReturnType<typeof createArrivalReader>

export function createArrivalReader(store: Pick<Store, 'query' | 'isSharded'>) {
  const shard = store.isSharded ? '_shard_num' : 'toUInt32(0)'
  const { repeatsOf } = createEventReader(store)

  /** @returns an SQL condition for rows that were stored after `after` and up to `upTo` */
  const between = (after: Blocks, upTo: Blocks): Condition =>
    bound('blocks', (bind) => {
      const numberOf = (blocks: Blocks): string => {
        const shards = bind(
          'Array(UInt32)',
          blocks.map(([one]) => one),
        )
        const numbers = bind(
          'Array(UInt64)',
          blocks.map(([, number]) => number),
        )
        return `transform(${shard}, ${shards}, ${numbers}, toUInt64(0))`
      }
      const start = numberOf(after)
      return (
        `(toUInt64OrZero(splitByChar('_', _part)[3]) > ${start} AND _block_number > ${start} ` +
        `AND _block_number <= ${numberOf(upTo)})`
      )
    })

  return {
    /** The current position. */
    newest: async (options: RequestOptions = {}): Promise<Blocks> => {
      const sql = newestSql.sql.replace('/*shard*/', shard)
      const rows = await store.query({ ...newestSql, sql }, {}, options)
      return rows.map(({ shard: number, block }) => [number, block] as const)
    },

    /** Reads the events of a query between two positions. */
    read: async (
      { query, redirects, after, upTo, limit, nowMs }: ArrivalQuery,
      request: RequestOptions = {},
    ): Promise<Arrived> => {
      const options = { ...request, settings: SETTINGS }
      const arrived = between(after, upTo)
      const matching = bound('clause', (bind) =>
        rowCondition(query, { bind, endMs: nowMs, redirects, among: arrived.sql }),
      )
      const conditions = [arrived, matching]
      const mostBytes = limit + 1 > SHORT_PAGE ? MOST_BYTES : null
      const range = { fromMs: 0, toMs: END_MS, conditions, limit: limit + 1, mostBytes }
      const rows = await readRows(store, range, options)
      const shown = rows.slice(0, limit)
      const isCut = rows.length > limit || (rows.at(-1)?.bytes ?? 0) >= MOST_BYTES
      const [matched, events] = await Promise.all([
        isCut ? count(store, conditions, options) : rows.length,
        withRepeats(shown, repeatsOf, request),
      ])
      return { matched, events }
    },
  }
}

async function count(
  store: Pick<Store, 'query'>,
  conditions: readonly Condition[],
  options: RequestOptions,
): Promise<number> {
  const sql = countSql.sql.replace('/*conditions*/', () =>
    conditions.map((one) => one.sql).join(' AND '),
  )
  const params = Object.assign({ arrived_ms: 0 }, ...conditions.map((one) => one.params))
  const [row] = await store.query({ ...countSql, sql }, params, options)
  return row?.matched ?? 0
}

async function withRepeats(
  rows: readonly ListedRow[],
  repeatsOf: ReturnType<typeof createEventReader>['repeatsOf'],
  { signal }: RequestOptions,
): Promise<readonly ListedEvent[]> {
  if (rows.length === 0) return []
  const oldestMs = Math.min(...rows.map((row) => row.ts_ms))
  const ids = rows.map(({ id }) => id)
  const repeats = await repeatsOf(ids, Math.max(0, oldestMs - MAX_AHEAD_MS), signal)
  const byId = new Map(repeats.map((row) => [row.id, row]))
  return rows.map((row) => toListed(row, byId.get(row.id)))
}
