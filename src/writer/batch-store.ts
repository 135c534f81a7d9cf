import { randomUUID } from 'node:crypto'
import { clearTable } from '../clickhouse/clear-table.js'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import type { EventDeletion } from '../wal/record.js'
import { isDataError } from '../clickhouse/failure.js'
import { statement, type Statement } from '../clickhouse/statement.js'
import type { StoredBatches } from './taken.js'

const countSql = statement<
  { readonly all: 0 | 1; readonly sources: readonly string[] },
  { readonly counted: number }
>('event_count')
const storedSql = statement<{ readonly ids: readonly number[] }, { readonly id: number }>(
  'events_stored',
)
const laterSql = statement<
  { readonly token: string; readonly most: number },
  { readonly later: number }
>('batches_later')
const deadStoredSql = statement<{ readonly ids: readonly number[] }, { readonly id: number }>(
  'dead_letters_stored',
)
const deadSql = statement<{ readonly since_ms: number }, { readonly n: number }>(
  'dead_letter_count',
)
const anyOfSql = statement<
  { readonly table: string; readonly sources: readonly string[] },
  { readonly found: number }
>('source_any_row')
const stepsSql = statement<
  { readonly sources: readonly string[]; readonly rows: number },
  { readonly last: number }
>('source_event_steps')
/** The most ids of a query, because they are part of its URL. */
const IDS_PER_QUERY = 5_000
/** Every table with rows of a source. */
const SOURCE_TABLES = [
  'events',
  'event_occurrences',
  'repeat_arrivals',
  'series_1s',
  'series_1m',
  'series_1h',
  'series_1d',
  'template_stats',
  'template_totals',
  'host_stats',
  'attribute_stats',
  'templates',
] as const
const ALL_TABLES = [...SOURCE_TABLES, 'dead_letters', 'alert_log', 'alert_deliveries'] as const

/** The writes of a batch to ClickHouse. Each call may be repeated. */
export interface BatchStore {
  newToken(): string
  insert(table: string, parts: readonly Uint8Array[], token: string): Promise<void>
  /** Tells whether ClickHouse accepts the rows for the table, without storing them. @throws when it can't be reached */
  wouldTake(table: string, parts: readonly Uint8Array[]): Promise<boolean>
  /** @returns the ids of the events that are stored */
  storedAmong(ids: readonly number[]): Promise<ReadonlySet<number>>
  readonly taken: StoredBatches
  /**
   * Deletes all rows of sources; those of repeats are gone some time after the answer.
   *
   * @returns the number of deleted events
   */
  deleteSources(sources: readonly string[]): Promise<number>
  clear(): Promise<{
    readonly events: number
    readonly deadLetters: number
  }>
  /**
   * Deletes events whose occurrences have been subtracted from the rollups. The rows of their
   * repeats, in event_occurrences and repeat_arrivals, stay until retention drops them, because no
   * query counts the repeats of an event that does not exist.
   */
  deleteEvents(deletion: EventDeletion): Promise<void>
  deleteDeadLetters(ids: readonly number[]): Promise<void>
}

const createTrials = (store: Store): Pick<BatchStore, 'wouldTake' | 'storedAmong'> => ({
  wouldTake: async (table, parts) => {
    try {
      await store.insertNative(`${table}_probe`, parts, randomUUID())
      return true
    } catch (error) {
      if (isDataError(error)) return false
      throw error
    }
  },
  storedAmong: (ids) => idsAmong(store, storedSql, ids),
})

async function idsAmong(
  store: Store,
  sql: Statement<{ readonly ids: readonly number[] }, { readonly id: number }>,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  const stored = new Set<number>()
  for (let from = 0; from < ids.length; from += IDS_PER_QUERY) {
    const rows = await store.query(sql, { ids: ids.slice(from, from + IDS_PER_QUERY) })
    for (const { id } of rows) stored.add(id)
  }
  return stored
}

/**
 * A deletion writes a patch part with the deleted rows. By default it would rewrite every part of
 * the table, even those without such rows, which takes time in proportion to the days that are kept
 * (bench/NOTES.md).
 */
const BY_PATCH: RequestOptions = { settings: { lightweight_delete_mode: 'lightweight_update' } }
/** The most events of sources that one patch deletes, so that ClickHouse needs little memory for it. */
const PATCHED_AT_ONCE = 100_000
const STEPS_MS = 120_000
const NOT_AWAITED: RequestOptions = { settings: { mutations_sync: '0' } }
/**
 * No query counts the repeats of an event that does not exist, so their rows may go after the answer. A deletion applies to
 * the parts that exist when it is submitted, so later rows of a source with the same name stay.
 */
const IN_BACKGROUND: RequestOptions = { settings: { lightweight_deletes_sync: '0' } }
const BACKGROUND_TABLES: readonly string[] = ['event_occurrences', 'repeat_arrivals']

const OF_SOURCES = 'source IN {sources:Array(String)}'

/**
 * Deletes the events of sources by patches. Rewriting every part of a year takes more than a minute, and the writer waits.
 * ClickHouse reads the patches with each part, so after many rows it merges them into the parts in the background.
 */
async function patchEvents(store: Store, sources: readonly string[]): Promise<void> {
  const steps = await store.query(
    stepsSql,
    { sources, rows: PATCHED_AT_ONCE },
    { timeoutMs: STEPS_MS },
  )
  let after = 0
  for (const { last } of steps) {
    const sql = `DELETE FROM events WHERE ${OF_SOURCES} AND id > {after:UInt64} AND id <= {last:UInt64}`
    await store.change(sql, { sources, after, last }, BY_PATCH)
    after = last
  }
  if (steps.length > 1) await store.change('ALTER TABLE events APPLY PATCHES', {}, NOT_AWAITED)
}

const createTaken = (store: Store): StoredBatches => ({
  later: async (token, most) => (await store.query(laterSql, { token, most }))[0]?.later ?? 0,
  sourcesStored: (token, sources) => store.sourcesStored(token, sources),
  deadLettersAmong: (ids) => idsAmong(store, deadStoredSql, ids),
})

export function createBatchStore(store: Store): BatchStore {
  const countEvents = async (sources: readonly string[] | null): Promise<number> => {
    const rows = await store.query(countSql, {
      all: sources === null ? 1 : 0,
      sources: sources ?? [],
    })
    return rows[0]?.counted ?? 0
  }
  /** Whether a table may have rows of some sources. On a cluster a replica that is behind would not know. */
  const mayHave = async (table: string, sources: readonly string[]): Promise<boolean> => {
    if (store.isSharded) return true
    return (await store.query(anyOfSql, { table, sources })).length > 0
  }
  return {
    newToken: () => store.newToken(),
    insert: async (table, parts, token) => {
      await store.insertNative(table, parts, token)
    },
    ...createTrials(store),
    taken: createTaken(store),
    deleteSources: async (sources) => {
      const events = await countEvents(sources)
      const deleteFrom = async (table: (typeof SOURCE_TABLES)[number]): Promise<void> => {
        if (table === 'events' && !store.isSharded) return await patchEvents(store, sources)
        if (!(await mayHave(table, sources))) return
        const options = BACKGROUND_TABLES.includes(table) ? IN_BACKGROUND : {}
        await store.change(`DELETE FROM ${table} WHERE ${OF_SOURCES}`, { sources }, options)
      }
      await Promise.all(SOURCE_TABLES.map(deleteFrom))
      return events
    },
    clear: async () => {
      const events = await countEvents(null)
      const [dead] = await store.query(deadSql, { since_ms: 0 })
      await Promise.all(ALL_TABLES.map((table) => clearTable(store, table)))
      return { events, deadLetters: dead?.n ?? 0 }
    },
    deleteEvents: async ({ ids, stats, token }) => {
      await store.insertNative('template_stats', Buffer.from(stats, 'base64'), token)
      await store.change('DELETE FROM events WHERE id IN {ids:Array(UInt64)}', { ids }, BY_PATCH)
    },
    deleteDeadLetters: async (ids) => {
      await store.change('DELETE FROM dead_letters WHERE id IN {ids:Array(UInt64)}', { ids })
    },
  }
}
