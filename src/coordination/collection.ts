import { AppError } from '../model/errors.js'
import type { Store } from '../clickhouse/client.js'
import { Places, type Bound } from './bound.js'
import type { EntityWriter } from './entity-writer.js'
import type { LogAt } from '../telemetry/log.js'
import { statement } from '../clickhouse/statement.js'

export interface EntityChange<T> {
  readonly id: string
  /** Null after a deletion. */
  readonly value: T | null
  /** Null for a new record. */
  readonly previous: T | null
  /** `reload` for a change that another instance made. */
  readonly origin: 'local' | 'reload'
}

export interface LoadedRow {
  readonly id: string
  readonly version: number
  readonly doc: string
}

/** The id and newest version of a record, without its content. */
export interface ChangedRow {
  readonly id: string
  readonly version: number
  readonly is_deleted: number
}

export interface CollectionDeps {
  readonly store: Store
  readonly writer: EntityWriter
  readonly log: LogAt<'debug' | 'info' | 'warn'>
  /** @param above the newest version of the record */
  readonly nextVersion: (above?: number) => number
  /** A lock over all instances; null for a single instance. */
  readonly exclusive: (<T>(key: string, work: () => Promise<T>) => Promise<T>) | null
  readonly onStored: (() => Promise<void>) | null
  /** Reads what other instances have stored. */
  readonly catchUp: () => Promise<void>
}

interface CollectionSpec<T> {
  readonly kind: string
  readonly parse: (doc: unknown) => T
  readonly rows: readonly LoadedRow[]
  readonly bound?: Bound<T> | undefined
}

interface Versioned<T> {
  readonly version: number
  readonly value: T
}

const PAGE_ROWS = 10_000
/** With more changed records than this, the whole collection is read. */
const MAX_SINGLE_READS = 20
const MAX_ID_CHARS = 1_000
const MAX_DOC_CHARS = 4 * 1024 * 1024

const entitySql = statement<
  { readonly kind: string; readonly id: string },
  { readonly version: number; readonly is_deleted: number; readonly doc: string }
>('entity')
const ofKindSql = statement<
  { readonly kind: string; readonly after_id: string; readonly limit: number },
  LoadedRow
>('entities_of_kind')
const clearSql = statement<{ readonly kind: string; readonly version: number }, never>(
  'clear_entities',
)

/**
 * The records of one kind, all in memory. Reads are synchronous; a change resolves when its version is on
 * disk. The changes of one id follow one another, those of several ids are made at once. With several
 * instances a change is made under a lock of the id and begins by reading the stored version. The
 * records of a bounded kind are then created one after the other, so that the bound holds for all instances.
 *
 * A change rejects with `dependency_unavailable` when ClickHouse does not confirm it. Memory keeps the old
 * value then, and the next change of that id begins by reading the stored version. Values are shared with
 * every reader: treat them as frozen.
 */
export class Collection<T extends object> {
  readonly kind: string
  readonly #deps: CollectionDeps
  readonly #parse: (doc: unknown) => T
  readonly #places: Places<T> | null
  #records = new Map<string, Versioned<T>>()
  /** The last change in progress, by id. */
  #tails = new Map<string, Promise<unknown>>()
  /** Changes that begin after `clear` or `reloadAll` wait for its end. */
  #barrier: Promise<unknown> = Promise.resolve()
  /** Ids whose last write has an unknown outcome. */
  readonly #uncertain = new Set<string>()
  /** Versions that were unreadable, so that each is reported once. */
  readonly #unreadable = new Map<string, number>()
  readonly #listeners = new Set<(change: EntityChange<T>) => void>()

  constructor(deps: CollectionDeps, spec: CollectionSpec<T>) {
    this.#deps = deps
    this.kind = spec.kind
    this.#parse = spec.parse
    this.#places = spec.bound === undefined ? null : new Places(spec.bound)
    for (const row of spec.rows) {
      const record = this.#read(row)
      if (record !== null) this.#records.set(row.id, record)
    }
  }

  get size(): number {
    return this.#records.size
  }

  get(id: string): T | null {
    return this.#records.get(id)?.value ?? null
  }

  /** Gives the values in no particular order. */
  list(): T[] {
    return Array.from(this.#records.values(), ({ value }) => value)
  }

  /** Gives the ids and values in no particular order. */
  entries(): (readonly [string, T])[] {
    return Array.from(this.#records, ([id, { value }]) => [id, value] as const)
  }

  async put(id: string, doc: T): Promise<void> {
    await this.update(id, () => doc)
  }

  /** @returns whether there was one */
  async remove(id: string): Promise<boolean> {
    let existed = false
    await this.update(id, (current) => {
      existed = current !== null
      return null
    })
    return existed
  }

  /**
   * Changes a record on the basis of its current value.
   *
   * @param change called once, when the changes before it are stored. null deletes the record, the same value
   *   changes nothing, and an exception rejects the update
   * @returns the record as it is stored
   */
  update(id: string, change: (current: T | null) => T | null): Promise<T | null> {
    if (id === '' || id.length > MAX_ID_CHARS || /\p{Surrogate}/u.test(id)) {
      const problem = `an id of ${id.length} characters is not 1..${MAX_ID_CHARS} of Unicode`
      return Promise.reject(new RangeError(problem))
    }
    const { exclusive, catchUp } = this.#deps
    if (exclusive === null)
      return this.#afterEarlier(id, () => this.#change(id, change, this.#uncertain.has(id)))
    const work = (): Promise<T | null> =>
      this.#afterEarlier(id, () =>
        exclusive(`entity:${this.kind}:${id}`, () => this.#change(id, change, true)),
      )
    if (this.#places === null || this.#records.has(id)) return work()
    return exclusive(`create:${this.kind}`, async () => {
      await catchUp()
      return await work()
    })
  }

  /** Deletes every record, also those that other instances have created. @returns how many were known here */
  clear(): Promise<number> {
    return this.#alone(async () => {
      const params = { kind: this.kind, version: this.#deps.nextVersion() }
      await this.#deps.store.command(clearSql.sql, params)
      const cleared = this.#records
      this.#records = new Map()
      this.#uncertain.clear()
      for (const [id, { value }] of cleared) this.#announce(id, null, value, 'local')
      await this.#deps.onStored?.()
      return cleared.size
    })
  }

  /** Reads a record that another instance has changed. */
  async reload(id: string): Promise<void> {
    await this.#afterEarlier(id, () => this.#fetch(id))
  }

  /** Reads the records whose versions in these rows are newer than those in memory. */
  async catchUp(rows: readonly ChangedRow[]): Promise<void> {
    const newer = rows.filter((row) => this.#isNewer(row))
    if (newer.length > MAX_SINGLE_READS) await this.reloadAll()
    else await Promise.all(newer.map(({ id }) => this.reload(id)))
  }

  #isNewer({ id, version, is_deleted: isDeleted }: ChangedRow): boolean {
    const known = this.#records.get(id)
    if (known !== undefined) return known.version < version
    return isDeleted === 0 && this.#unreadable.get(id) !== version
  }

  reloadAll(): Promise<void> {
    return this.#alone(async () => {
      const before = this.#records
      const after = await this.#fetchAll()
      this.#records = after
      this.#uncertain.clear()
      for (const [id, { value }] of before) {
        if (!after.has(id)) this.#announce(id, null, value, 'reload')
      }
      for (const [id, { value, version }] of after) {
        const previous = before.get(id)
        if (previous?.version !== version) {
          this.#announce(id, value, previous?.value ?? null, 'reload')
        }
      }
    })
  }

  /**
   * @param listener called after each change, when memory has it; must not throw
   * @returns unsubscribes
   */
  onChange(listener: (change: EntityChange<T>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async #change(
    id: string,
    change: (current: T | null) => T | null,
    fetchFirst: boolean,
  ): Promise<T | null> {
    if (fetchFirst) await this.#fetch(id)
    const before = this.#records.get(id)
    const current = before?.value ?? null
    const wanted = change(current)
    if (wanted === current) return current
    const doc = wanted === null ? '' : JSON.stringify(wanted)
    if (doc.length > MAX_DOC_CHARS) {
      throw new RangeError(`${this.kind} of ${doc.length} characters exceeds ${MAX_DOC_CHARS}`)
    }
    // A value that a restart could not read is refused.
    const value = wanted === null ? null : this.#parse(JSON.parse(doc))
    const version = this.#deps.nextVersion(before?.version)
    if (value === null) {
      await this.#write(id, version, null)
      this.#records.delete(id)
    } else await this.#store(id, { version, value }, doc)
    this.#announce(id, value, current, 'local')
    await this.#deps.onStored?.()
    return value
  }

  async #store(id: string, record: Versioned<T>, doc: string): Promise<void> {
    if (!this.#records.has(id)) this.#places?.take(id, record.value, this.#records)
    try {
      await this.#write(id, record.version, doc)
      this.#records.set(id, record)
    } finally {
      this.#places?.free(id)
    }
  }

  async #write(id: string, version: number, doc: string | null): Promise<void> {
    const isDeleted = doc === null ? 1 : 0
    try {
      const { kind } = this
      await this.#deps.writer.write({ kind, id, version, is_deleted: isDeleted, doc: doc ?? '' })
    } catch (error) {
      if (error instanceof AppError) this.#uncertain.add(id)
      throw error
    }
  }

  async #fetch(id: string): Promise<void> {
    const [row] = await this.#deps.store.query(entitySql, { kind: this.kind, id })
    this.#uncertain.delete(id)
    const before = this.#records.get(id)
    if (row === undefined || row.version === before?.version) return
    // The next version of this instance is above it, also when another instance's clock is ahead.
    this.#deps.nextVersion(row.version)
    const record = row.is_deleted === 1 ? null : this.#read({ ...row, id })
    if (record === null) this.#records.delete(id)
    else this.#records.set(id, record)
    if (record === null && before === undefined) return
    this.#announce(id, record?.value ?? null, before?.value ?? null, 'reload')
  }

  async #fetchAll(): Promise<Map<string, Versioned<T>>> {
    const all = new Map<string, Versioned<T>>()
    for (let afterId = ''; ;) {
      const params = { kind: this.kind, after_id: afterId, limit: PAGE_ROWS }
      const page = await this.#deps.store.query(ofKindSql, params)
      for (const row of page) {
        const record = this.#read(row)
        if (record !== null) all.set(row.id, record)
        this.#deps.nextVersion(row.version)
      }
      afterId = page.at(-1)?.id ?? ''
      if (page.length < PAGE_ROWS) return all
    }
  }

  /** @returns null for an unreadable row, which is reported */
  #read({ id, version, doc }: LoadedRow): Versioned<T> | null {
    try {
      return { version, value: this.#parse(JSON.parse(doc)) }
    } catch (error) {
      // The message of JSON.parse quotes the text, which may be confidential.
      const reason =
        error instanceof SyntaxError || !(error instanceof Error) ? 'not JSON' : error.message
      if (this.#unreadable.get(id) !== version)
        this.#deps.log.warn({ kind: this.kind, id, reason }, 'unreadable record left out')
      this.#unreadable.set(id, version)
      return null
    }
  }

  #announce(id: string, value: T | null, previous: T | null, origin: 'local' | 'reload'): void {
    for (const listener of this.#listeners) listener({ id, value, previous, origin })
  }

  /** Runs `work` after the earlier changes of `id`. */
  #afterEarlier<R>(id: string, work: () => Promise<R>): Promise<R> {
    const result = (this.#tails.get(id) ?? this.#barrier).then(work)
    const end = (): void => {
      if (this.#tails.get(id) === tail) this.#tails.delete(id)
    }
    const tail = result.then(end, end)
    this.#tails.set(id, tail)
    return result
  }

  /** Runs `work` after every earlier change and before every later one. */
  #alone<R>(work: () => Promise<R>): Promise<R> {
    const before = [this.#barrier, ...this.#tails.values()]
    const result = Promise.all(before).then(work)
    this.#barrier = result.then(ignore, ignore)
    this.#tails = new Map()
    return result
  }
}

/** A failed change rejects for its caller only; the next one proceeds. */
const ignore = (): void => {}
