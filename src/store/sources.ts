import { AppError } from '../model/errors.js'

export const SOURCE_TYPES = ['push', 'webhook', 'poll', 'file'] as const
export type SourceType = (typeof SOURCE_TYPES)[number]

/** A registered origin of messages. */
export interface Source {
  readonly name: string
  readonly type: SourceType
  readonly connector: string
  readonly enabled: boolean
  readonly applicationId: string | null
  /** ms since 1970 */
  readonly createdAtMs: number
}

/** Where sources are kept; writes are durable when they resolve. */
export interface SourceStorage {
  get(id: string): Source | null
  list(): readonly Source[]
  put(id: string, source: Source): Promise<unknown>
  remove(id: string): Promise<unknown>
  clear(): Promise<number>
}

/**
 * The registered sources, in memory for the pipeline's look-ups. A source registered by its first message
 * is known at once and stored with that message: `store` is called when the spool entry is written.
 */
export class Sources {
  readonly #storage: SourceStorage
  readonly #maxSources: number
  readonly #byName: Map<string, Source>
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
  }

  /** Stores a source that its first message registered; harmless when it is stored already. */
  async store(
    registration: Pick<Source, 'name' | 'type' | 'connector' | 'applicationId'>,
  ): Promise<void> {
    if (this.#storage.get(registration.name) !== null) return
    const fresh = { ...registration, enabled: true, createdAtMs: this.#nowMs() }
    await this.#storage.put(registration.name, this.#byName.get(registration.name) ?? fresh)
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
    if (this.#byName.has(source.name))
      throw new AppError('source_already_exists', 'a source of this name exists', {
        details: { name: source.name },
      })
    const created = { ...source, enabled: true, createdAtMs: this.#nowMs() }
    this.#byName.set(created.name, created)
    try {
      await this.#storage.put(created.name, created)
    } catch (error) {
      if (this.#byName.get(created.name) === created) this.#byName.delete(created.name)
      throw error
    }
    return created
  }

  /** @throws AppError `not_found`, `dependency_unavailable` */
  async change(
    name: string,
    fields: Partial<Pick<Source, 'enabled' | 'applicationId'>>,
  ): Promise<Source> {
    const source = this.#byName.get(name)
    if (source === undefined)
      throw new AppError('not_found', 'there is no such source', { details: { name } })
    const changed = { ...source, ...fields }
    await this.#storage.put(name, changed)
    if (this.#byName.has(name)) this.#byName.set(name, changed)
    return changed
  }

  /** Takes over a source that another instance registered or changed. */
  adopt(source: Source): void {
    this.#byName.set(source.name, source)
  }

  /** Messages of these names are of unregistered sources from here on. */
  forget(names: readonly string[]): void {
    for (const name of names) this.#byName.delete(name)
  }

  forgetAll(): void {
    this.#byName.clear()
  }

  /** Takes the stored rows away; a source of that name that was made meanwhile stays. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const again = this.#byName.get(name)
      if (again !== undefined) await this.#storage.put(name, again)
      else if (this.#storage.get(name) !== null) await this.#storage.remove(name)
    }
  }

  /** As `remove`, for all. @returns how many stored rows went */
  async removeAll(): Promise<number> {
    const gone = await this.#storage.clear()
    for (const again of this.#byName.values()) await this.#storage.put(again.name, again)
    return gone
  }

  /** Takes over what another instance changed. */
  reload(name: string, source: Source | null): void {
    if (source === null) this.#byName.delete(name)
    else this.#byName.set(name, source)
  }
}
