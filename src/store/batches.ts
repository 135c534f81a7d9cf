import type { Store } from './client.js'
import { statement } from './statement.js'

/** A mined template as it is stored. */
export interface StoredTemplate {
  readonly source: string
  /** 16 hex digits */
  readonly id: string
  /** '' = none */
  readonly redirectTo: string
  readonly text: string
}

const countSql = statement<
  { readonly all: 0 | 1; readonly sources: readonly string[] },
  { readonly counted: number }
>('event_count')
const templateCountSql = statement<
  Record<string, never>,
  { readonly templates: number; readonly dead_letters: number }
>('template_count')
const templatesSql = statement<
  Record<string, never>,
  {
    readonly source: string
    readonly id: string
    readonly redirect_to: string
    readonly text: string
  }
>('templates_all')

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
  'templates',
] as const
const OF_ALL = [...OF_SOURCES, 'dead_letters'] as const

const toDecimal = (hex: string): string => (hex === '' ? '0' : BigInt(`0x${hex}`).toString())

/** What is written besides the blocks themselves; each call may be repeated. */
export interface BatchStore {
  insert(table: string, parts: readonly Uint8Array[], token: string): Promise<void>
  saveTemplates(rows: readonly (StoredTemplate & { readonly version: number })[]): Promise<void>
  /** In the order in which they were saved. */
  templates(): Promise<readonly StoredTemplate[]>
  /** @returns how many events went */
  deleteSources(sources: readonly string[]): Promise<number>
  clear(): Promise<{
    readonly events: number
    readonly templates: number
    readonly deadLetters: number
  }>
  deleteDeadLetters(ids: readonly number[]): Promise<void>
}

export function createBatchStore(store: Store): BatchStore {
  const countEvents = async (sources: readonly string[] | null): Promise<number> => {
    const rows = await store.query(countSql, {
      all: sources === null ? 1 : 0,
      sources: sources ?? [],
    })
    return rows[0]?.counted ?? 0
  }
  return {
    insert: async (table, parts, token) => {
      await store.insertNative(table, parts, token)
    },
    saveTemplates: async (rows) => {
      const values = rows.map(({ source, id, version, redirectTo, text }) => ({
        source,
        template_id: toDecimal(id),
        version,
        redirect_to: toDecimal(redirectTo),
        text,
      }))
      await store.insertRows('templates', values)
    },
    templates: async () =>
      (await store.query(templatesSql, {})).map(({ redirect_to, ...row }) => ({
        ...row,
        redirectTo: redirect_to,
      })),
    deleteSources: async (sources) => {
      const events = await countEvents(sources)
      await Promise.all(
        OF_SOURCES.map((table) =>
          store.command(`DELETE FROM ${table} WHERE source IN {sources:Array(String)}`, {
            sources,
          }),
        ),
      )
      return events
    },
    clear: async () => {
      const events = await countEvents(null)
      const [counts] = await store.query(templateCountSql, {})
      await Promise.all(OF_ALL.map((table) => store.command(`TRUNCATE TABLE ${table}`)))
      return {
        events,
        templates: counts?.templates ?? 0,
        deadLetters: counts?.dead_letters ?? 0,
      }
    },
    deleteDeadLetters: async (ids) => {
      await store.command('DELETE FROM dead_letters WHERE id IN {ids:Array(UInt64)}', { ids })
    },
  }
}
