import { Type, type Static } from '@sinclair/typebox'

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

/** Where sources are kept; writes are durable when they resolve. */
export interface SourceStorage {
  get(id: string): Source | null
  list(): readonly Source[]
  put(id: string, source: Source): Promise<unknown>
  /** @param change gets the source as it is stored by then, by other instances too */
  update(id: string, change: (current: Source | null) => Source | null): Promise<Source | null>
  remove(id: string): Promise<unknown>
  clear(): Promise<number>
}

/** how long the making of a source waits for the end of one of its name */
const LEAVE_WAIT_MS = 15_000

/**
 * The registered sources, in memory for the pipeline's look-ups. A source registered by its first message
 * is known at once and stored with that message: `store` is called when the WAL entry is written.
 */
export class Sources {
  readonly #storage: SourceStorage
  readonly #maxSources: number
  readonly #byName: Map<string, Source>
  /** known here by their first message, and not stored yet */
  readonly #unstored = new Set<string>()
  /** forgotten here while their stored rows are still to go */
  readonly #leaving = new Set<string>()
  readonly #waiting = new Set<() => void>()
  readonly #nowMs: () => number

  constructor(storage: SourceStorage, maxSources: number, nowMs: () => number) {
    this.#storage = storage
    this.#maxSources = maxSources
    this.#nowMs = nowMs
    this.#byName = new Map(storage.list().map((source) => [source.name, source]))
  }

  admit(name: string): 'ok' | 'unregistered' | 'full' | 'disabled' {
    const source = this.#byName.get(name)
    if (source !== undefined) return source.enabled ? 'ok' : 'disabled'
    return this.#byName.size >= this.#maxSources ? 'full' : 'unregistered'
  }

  /** Known from here on; nothing happens when the name is taken. */
  register(registration: Pick<Source, 'name' | 'type' | 'connector' | 'applicationId'>): void {
    const { name } = registration
    if (this.#byName.has(name)) return
    this.#byName.set(name, { ...registration, enabled: true, createdAtMs: this.#nowMs() })
    this.#unstored.add(name)
  }

  /** Stores a source that its first message registered; one that is stored already stays as it is. */
  async store(
    registration: Pick<Source, 'name' | 'type' | 'connector' | 'applicationId'>,
  ): Promise<void> {
    const { name } = registration
    const fresh = { ...registration, enabled: true, createdAtMs: this.#nowMs() }
    const stored =
      this.#storage.get(name) ??
      (await this.#storage.update(name, (current) => current ?? this.#byName.get(name) ?? fresh))
    this.#unstored.delete(name)
    if (stored !== null && this.#byName.has(name)) this.#byName.set(name, stored)
  }

  /** One that was deleted has newer messages, which were taken before that was known here. */
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
    if (this.#leaving.has(name)) await this.#whenGone(name)
    if (this.#byName.has(name)) throw taken(name)
    const created = { ...source, enabled: true, createdAtMs: this.#nowMs() }
    this.#byName.set(name, created)
    let isNew = false
    const stored = await this.#storage
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
    const changed = await this.#storage.update(name, (current) => {
      const stored = this.#leaving.has(name) ? known : current
      const source = stored ?? (this.#unstored.has(name) ? known : null)
      return source === null ? null : { ...source, ...fields }
    })
    if (changed === null) throw missing(name)
    if (this.#byName.has(name)) this.#byName.set(name, changed)
    return changed
  }

  /** Takes over what another instance registered, changed or removed. */
  follow(name: string, source: Source | null): void {
    // one that is being deleted: what is stored by then counts when that is over
    if (this.#leaving.has(name)) return
    if (source !== null) this.#byName.set(name, source)
    // one that was registered here since is not the one that was removed
    else if (!this.#unstored.has(name)) this.#byName.delete(name)
  }

  /** These are being deleted: messages of these names are of unregistered sources from here on. */
  forget(names: readonly string[]): void {
    for (const name of names) {
      this.#byName.delete(name)
      this.#unstored.delete(name)
      this.#leaving.add(name)
    }
  }

  /** As `forget`, for all. */
  forgetAll(): void {
    this.forget([...this.#byName.keys()])
  }

  /** Takes the stored rows away; a source of that name that was made meanwhile stays. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const again = this.#byName.get(name)
      if (again !== undefined) await this.#storage.put(name, again)
      else if (this.#storage.get(name) !== null) await this.#storage.remove(name)
    }
    this.release(names)
  }

  /** As `remove`, for all. @returns how many stored rows went */
  async removeAll(): Promise<number> {
    const gone = await this.#storage.clear()
    for (const again of this.#byName.values()) await this.#storage.put(again.name, again)
    this.release()
    return gone
  }

  /** The deletion of these is over; what is stored under a name has been made since. */
  release(names: readonly string[] = [...this.#leaving]): void {
    for (const name of names) {
      this.#leaving.delete(name)
      const since = this.#storage.get(name)
      if (since !== null && !this.#byName.has(name)) this.#byName.set(name, since)
    }
    for (const look of this.#waiting) look()
  }

  /** @throws AppError `dependency_unavailable` */
  #whenGone(name: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(look)
      }
      const look = (): void => {
        if (this.#leaving.has(name)) return
        end()
        resolve()
      }
      const timer = setTimeout(() => {
        end()
        reject(stillLeaving(name))
      }, LEAVE_WAIT_MS)
      this.#waiting.add(look)
    })
  }
}

const taken = (name: string): AppError =>
  new AppError('source_already_exists', 'a source of this name exists', { details: { name } })

const missing = (name: string): AppError =>
  new AppError('not_found', 'there is no such source', { details: { name } })

const stillLeaving = (name: string): AppError =>
  new AppError('dependency_unavailable', 'the source of this name is still being deleted', {
    details: { dependency: 'clickhouse', name },
    retryAfterS: 5,
  })
