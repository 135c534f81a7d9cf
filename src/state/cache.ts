import type { State } from './state.js'

/** Texts that are expensive to make. Without the state everything is made afresh. */
export interface Cache {
  /**
   * @param make called when the cache has no text; at most once at a time per key and process
   * @throws what `make` throws, never an error of the state
   */
  readonly through: (key: string, ttlMs: number, make: () => Promise<string>) => Promise<string>
  /** Never rejects; a text that could not be removed ends with its time. */
  readonly drop: (key: string) => Promise<void>
}

export function createCache(state: Pick<State, 'get' | 'set' | 'delete'>): Cache {
  const making = new Map<string, Promise<string>>()
  const load = async (key: string, ttlMs: number, make: () => Promise<string>): Promise<string> => {
    const kept = await state.get(key).catch(() => null)
    if (kept !== null) return kept
    const made = await make()
    await state.set(key, made, ttlMs).catch(() => undefined)
    return made
  }
  return {
    through: (key, ttlMs, make) => {
      const running = making.get(key)
      if (running !== undefined) return running
      const loading = load(key, ttlMs, make).finally(() => making.delete(key))
      making.set(key, loading)
      return loading
    },
    drop: (key) => state.delete(key).catch(() => undefined),
  }
}
