import { randomUUID } from 'node:crypto'
import { clearTable } from '../clickhouse/clear-table.js'
import type { Store } from '../clickhouse/client.js'
import { isDataError } from '../clickhouse/failure.js'
import { statement } from '../clickhouse/statement.js'

const countSql = statement<
  { readonly all: 0 | 1; readonly sources: readonly string[] },
  { readonly counted: number }
>('event_count')
const heldSql = statement<{ readonly ids: readonly number[] }, { readonly id: number }>(
  'events_held',
)
const deadSql = statement<{ readonly since_ms: number }, { readonly n: number }>(
  'dead_letter_count',
)
/** ids in one question, which is part of an address */
const ASKED_TOGETHER = 5_000
/** every table with rows of a source */
const OF_SOURCES = [
  'events',
  'event_occurrences',
  'series_1s',
  'series_1m',
  'series_1h',
  'series_1d',
  'template_stats',
  'template_totals',
  'host_stats',
  'templates',
] as const
const OF_ALL = [...OF_SOURCES, 'dead_letters'] as const

/** What is written besides the blocks themselves; each call may be repeated. */
export interface BatchStore {
  newToken(): string
  insert(table: string, parts: readonly Uint8Array[], token: string): Promise<void>
  /** Whether rows could be read as rows of the table; nothing is stored. */
  wouldTake(table: string, parts: readonly Uint8Array[]): Promise<boolean>
  /** Which of these events are stored. */
  storedAmong(ids: readonly number[]): Promise<ReadonlySet<number>>
  /** @returns how many events went */
  deleteSources(sources: readonly string[]): Promise<number>
  clear(): Promise<{
    readonly events: number
    readonly deadLetters: number
  }>
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
  storedAmong: async (ids) => {
    const held = new Set<number>()
    for (let from = 0; from < ids.length; from += ASKED_TOGETHER) {
      const rows = await store.query(heldSql, { ids: ids.slice(from, from + ASKED_TOGETHER) })
      for (const { id } of rows) held.add(id)
    }
    return held
  },
})

export function createBatchStore(store: Store): BatchStore {
  const countEvents = async (sources: readonly string[] | null): Promise<number> => {
    const rows = await store.query(countSql, {
      all: sources === null ? 1 : 0,
      sources: sources ?? [],
    })
    return rows[0]?.counted ?? 0
  }
  return {
    newToken: () => store.newToken(),
    insert: async (table, parts, token) => {
      await store.insertNative(table, parts, token)
    },
    ...createTrials(store),
    deleteSources: async (sources) => {
      const events = await countEvents(sources)
      await Promise.all(
        OF_SOURCES.map((table) =>
          store.change(`DELETE FROM ${table} WHERE source IN {sources:Array(String)}`, {
            sources,
          }),
        ),
      )
      return events
    },
    clear: async () => {
      const events = await countEvents(null)
      const [dead] = await store.query(deadSql, { since_ms: 0 })
      await Promise.all(OF_ALL.map((table) => clearTable(store, table)))
      return { events, deadLetters: dead?.n ?? 0 }
    },
    deleteDeadLetters: async (ids) => {
      await store.change('DELETE FROM dead_letters WHERE id IN {ids:Array(UInt64)}', { ids })
    },
  }
}
