import { Type, type Static } from '@sinclair/typebox'

import type { Collection } from '../coordination/collection.js'
import { AppError } from '../model/errors.js'

const SOURCE_TYPES = ['push', 'webhook', 'poll', 'file'] as const

/** A registered origin of messages. */
export const SourceDoc = Type.Object({
  name: Type.String(),
  type: Type.Union(SOURCE_TYPES.map((type) => Type.Literal(type))),
  connector: Type.String(),
  enabled: Type.Boolean(),
  applicationId: Type.Union([Type.String(), Type.Null()]),
  createdAtMs: Type.Number(),
})
export type Source = Readonly<Static<typeof SourceDoc>>

/** The longest time that the creation of a source waits for the deletion of one of the same name. */
const DELETION_WAIT_MS = 15_000

/**
 * The registered sources, in memory for the pipeline's lookups. A source that its first message registers is
 * known at once, and stored in ClickHouse when the writer sends that message's WAL record (`store`).
 *
 * A deletion begins with `forget`: from then on messages of that name belong to an unregistered source and
 * register it anew. When the deleted rows are gone, `remove` deletes the stored source, or stores the one that
 * was registered since.
 */
export class Sources {
  readonly #records: Collection<Source>
  readonly #maxSources: number
  readonly #byName: Map<string, Source>
  /** Sources that their first message registered, and that are not stored yet. */
  readonly #unstored = new Set<string>()
  /** Names of sources that are being deleted, until their rows are gone from ClickHouse. */
  readonly #deleting = new Set<string>()
  readonly #waiting = new Set<() => void>()
  readonly #nowMs: () => number

  constructor(records: Collection<Source>, maxSources: number, nowMs: () => number) {
    this.#records = records
    this.#maxSources = maxSources
    this.#nowMs = nowMs
    this.#byName = new Map(records.list().map((source) => [source.name, source]))
  }

  admit(name: string): 'ok' | 'unregistered' | 'full' | 'disabled' {
    const source = this.#byName.get(name)
    if (source !== undefined) return source.enabled ? 'ok' : 'disabled'
    return this.#byName.size >= this.#maxSources ? 'full' : 'unregistered'
  }

  /** Registers a source in memory, unless the name is taken. */
  register(registration: Pick<Source, 'name' | 'type' | 'connector' | 'applicationId'>): void {
    const { name } = registration
    if (this.#byName.has(name)) return
    this.#byName.set(name, { ...registration, enabled: true, createdAtMs: this.#nowMs() })
    this.#unstored.add(name)
  }

  /** Stores a source that its first message registered, unless it is stored already. */
  async store(
    registration: Pick<Source, 'name' | 'type' | 'connector' | 'applicationId'>,
  ): Promise<void> {
    const { name } = registration
    const fresh = { ...registration, enabled: true, createdAtMs: this.#nowMs() }
    const stored =
      this.#records.get(name) ??
      (await this.#records.update(name, (current) => current ?? this.#byName.get(name) ?? fresh))
    this.#unstored.delete(name)
    if (stored !== null && this.#byName.has(name)) this.#byName.set(name, stored)
  }

  /** Registers a deleted source again, of which this instance took newer messages before it learned of the deletion. */
  async registerAgain(name: string): Promise<void> {
    const registration = { name, type: 'push', connector: 'custom', applicationId: null } as const
    this.register(registration)
    await this.store(registration)
  }

  get(name: string): Source | undefined {
    return this.#byName.get(name)
  }

  /** Ordered by name. */
  list(): readonly Source[] {
    return [...this.#byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  get size(): number {
    return this.#byName.size
  }

  /** @throws AppError `source_already_exists`, `dependency_unavailable` */
  async create(source: Omit<Source, 'enabled' | 'createdAtMs'>): Promise<Source> {
    const { name } = source
    if (this.#deleting.has(name)) await this.#untilDeleted(name)
    if (this.#byName.has(name)) throw taken(name)
    const created = { ...source, enabled: true, createdAtMs: this.#nowMs() }
    this.#byName.set(name, created)
    let isNew = false
    const stored = await this.#records
      .update(name, (current) => {
        isNew = current === null
        return current ?? created
      })
      .catch((error: unknown) => {
        if (this.#byName.get(name) === created) this.#byName.delete(name)
        throw error
      })
    if (isNew) return created
    if (stored !== null) this.#byName.set(name, stored)
    throw taken(name)
  }

  /** @throws AppError `not_found`, `dependency_unavailable` */
  async change(
    name: string,
    fields: Partial<Pick<Source, 'enabled' | 'applicationId'>>,
  ): Promise<Source> {
    const known = this.#byName.get(name)
    if (known === undefined) throw missing(name)
    const changed = await this.#records.update(name, (current) => {
      const stored = this.#deleting.has(name) ? known : current
      const source = stored ?? (this.#unstored.has(name) ? known : null)
      return source === null ? null : { ...source, ...fields }
    })
    if (changed === null) throw missing(name)
    if (this.#byName.has(name)) this.#byName.set(name, changed)
    return changed
  }

  /** Takes over what another instance registered, changed or removed. A source that is being deleted is read after that. */
  follow(name: string, source: Source | null): void {
    if (this.#deleting.has(name)) return
    if (source !== null) this.#byName.set(name, source)
    // A source that was registered here since is not the removed one.
    else if (!this.#unstored.has(name)) this.#byName.delete(name)
  }

  /** Begins a deletion: messages of these names belong to unregistered sources from here on. */
  forget(names: readonly string[]): void {
    for (const name of names) {
      this.#byName.delete(name)
      this.#unstored.delete(name)
      this.#deleting.add(name)
    }
  }

  /** Begins the deletion of all sources. */
  forgetAll(): void {
    this.forget([...this.#byName.keys()])
  }

  /** Ends a deletion. A source of that name that was registered since stays, and is stored. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const again = this.#byName.get(name)
      if (again !== undefined) await this.#records.put(name, again)
      else if (this.#records.get(name) !== null) await this.#records.remove(name)
    }
    this.release(names)
  }

  /** Ends the deletion of all sources. @returns how many were stored */
  async removeAll(): Promise<number> {
    const removed = await this.#records.clear()
    for (const again of this.#byName.values()) await this.#records.put(again.name, again)
    this.release()
    return removed
  }

  /** Notes that a deletion is over: a source that is stored under such a name was created since. */
  release(names: readonly string[] = [...this.#deleting]): void {
    for (const name of names) {
      this.#deleting.delete(name)
      const since = this.#records.get(name)
      if (since !== null && !this.#byName.has(name)) this.#byName.set(name, since)
    }
    for (const check of this.#waiting) check()
  }

  /** @throws AppError `dependency_unavailable` */
  #untilDeleted(name: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(check)
      }
      const check = (): void => {
        if (this.#deleting.has(name)) return
        end()
        resolve()
      }
      const timer = setTimeout(() => {
        end()
        reject(stillDeleting(name))
      }, DELETION_WAIT_MS)
      this.#waiting.add(check)
    })
  }
}

const taken = (name: string): AppError =>
  new AppError('source_already_exists', 'a source of this name exists', { details: { name } })

const missing = (name: string): AppError =>
  new AppError('not_found', 'there is no such source', { details: { name } })

const stillDeleting = (name: string): AppError =>
  new AppError('dependency_unavailable', 'the source of this name is still being deleted', {
    details: { dependency: 'clickhouse', name },
    retryAfterS: 5,
  })
