import { AppError } from '../model/errors.js'
import type { Store } from '../clickhouse/client.js'
import type { EntityWriter } from './entity-writer.js'
import type { StoreLog } from '../clickhouse/log.js'
import { statement } from '../clickhouse/statement.js'

export interface EntityChange<T> {
  readonly id: string
  /** null when the record was deleted */
  readonly value: T | null
  /** null when it is new */
  readonly previous: T | null
  /** local: changed here; reload: changed by another instance */
  readonly origin: 'local' | 'reload'
}

export interface LoadedRow {
  readonly id: string
  readonly version: number
  readonly doc: string
}

/** The newest version of a record, without its content. */
export interface ChangedRow {
  readonly id: string
  readonly version: number
  readonly is_deleted: number
}

export interface CollectionParts {
  readonly store: Store
  readonly writer: EntityWriter
  readonly log: StoreLog
  /** @param above a version that is known to exist */
  readonly nextVersion: (above?: number) => number
  readonly exclusive: (<T>(key: string, work: () => Promise<T>) => Promise<T>) | null
  readonly onStored: (() => Promise<void>) | null
}

interface CollectionSpec<T> {
  readonly kind: string
  readonly parse: (doc: unknown) => T
  readonly rows: readonly LoadedRow[]
}

interface Held<T> {
  readonly version: number
  readonly value: T
}

const PAGE_ROWS = 10_000
/** more records than this are read all at once */
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
 * The records of one kind. Changes of one id are made one after the other, those of several at once.
 *
 * Every write rejects with `dependency_unavailable` when ClickHouse does not confirm it; memory then
 * still has the old value, and the next change of that id begins by reading what is stored.
 * Values are shared with every reader: treat them as frozen.
 */
export class Collection<T extends object> {
  readonly kind: string
  readonly #parts: CollectionParts
  readonly #parse: (doc: unknown) => T
  #held = new Map<string, Held<T>>()
  /** the end of the last change under way, by id */
  #tails = new Map<string, Promise<unknown>>()
  /** changes begun after `clear` or a reload of everything wait for it */
  #gate: Promise<unknown> = Promise.resolve()
  readonly #uncertain = new Set<string>()
  /** versions that were found unreadable, so that each is reported once */
  readonly #unreadable = new Map<string, number>()
  readonly #listeners = new Set<(change: EntityChange<T>) => void>()

  constructor(parts: CollectionParts, spec: CollectionSpec<T>) {
    this.#parts = parts
    this.kind = spec.kind
    this.#parse = spec.parse
    for (const row of spec.rows) {
      const held = this.#read(row)
      if (held !== null) this.#held.set(row.id, held)
    }
  }

  get size(): number {
    return this.#held.size
  }

  get(id: string): T | null {
    return this.#held.get(id)?.value ?? null
  }

  /** A copy, in no particular order. */
  list(): T[] {
    return Array.from(this.#held.values(), ({ value }) => value)
  }

  /** Every record with its id, in no particular order. */
  entries(): (readonly [string, T])[] {
    return Array.from(this.#held, ([id, { value }]) => [id, value] as const)
  }

  /** Creates or replaces a record. */
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
   * Changes a record on the basis of what it is by then.
   *
   * @param change called once, when the changes before it are stored; null deletes, the same value
   *   leaves everything as it is, what it throws is thrown on
   * @returns the record as it is stored now
   */
  update(id: string, change: (current: T | null) => T | null): Promise<T | null> {
    if (id === '' || id.length > MAX_ID_CHARS || /\p{Surrogate}/u.test(id)) {
      const problem = `an id of ${id.length} characters is not 1..${MAX_ID_CHARS} of Unicode`
      return Promise.reject(new RangeError(problem))
    }
    const { exclusive } = this.#parts
    return this.#inTurn(id, () =>
      exclusive === null
        ? this.#change(id, change, this.#uncertain.has(id))
        : exclusive(`entity:${this.kind}:${id}`, () => this.#change(id, change, true)),
    )
  }

  /** Deletes every record, those other instances have made too. @returns how many were known here */
  clear(): Promise<number> {
    return this.#alone(async () => {
      const params = { kind: this.kind, version: this.#parts.nextVersion() }
      await this.#parts.store.command(clearSql.sql, params)
      const cleared = this.#held
      this.#held = new Map()
      this.#uncertain.clear()
      for (const [id, { value }] of cleared) this.#announce(id, null, value, 'local')
      await this.#parts.onStored?.()
      return cleared.size
    })
  }

  /** Takes over what is stored, after another instance has changed a record. */
  async reload(id: string): Promise<void> {
    await this.#inTurn(id, () => this.#fetch(id))
  }

  /** Takes over those of the rows that are newer than what is known. */
  async follow(rows: readonly ChangedRow[]): Promise<void> {
    const news = rows.filter((row) => this.#isNews(row))
    if (news.length > MAX_SINGLE_READS) await this.reloadAll()
    else await Promise.all(news.map(({ id }) => this.reload(id)))
  }

  #isNews({ id, version, is_deleted: isDeleted }: ChangedRow): boolean {
    const held = this.#held.get(id)
    if (held !== undefined) return held.version < version
    return isDeleted === 0 && this.#unreadable.get(id) !== version
  }

  /** Takes over everything that is stored. */
  reloadAll(): Promise<void> {
    return this.#alone(async () => {
      const before = this.#held
      const after = await this.#fetchAll()
      this.#held = after
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
   * @param listener called after each change, in memory already; must not throw
   * @returns ends it
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
    const before = this.#held.get(id)
    const current = before?.value ?? null
    const wanted = change(current)
    if (wanted === current) return current
    const doc = wanted === null ? '' : JSON.stringify(wanted)
    if (doc.length > MAX_DOC_CHARS) {
      throw new RangeError(`${this.kind} of ${doc.length} characters exceeds ${MAX_DOC_CHARS}`)
    }
    // What a restart would read: a value that cannot be read back is refused here.
    const value = wanted === null ? null : this.#parse(JSON.parse(doc))
    const version = this.#parts.nextVersion(before?.version)
    await this.#write(id, version, value === null ? null : doc)
    if (value === null) this.#held.delete(id)
    else this.#held.set(id, { version, value })
    this.#announce(id, value, current, 'local')
    await this.#parts.onStored?.()
    return value
  }

  async #write(id: string, version: number, doc: string | null): Promise<void> {
    const isDeleted = doc === null ? 1 : 0
    try {
      const { kind } = this
      await this.#parts.writer.write({ kind, id, version, is_deleted: isDeleted, doc: doc ?? '' })
    } catch (error) {
      if (error instanceof AppError) this.#uncertain.add(id)
      throw error
    }
  }

  async #fetch(id: string): Promise<void> {
    const [row] = await this.#parts.store.query(entitySql, { kind: this.kind, id })
    this.#uncertain.delete(id)
    const before = this.#held.get(id)
    if (row === undefined || row.version === before?.version) return
    // Later versions of ours are above it, also when another instance's clock is ahead.
    this.#parts.nextVersion(row.version)
    const held = row.is_deleted === 1 ? null : this.#read({ ...row, id })
    if (held === null) this.#held.delete(id)
    else this.#held.set(id, held)
    if (held === null && before === undefined) return
    this.#announce(id, held?.value ?? null, before?.value ?? null, 'reload')
  }

  async #fetchAll(): Promise<Map<string, Held<T>>> {
    const all = new Map<string, Held<T>>()
    for (let afterId = ''; ;) {
      const params = { kind: this.kind, after_id: afterId, limit: PAGE_ROWS }
      const page = await this.#parts.store.query(ofKindSql, params)
      for (const row of page) {
        const held = this.#read(row)
        if (held !== null) all.set(row.id, held)
        this.#parts.nextVersion(row.version)
      }
      afterId = page.at(-1)?.id ?? ''
      if (page.length < PAGE_ROWS) return all
    }
  }

  /** @returns null for a row that is not what it should be, which is reported */
  #read({ id, version, doc }: LoadedRow): Held<T> | null {
    try {
      return { version, value: this.#parse(JSON.parse(doc)) }
    } catch (error) {
      // A parser of JSON quotes the text it fails on, and that may hold anything.
      const reason =
        error instanceof SyntaxError || !(error instanceof Error) ? 'not JSON' : error.message
      if (this.#unreadable.get(id) !== version)
        this.#parts.log.warn({ kind: this.kind, id, reason }, 'unreadable record left out')
      this.#unreadable.set(id, version)
      return null
    }
  }

  #announce(id: string, value: T | null, previous: T | null, origin: 'local' | 'reload'): void {
    for (const listener of this.#listeners) listener({ id, value, previous, origin })
  }

  /** Runs `work` after the changes of `id` that were asked for before it. */
  #inTurn<R>(id: string, work: () => Promise<R>): Promise<R> {
    const result = (this.#tails.get(id) ?? this.#gate).then(work)
    const end = (): void => {
      if (this.#tails.get(id) === tail) this.#tails.delete(id)
    }
    const tail = result.then(end, end)
    this.#tails.set(id, tail)
    return result
  }

  /** Runs `work` after every change asked for before it, and before every later one. */
  #alone<R>(work: () => Promise<R>): Promise<R> {
    const before = [this.#gate, ...this.#tails.values()]
    const result = Promise.all(before).then(work)
    this.#gate = result.then(forget, forget)
    this.#tails = new Map()
    return result
  }
}

/** A failed change is its caller's matter; the next in line goes on. */
const forget = (): void => {}
