import type { Store } from '../clickhouse/client.js'
import { isDataError } from '../clickhouse/failure.js'
import { statement } from '../clickhouse/statement.js'

/** A mined template as it is stored. */
export interface StoredTemplate {
  readonly source: string
  /** 16 hex digits */
  readonly id: string
  /** '' = none */
  readonly redirectTo: string
  readonly text: string
  /** microseconds since 1970 */
  readonly born: number
}

/** The table of templates. Of several rows of a template the one that was written last counts. */
export interface TemplateStore {
  /** May be repeated. @returns how many rows ClickHouse refused; they are left out */
  save(rows: readonly StoredTemplate[]): Promise<number>
  /** In the order in which they were written. */
  all(): Promise<readonly StoredTemplate[]>
  /**
   * Calls `take` with what was written, by other instances too, since `all` or the last call; what it has
   * taken is not told again.
   */
  changed(take: (templates: readonly StoredTemplate[]) => Promise<void>): Promise<void>
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
const changedSql = statement<{ readonly since: number }, Row>('templates_changed')

/** versions are clocks of the instances: how far one may be behind another, or a row be late, ms */
const OVERLAP_MS = 300_000
const CHANGED_TIMEOUT_MS = 5_000

export function createTemplateStore(store: Store): TemplateStore {
  /** the greatest version that was seen anywhere */
  let newest = 0
  /** versions told, of those rows that `changed` would find again */
  const told = new Map<string, number>()

  const noteTold = (rows: readonly Row[]): void => {
    for (const { version } of rows) newest = Math.max(newest, version)
    const since = newest - OVERLAP_MS
    for (const [key, version] of told) if (version <= since) told.delete(key)
    for (const row of rows) if (row.version > since) told.set(keyOf(row), row.version)
  }

  return {
    save: async (rows) => {
      newest = Math.max(newest + 1, Date.now())
      const written = rows.map((row) => toRow(row, newest))
      return await saveRows(store, written)
    },
    all: async () => {
      const rows = await store.query(allSql, {})
      noteTold(rows)
      return rows.map(toTemplate)
    },
    changed: async (take) => {
      const since = Math.max(0, newest - OVERLAP_MS)
      const rows = await store.query(changedSql, { since }, { timeoutMs: CHANGED_TIMEOUT_MS })
      const news = rows.filter((row) => told.get(keyOf(row)) !== row.version)
      await take(news.map(toTemplate))
      noteTold(news)
    },
  }
}

const keyOf = ({ source, id }: Row): string => `${id} ${source}`

const toTemplate = ({ source, id, redirect_to: redirectTo, text, born }: Row): StoredTemplate => ({
  source,
  id,
  redirectTo,
  text,
  born,
})

const toRow = ({ source, id, redirectTo, text, born }: StoredTemplate, version: number) => ({
  source,
  template_id: toDecimal(id),
  version,
  born,
  redirect_to: toDecimal(redirectTo),
  text,
})

const toDecimal = (hex: string): string => (hex === '' ? '0' : BigInt(`0x${hex}`).toString())

/** Rows one by one when they are refused together. */
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
