/*
 * The KPI snapshot, computed by one instance at a time and shared by all.
 *
 * The shared state holds the snapshot for 30 seconds, and two versions: random texts that change with each invalidation
 * (the generation) and with each stored batch. A snapshot carries the versions read before its computation. `get` accepts
 * a stored snapshot of the same generation; `current` accepts one with both versions equal. Otherwise the snapshot is
 * computed under a lock. While the shared state is down, each instance computes its own snapshot and stores nothing.
 */
import { randomUUID } from 'node:crypto'
import type { ComputedKpis } from '../model/kpi.js'

export interface CacheState {
  get(key: string): Promise<string | null>
  set(key: string, value: string, ttlMs: number): Promise<void>
  withLock<T>(key: string, ttlMs: number, work: () => Promise<T>): Promise<T>
}

export interface KpiCache {
  /** The snapshot as JSON, at most 30 s old and never older than the last `invalidate`. */
  get(): Promise<string>
  /** The snapshot as JSON, with every batch passed to `noteWritten` before the call. */
  current(): Promise<string>
  /** After a stored batch `current` computes a new snapshot; `get` may still serve the stored one. */
  noteWritten(): Promise<void>
  /** After a correction or deletion no older snapshot is served. */
  invalidate(): Promise<void>
}

const SNAPSHOT = 'kpi:snapshot'
const GENERATION = 'kpi:generation'
const WRITTEN = 'kpi:written'
const LOCK = 'kpi:compute'

const SNAPSHOT_TTL_MS = 30_000
/** Longer than any snapshot or computation lasts. */
const VERSION_TTL_MS = 600_000
const LOCK_MS = 30_000

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

export function createKpiCache(state: CacheState, compute: () => Promise<ComputedKpis>): KpiCache {
  const cache = new SharedCache(state, compute)
  return {
    get: () => cache.load('get', isOfGeneration),
    current: () => cache.load('current', isCurrent),
    noteWritten: () => cache.noteWritten(),
    invalidate: () => cache.invalidate(),
  }
}

class SharedCache {
  readonly #state: CacheState
  readonly #compute: () => Promise<ComputedKpis>
  /** Running computations of this process, by method and versions. */
  readonly #flights = new Map<string, Promise<string>>()
  /** Whether an invalidation failed and is to be tried again before the next read. */
  #owesInvalidation = false

  constructor(state: CacheState, compute: () => Promise<ComputedKpis>) {
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

  /** Concurrent callers with one key share a computation. */
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
      // Another instance may have computed it while this one waited for the lock.
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
      // The shared state failed, not the computation.
      return await this.#computeJson()
    }
  }

  async #computeJson(): Promise<string> {
    return JSON.stringify(await this.#compute())
  }
}

/** Versions contain no blank. The JSON is not parsed, so that it is served as it was stored. */
const formatEntry = ({ generation, written, json }: Entry): string =>
  `${generation} ${written} ${json}`

function parseEntry(text: string): Entry | null {
  const match = /^([\w-]*) ([\w-]*) (\{.*\})$/s.exec(text)
  if (match === null) return null
  const [, generation = '', written = '', json = ''] = match
  return { generation, written, json }
}
