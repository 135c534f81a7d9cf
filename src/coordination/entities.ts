import type { TSchema } from '@sinclair/typebox'

import type { Store } from '../clickhouse/client.js'
import type { Bound } from './bound.js'
import { Collection, type ChangedRow, type CollectionDeps, type LoadedRow } from './collection.js'
import { EntityWriter } from './entity-writer.js'
import type { LogAt } from '../telemetry/log.js'
import { statement } from '../clickhouse/statement.js'
import { createSchemaCheck } from './schema-check.js'

export interface EntitiesOptions {
  readonly log: LogAt<'debug' | 'info' | 'warn'>
  /** Milliseconds since 1970; versions increase even when the clock is set back. */
  readonly now?: () => number
  /**
   * Runs `work` while no other instance holds `key`. Given when several instances share the database: each
   * change then starts from the stored version instead of from memory.
   */
  readonly exclusive?: <T>(key: string, work: () => Promise<T>) => Promise<T>
  /** Called when a change is stored; the change resolves after it. Must not reject. */
  readonly onStored?: () => Promise<void>
}

/** The schema of a stored record. */
export type DocSchema<T> = TSchema & { readonly static: T }

/**
 * The small records of the service: users, keys, sources, alerts and so on. One ClickHouse table holds them all,
 * and each kind has its collection in memory. A change or deletion inserts a new version of the row; the
 * newest version counts.
 */
export interface Entities {
  /**
   * Opens the records of one kind, once. Unreadable rows are left out and reported.
   *
   * @param kind lower-case words joined by `_`
   * @param schema validates records when they are read and before they are written
   * @param bound default: any number of records
   */
  collection<T extends object>(kind: string, schema: DocSchema<T>, bound?: Bound<T>): Collection<T>
  idle(): Promise<void>
  /**
   * Reads what other instances have stored since the last call or the start.
   *
   * @throws AppError('dependency_unavailable') on failure; the next call reads the same changes
   */
  catchUp(): Promise<void>
}

const PAGE_ROWS = 10_000
/** Each read overlaps the one before by this much, because rows become visible after the time in their version. */
const OVERLAP_S = 60
/** A slow read fails early, because it is repeated soon and callers wait for it. */
const CATCH_UP_MS = 5_000

const changedSql = statement<{ readonly seconds: number }, ChangedRow & { readonly kind: string }>(
  'entities_changed',
)
const pageSql = statement<
  { readonly after_kind: string; readonly after_id: string; readonly limit: number },
  LoadedRow & { readonly kind: string }
>('entities_page')
const newestVersionSql = statement<Record<string, never>, { readonly version: number }>(
  'entities_newest_version',
)

/** Reads every entity into memory. @throws AppError('dependency_unavailable') on failure */
export async function createEntities(store: Store, options: EntitiesOptions): Promise<Entities> {
  const loadedAtMs = performance.now()
  const [newest] = await store.query(newestVersionSql, {})
  const nextVersion = createVersions(newest?.version ?? 0, options.now ?? Date.now)
  const loaded = await loadAll(store)
  const writer = new EntityWriter(store)
  const collections = new Map<string, Pick<Collection<object>, 'catchUp'>>()
  const catchUp = createCatchUp(store, collections, loadedAtMs)
  const deps: CollectionDeps = {
    store,
    writer,
    nextVersion,
    log: options.log,
    exclusive: options.exclusive ?? null,
    onStored: options.onStored ?? null,
    catchUp,
  }
  return {
    collection(kind, schema, bound) {
      if (!/^[a-z][a-z_]{0,39}$/.test(kind) || collections.has(kind)) {
        throw new Error(`bug: entity kind ${kind} is not a word, or is used twice`)
      }
      const rows = loaded.get(kind) ?? []
      loaded.delete(kind)
      const collection = new Collection(deps, { kind, parse: parserOf(schema), rows, bound })
      collections.set(kind, collection)
      return collection
    },
    idle: () => writer.idle(),
    catchUp,
  }
}

function parserOf<T>(schema: DocSchema<T>): (doc: unknown) => T {
  const check = createSchemaCheck(schema)
  return (doc) => {
    const fault = check(doc)
    if (fault !== null) throw new Error(`stored record does not fit: ${fault}`)
    // The check above holds.
    return doc as T
  }
}

function createCatchUp(
  store: Store,
  collections: ReadonlyMap<string, Pick<Collection<object>, 'catchUp'>>,
  loadedAtMs: number,
): () => Promise<void> {
  let lastMs = loadedAtMs
  return async () => {
    const nowMs = performance.now()
    const seconds = Math.ceil((nowMs - lastMs) / 1000) + OVERLAP_S
    const rows = await store.query(changedSql, { seconds }, { timeoutMs: CATCH_UP_MS })
    const byKind = new Map<string, ChangedRow[]>()
    for (const row of rows) {
      const same = byKind.get(row.kind)
      if (same === undefined) byKind.set(row.kind, [row])
      else same.push(row)
    }
    await Promise.all(
      [...byKind].map(async ([kind, changed]) => await collections.get(kind)?.catchUp(changed)),
    )
    lastMs = nowMs
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

/** Versions are microseconds of the clock, or the last version plus one where the clock does not advance. */
function createVersions(newest: number, now: () => number): (above?: number) => number {
  let last = newest
  return (above = 0) => {
    last = Math.max(last + 1, above + 1, now() * 1_000)
    return last
  }
}
