import { randomUUID } from 'node:crypto'
import type { KpiSnapshot } from '../model/kpi.js'

/** What the cache asks of the state that instances share. */
export interface CacheState {
  get(key: string): Promise<string | null>
  set(key: string, value: string, ttlMs: number): Promise<void>
  withLock<T>(key: string, ttlMs: number, work: () => Promise<T>): Promise<T>
}

export interface KpiCacheDeps {
  readonly state: CacheState
  readonly compute: () => Promise<KpiSnapshot>
}

export interface KpiCache {
  /** The snapshot as JSON, at most 30 s old and never older than the last `invalidate`. */
  get(): Promise<string>
  /** The snapshot as JSON, with everything that was noted as written before the call. */
  current(): Promise<string>
  /** Events were written: `current` computes anew, `get` may serve what it has. */
  noteWritten(): Promise<void>
  /** Something was corrected or deleted: nobody is served an older snapshot from here on. */
  invalidate(): Promise<void>
}

const SNAPSHOT = 'kpi:snapshot'
const GENERATION = 'kpi:generation'
const WRITTEN = 'kpi:written'
const LOCK = 'kpi:compute'

const SNAPSHOT_TTL_MS = 30_000
/** Far longer than a snapshot lives, and than its computation takes. */
const VERSION_TTL_MS = 600_000
const LOCK_MS = 30_000

/** Random texts that change with each invalidation and each write; a snapshot carries those it was begun under. */
interface Versions {
  readonly generation: string
  readonly written: string
}

interface Entry extends Versions {
  readonly json: string
}

type Accepts = (entry: Versions, versions: Versions) => boolean

const isOfGeneration: Accepts = (entry, versions) => entry.generation === versions.generation
const isCurrent: Accepts = (entry, versions) =>
  entry.generation === versions.generation && entry.written === versions.written

/**
 * One snapshot for all instances, computed by one at a time. While the state does not answer, each
 * instance computes for itself and keeps nothing.
 */
export function createKpiCache(parts: KpiCacheDeps): KpiCache {
  const cache = new SharedCache(parts)
  return {
    get: () => cache.load('get', isOfGeneration),
    current: () => cache.load('current', isCurrent),
    noteWritten: () => cache.noteWritten(),
    invalidate: () => cache.invalidate(),
  }
}

class SharedCache {
  readonly #state: CacheState
  readonly #compute: () => Promise<KpiSnapshot>
  /** computations of this process, by what was asked for and the versions that were read */
  readonly #flights = new Map<string, Promise<string>>()
  /** The state failed to take an invalidation; it is tried again before the next read. */
  #owesInvalidation = false

  constructor({ state, compute }: KpiCacheDeps) {
    this.#state = state
    this.#compute = compute
  }

  async load(name: string, accepts: Accepts): Promise<string> {
    const versions = await this.#readVersions().catch(() => null)
    const entry = await this.#readEntry().catch(() => null)
    if (versions === null) return await this.#join('alone', () => this.#computeJson())
    if (entry !== null && accepts(entry, versions)) return entry.json
    const key = `${name} ${versions.generation} ${versions.written}`
    return await this.#join(key, () => this.#computeLocked(accepts))
  }

  async noteWritten(): Promise<void> {
    await this.#state.set(WRITTEN, randomUUID(), VERSION_TTL_MS)
  }

  async invalidate(): Promise<void> {
    this.#owesInvalidation = true
    await this.#state.set(GENERATION, randomUUID(), VERSION_TTL_MS)
    this.#owesInvalidation = false
  }

  async #readVersions(): Promise<Versions> {
    if (this.#owesInvalidation) await this.invalidate()
    const [generation, written] = await Promise.all([
      this.#state.get(GENERATION),
      this.#state.get(WRITTEN),
    ])
    return { generation: generation ?? '', written: written ?? '' }
  }

  async #readEntry(): Promise<Entry | null> {
    const text = await this.#state.get(SNAPSHOT)
    return text === null ? null : parseEntry(text)
  }

  /** Callers who want the same join one computation. */
  #join(key: string, work: () => Promise<string>): Promise<string> {
    const running = this.#flights.get(key)
    if (running !== undefined) return running
    const flight = work().finally(() => this.#flights.delete(key))
    this.#flights.set(key, flight)
    return flight
  }

  async #computeLocked(accepts: Accepts): Promise<string> {
    const failure: { cause: unknown } = { cause: null }
    const work = async (): Promise<string> => {
      const entry = await this.#readEntry()
      const versions = await this.#readVersions()
      // Another instance may have computed it meanwhile.
      if (entry !== null && accepts(entry, versions)) return entry.json
      const json = await this.#computeJson().catch((cause: unknown) => {
        failure.cause = cause
        throw cause
      })
      const text = formatEntry({ ...versions, json })
      await this.#state.set(SNAPSHOT, text, SNAPSHOT_TTL_MS).catch(() => undefined)
      return json
    }
    try {
      return await this.#state.withLock(LOCK, LOCK_MS, work)
    } catch (error) {
      if (error === failure.cause) throw error
      // The state failed, not the computation.
      return await this.#computeJson()
    }
  }

  async #computeJson(): Promise<string> {
    return JSON.stringify(await this.#compute())
  }
}

/** Versions hold no blank; the JSON is passed on as it is. */
const formatEntry = ({ generation, written, json }: Entry): string =>
  `${generation} ${written} ${json}`

function parseEntry(text: string): Entry | null {
  const match = /^([\w-]*) ([\w-]*) (\{.*\})$/s.exec(text)
  if (match === null) return null
  const [, generation = '', written = '', json = ''] = match
  return { generation, written, json }
}
