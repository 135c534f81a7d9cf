import { Collection, type CollectionParts, type LoadedRow } from './collection.js'
import type { Store } from './client.js'
import { EntityWriter } from './entity-writer.js'
import type { StoreLog } from './log.js'
import { statement } from './statement.js'

export interface EntitiesOptions {
  readonly log: StoreLog
  /** ms since 1970; versions follow it but never go back with it */
  readonly now?: () => number
  /**
   * Runs `work` while no other instance holds `key`. Given when several instances share the
   * database: each change then starts from what is stored instead of from memory.
   */
  readonly exclusive?: <T>(key: string, work: () => Promise<T>) => Promise<T>
}

/**
 * Small records, all in memory: reads are synchronous, a write resolves when it is on disk.
 * One table holds them; a change is a new version of a row, a deletion too.
 */
export interface Entities {
  /**
   * The records of one kind; to be asked for once. Unreadable rows are left out and reported.
   *
   * @param kind lower-case words joined by `_`
   * @param parse checks what was stored, and what is about to be; throws what is wrong, without values
   */
  collection<T extends object>(kind: string, parse: (doc: unknown) => T): Collection<T>
  /** Resolves when no write is under way. */
  idle(): Promise<void>
}

const PAGE_ROWS = 10_000

const pageSql = statement<
  { readonly after_kind: string; readonly after_id: string; readonly limit: number },
  LoadedRow & { readonly kind: string }
>('entities_page')
const newestVersionSql = statement<Record<string, never>, { readonly version: number }>(
  'entities_newest_version',
)

/** Reads every entity into memory. @throws AppError('dependency_unavailable') when it cannot */
export async function createEntities(store: Store, options: EntitiesOptions): Promise<Entities> {
  const [newest] = await store.query(newestVersionSql, {})
  const nextVersion = createVersions(newest?.version ?? 0, options.now ?? Date.now)
  const loaded = await loadAll(store)
  const writer = new EntityWriter(store)
  const taken = new Set<string>()
  const parts: CollectionParts = {
    store,
    writer,
    nextVersion,
    log: options.log,
    exclusive: options.exclusive ?? null,
  }
  return {
    collection(kind, parse) {
      if (!/^[a-z][a-z_]{0,39}$/.test(kind) || taken.has(kind)) {
        throw new Error(`bug: entity kind ${kind} is not a word, or is used twice`)
      }
      taken.add(kind)
      const rows = loaded.get(kind) ?? []
      loaded.delete(kind)
      return new Collection(parts, { kind, parse, rows })
    },
    idle: () => writer.idle(),
  }
}

async function loadAll(store: Store): Promise<Map<string, LoadedRow[]>> {
  const loaded = new Map<string, LoadedRow[]>()
  let after = { after_kind: '', after_id: '' }
  for (;;) {
    const page = await store.query(pageSql, { ...after, limit: PAGE_ROWS })
    for (const row of page) {
      const rows = loaded.get(row.kind)
      if (rows === undefined) loaded.set(row.kind, [row])
      else rows.push(row)
    }
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE_ROWS) return loaded
    after = { after_kind: last.kind, after_id: last.id }
  }
}

/** Microseconds of the clock, or the last version plus one where the clock does not advance. */
function createVersions(newest: number, now: () => number): (above?: number) => number {
  let last = newest
  return (above = 0) => {
    last = Math.max(last + 1, above + 1, now() * 1_000)
    return last
  }
}
