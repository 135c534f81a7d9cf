import { Type, type Static } from '@sinclair/typebox'

import { isDataError } from '../clickhouse/failure.js'
import type { Collection } from '../coordination/collection.js'
import type { Instance } from '../coordination/instance.js'
import { AppError } from '../model/errors.js'

const SOURCE_TYPES = ['push', 'webhook', 'poll', 'file'] as const

/** A registered origin of messages. */
const SourceDoc = Type.Object({
  name: Type.String(),
  type: Type.Union(SOURCE_TYPES.map((type) => Type.Literal(type))),
  connector: Type.String(),
  enabled: Type.Boolean(),
  applicationId: Type.Union([Type.String(), Type.Null()]),
  createdAtMs: Type.Number(),
  /** Retention in days after arrival. Absent or null: that of its application or of the severity. */
  retentionDays: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
  /** The ingest key whose message registered it. */
  keyId: Type.Optional(Type.String()),
})
export type Source = Readonly<Static<typeof SourceDoc>>

/** A source as its first message registers it. */
type Registration = Pick<Source, 'name' | 'type' | 'connector' | 'applicationId'> & {
  /** '' without an ingest key. */
  readonly keyId: string
}

interface SourceLimits {
  readonly maxSources: number
  /** The most sources that messages with one ingest key may register. */
  readonly perKey: number
}

/** The registrations that are stored in one iteration of the event loop. */
const STORED_AT_ONCE = 250

/** The longest time that the creation of a source waits for the deletion of one of the same name. */
const DELETION_WAIT_MS = 15_000

/** Opens the sources, which follow what other instances register, change and remove. */
export function openSources({ config, entities }: Pick<Instance, 'config' | 'entities'>): Sources {
  const records = entities.collection('source', SourceDoc)
  const limits = { maxSources: config.maxSources, perKey: config.sourcesPerKey }
  const sources = new Sources(records, limits, Date.now)
  records.onChange(({ id, value, origin }) => {
    if (origin === 'reload') sources.follow(id, value)
  })
  return sources
}

/**
 * The registered sources, in memory for the pipeline's lookups. A source that is registered by its
 * first message is known at once, and stored in ClickHouse when the writer sends the WAL record of
 * that message (`store`). A deletion begins with `forget`: from then on messages with that name
 * belong to an unregistered source and register it again. When the deleted rows are gone, `remove`
 * deletes the stored source, or stores the one that was registered since.
 */
export class Sources {
  readonly #records: Collection<Source>
  readonly #limits: SourceLimits
  readonly #byName = new Map<string, Source>()
  /** The number of sources that each ingest key has registered. */
  readonly #perKey = new Map<string, number>()
  /** All names in order; null when they must be sorted again. */
  #names: readonly string[] | null = null
  /** Sources that were registered by their first message and are not stored yet. */
  readonly #unstored = new Set<string>()
  /** Names of sources that are being deleted, until their rows are gone from ClickHouse. */
  readonly #deleting = new Set<string>()
  readonly #waiting = new Set<() => void>()
  readonly #nowMs: () => number

  constructor(records: Collection<Source>, limits: SourceLimits, nowMs: () => number) {
    this.#records = records
    this.#limits = limits
    this.#nowMs = nowMs
    for (const source of records.list()) this.#set(source)
  }

  admit(name: string): 'ok' | 'unregistered' | 'disabled' {
    const source = this.#byName.get(name)
    if (source === undefined) return 'unregistered'
    return source.enabled ? 'ok' : 'disabled'
  }

  /** The limit that keeps a message with this ingest key from registering a source; null for none. */
  limitOf(keyId: string): 'source_limit' | 'key_source_limit' | null {
    if (this.#byName.size >= this.#limits.maxSources) return 'source_limit'
    const registered = keyId === '' ? 0 : (this.#perKey.get(keyId) ?? 0)
    return registered >= this.#limits.perKey ? 'key_source_limit' : null
  }

  /** Registers a source in memory, unless the name is taken. */
  register(registration: Registration): void {
    const { name } = registration
    if (this.#byName.has(name)) return
    this.#set(this.#toSource(registration))
    this.#unstored.add(name)
  }

  /**
   * Stores sources that were registered by their first messages, unless they are stored already.
   *
   * @returns those that ClickHouse refused
   */
  async store(registrations: readonly Registration[]): Promise<readonly string[]> {
    const refused: string[] = []
    for (let from = 0; from < registrations.length; from += STORED_AT_ONCE) {
      const some = registrations.slice(from, from + STORED_AT_ONCE)
      // Changes of one cycle of the event loop go out in one insert.
      const results = await Promise.allSettled(some.map((each) => this.#store(each)))
      results.forEach((result, i) => {
        if (result.status === 'fulfilled') return
        if (!isDataError(result.reason)) throw result.reason
        refused.push(some[i]?.name ?? '')
      })
    }
    return refused
  }

  async #store(registration: Registration): Promise<void> {
    const { name } = registration
    const stored =
      this.#records.get(name) ??
      (await this.#records.update(
        name,
        (current) => current ?? this.#byName.get(name) ?? this.#toSource(registration),
      ))
    this.#unstored.delete(name)
    if (stored !== null && this.#byName.has(name)) this.#set(stored)
  }

  #toSource({ keyId, ...registration }: Registration): Source {
    const source = { ...registration, enabled: true, createdAtMs: this.#nowMs() }
    return keyId === '' ? source : { ...source, keyId }
  }

  #set(source: Source): void {
    const before = this.#byName.get(source.name)
    if (before === undefined) this.#names = null
    else this.#count(before, -1)
    this.#byName.set(source.name, source)
    this.#count(source, 1)
  }

  #delete(name: string): void {
    const source = this.#byName.get(name)
    if (source === undefined) return
    this.#names = null
    this.#byName.delete(name)
    this.#count(source, -1)
  }

  #count({ keyId }: Source, change: 1 | -1): void {
    if (keyId === undefined) return
    const registered = (this.#perKey.get(keyId) ?? 0) + change
    if (registered === 0) this.#perKey.delete(keyId)
    else this.#perKey.set(keyId, registered)
  }

  /** Registers a deleted source again, of which this instance received newer messages before it learned of the deletion. */
  async registerAgain(name: string): Promise<void> {
    const again = {
      name,
      type: 'push',
      connector: 'custom',
      applicationId: null,
      keyId: '',
    } as const
    this.register(again)
    await this.#store(again)
  }

  get(name: string): Source | undefined {
    return this.#byName.get(name)
  }

  /** Ordered by name, from the first name after `after` on. */
  list(after = '', limit = Infinity): readonly Source[] {
    const names = (this.#names ??= [...this.#byName.keys()].toSorted())
    const from = firstAfter(names, after)
    return names.slice(from, from + limit).flatMap((name) => this.#byName.get(name) ?? [])
  }

  /** The ingest key that registered a source; '' for none. */
  ownerOf(name: string): string {
    return this.#byName.get(name)?.keyId ?? ''
  }

  get size(): number {
    return this.#byName.size
  }

  /** @throws AppError `source_already_exists`, `overloaded`, `dependency_unavailable` */
  async create(source: Omit<Source, 'enabled' | 'createdAtMs'>): Promise<Source> {
    const { name } = source
    if (this.#deleting.has(name)) await this.#untilDeleted(name)
    if (this.#byName.has(name)) throw taken(name)
    if (this.#byName.size >= this.#limits.maxSources) throw tooMany(this.#limits.maxSources)
    const created = { ...source, enabled: true, createdAtMs: this.#nowMs() }
    this.#set(created)
    let isNew = false
    const stored = await this.#records
      .update(name, (current) => {
        isNew = current === null
        return current ?? created
      })
      .catch((error: unknown) => {
        if (this.#byName.get(name) === created) this.#delete(name)
        throw error
      })
    if (isNew) return created
    if (stored !== null) this.#set(stored)
    throw taken(name)
  }

  /** @throws AppError `not_found`, `dependency_unavailable` */
  async change(
    name: string,
    fields: Partial<Pick<Source, 'enabled' | 'applicationId' | 'retentionDays'>>,
  ): Promise<Source> {
    const known = this.#byName.get(name)
    if (known === undefined) throw missing(name)
    const changed = await this.#records.update(name, (current) => {
      const stored = this.#deleting.has(name) ? known : current
      const source = stored ?? (this.#unstored.has(name) ? known : null)
      return source === null ? null : { ...source, ...fields }
    })
    if (changed === null) throw missing(name)
    if (this.#byName.has(name)) this.#set(changed)
    return changed
  }

  /** Applies a change that another instance made. A source that is being deleted is read afterwards. */
  follow(name: string, source: Source | null): void {
    if (this.#deleting.has(name)) return
    if (source !== null) this.#set(source)
    // A source that was registered here since is not the removed one.
    else if (!this.#unstored.has(name)) this.#delete(name)
  }

  /** Begins a deletion: messages of these names belong to unregistered sources from here on. */
  forget(names: readonly string[]): void {
    for (const name of names) {
      this.#delete(name)
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
    await Promise.all(
      names.map(async (name) => {
        const again = this.#byName.get(name)
        if (again !== undefined) await this.#records.put(name, again)
        else if (this.#records.get(name) !== null) await this.#records.remove(name)
      }),
    )
    this.release(names)
  }

  /** Ends the deletion of all sources. @returns the number of stored sources */
  async removeAll(): Promise<number> {
    const removed = await this.#records.clear()
    await Promise.all(
      Array.from(this.#byName.values(), (again) => this.#records.put(again.name, again)),
    )
    this.release()
    return removed
  }

  /** Ends a deletion; a stored source of such a name was created since. */
  release(names: readonly string[] = [...this.#deleting]): void {
    for (const name of names) {
      this.#deleting.delete(name)
      const since = this.#records.get(name)
      if (since !== null && !this.#byName.has(name)) this.#set(since)
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

/** The index of the first name after `after`, by binary search. */
function firstAfter(names: readonly string[], after: string): number {
  let [low, high] = [0, names.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((names[middle] ?? '') <= after) low = middle + 1
    else high = middle
  }
  return low
}

const taken = (name: string): AppError =>
  new AppError('source_already_exists', 'a source of this name exists', { details: { name } })

const tooMany = (most: number): AppError =>
  new AppError('overloaded', `there are ${most} sources, which is the most`, {
    details: { limit: most, setting: 'MAX_SOURCES' },
  })

const missing = (name: string): AppError =>
  new AppError('not_found', 'there is no such source', { details: { name } })

const stillDeleting = (name: string): AppError =>
  new AppError('dependency_unavailable', 'the source of this name is still being deleted', {
    details: { dependency: 'clickhouse', name },
    retryAfterS: 5,
  })
