import type { Store } from '../clickhouse/client.js'
import { isDataError } from '../clickhouse/failure.js'
import { statement } from '../clickhouse/statement.js'
import { DAY_MS } from '../model/time.js'
import type { TemplateRow } from '../wal/record.js'

/**
 * The table of templates. Of several rows of a template, the last one is valid. A deleted template
 * keeps a row that redirects to itself for a day, which tells the other instances.
 */
export interface TemplateStore {
  /** Idempotent. @returns the number of rows that ClickHouse rejected and that are not stored */
  save(rows: readonly TemplateRow[]): Promise<number>
  /** In the order in which they were written. */
  all(): Promise<readonly TemplateRow[]>
  /**
   * Calls `take` with the rows that any instance wrote since `all` or the last call. Rows are passed again when `take`
   * failed.
   */
  changed(take: (changes: StoredChanges) => Promise<void>): Promise<void>
  /** How often the templates of these sources have occurred, by id. */
  seen(sources: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Deletes templates; other instances learn of it by `changed`. Idempotent. */
  forget(templates: readonly TemplateRow[]): Promise<void>
}

interface StoredChanges {
  readonly templates: readonly TemplateRow[]
  /** The ids of deleted templates. */
  readonly forgotten: readonly string[]
}

interface Row {
  readonly source: string
  readonly id: string
  readonly version: number
  readonly redirect_to: string
  readonly text: string
  readonly born: number
}

const allSql = statement<Record<string, never>, Row>('templates_all')
const seenSql = statement<
  { readonly sources: readonly string[] },
  { readonly id: string; readonly n: number }
>('template_seen')
const changedSql = statement<{ readonly since: number }, Row>('templates_changed')

/** Reads overlap by this much, because versions are timestamps of the instances, clocks may differ and inserts take time. */
const OVERLAP_MS = 300_000
const CHANGED_TIMEOUT_MS = 5_000
/** How long the rows of deleted templates are kept. */
const FORGOTTEN_MS = DAY_MS
/** The most ids of a statement; a longer list does not fit into one parameter. */
const IDS_PER_DELETE = 5_000

export function createTemplateStore(store: Store): TemplateStore {
  /** The greatest version of all instances. */
  let newest = 0
  /** The versions of rows that were passed on within the overlap, by id. */
  const passed = new Map<string, number>()

  const notePassed = (rows: readonly Row[]): void => {
    for (const { version } of rows) newest = Math.max(newest, version)
    const since = newest - OVERLAP_MS
    for (const [key, version] of passed) if (version <= since) passed.delete(key)
    for (const row of rows) if (row.version > since) passed.set(keyOf(row), row.version)
  }

  return {
    save: async (rows) => {
      newest = Math.max(newest + 1, Date.now())
      const written = rows.map((row) => toRow(row, newest))
      return await saveRows(store, written)
    },
    all: async () => {
      const rows = await store.query(allSql, {})
      notePassed(rows)
      return rows.map(toTemplate)
    },
    changed: async (take) => {
      const since = Math.max(0, newest - OVERLAP_MS)
      const rows = await store.query(changedSql, { since }, { timeoutMs: CHANGED_TIMEOUT_MS })
      const news = rows.filter((row) => passed.get(keyOf(row)) !== row.version)
      const isForgotten = ({ id, redirect_to: to }: Row): boolean => to === id
      await take({
        templates: news.filter((row) => !isForgotten(row)).map(toTemplate),
        forgotten: news.filter(isForgotten).map(({ id }) => id),
      })
      notePassed(news)
    },
    seen: async (sources) => {
      const rows = await store.query(seenSql, { sources })
      return new Map(rows.map(({ id, n }) => [id, n]))
    },
    forget: async (templates) => {
      newest = Math.max(newest + 1, Date.now())
      const version = newest
      const marks = templates.map((row) => ({ ...row, redirectId: row.id, text: '' }))
      await store.insertRows(
        'templates',
        marks.map((row) => toRow(row, version)),
      )
      for (const row of marks) passed.set(keyOf(row), version)
      for (let from = 0; from < marks.length; from += IDS_PER_DELETE) {
        const ids = marks.slice(from, from + IDS_PER_DELETE).map(({ id }) => BigInt(`0x${id}`))
        await store.change(
          'DELETE FROM templates WHERE template_id IN {ids:Array(UInt64)} AND version < {version:UInt64}',
          { ids, version },
        )
      }
      await store.change(
        'DELETE FROM templates WHERE redirect_to = template_id AND version < {version:UInt64}',
        { version: version - FORGOTTEN_MS },
      )
    },
  }
}

const keyOf = ({ source, id }: Pick<Row, 'source' | 'id'>): string => `${id} ${source}`

const toTemplate = ({ source, id, redirect_to: redirectId, text, born }: Row): TemplateRow => ({
  source,
  id,
  redirectId,
  text,
  born,
})

const toRow = ({ source, id, redirectId, text, born }: TemplateRow, version: number) => ({
  source,
  template_id: toDecimal(id),
  version,
  born,
  redirect_to: toDecimal(redirectId),
  text,
})

const toDecimal = (hex: string): string => (hex === '' ? '0' : BigInt(`0x${hex}`).toString())

/** Inserts rows one by one when ClickHouse rejects them together. */
async function saveRows(store: Store, rows: readonly object[]): Promise<number> {
  try {
    await store.insertRows('templates', rows)
    return 0
  } catch (error) {
    if (!isDataError(error)) throw error
  }
  if (rows.length === 1) return 1
  let refused = 0
  for (const row of rows) refused += await saveRows(store, [row])
  return refused
}
