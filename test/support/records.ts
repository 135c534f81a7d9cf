import type { Records } from '../../src/records/newest-first.js'

type Listener<T extends object> = Parameters<Records<T>['onChange']>[0]

/** Records in memory. A write takes a tick of the event loop; the writes of an id are serialised. */
export function memoryRecords<T extends object>(initial: Iterable<[string, T]> = []): Records<T> {
  const all = new Map<string, T>(initial)
  const tails = new Map<string, Promise<unknown>>()
  const listeners = new Set<Listener<T>>()
  const announce = (id: string, value: T | null): void => {
    for (const listener of listeners) listener({ id, value, previous: null, origin: 'local' })
  }
  const update: Records<T>['update'] = (id, change) => {
    const turn = (tails.get(id) ?? Promise.resolve()).then(async () => {
      const current = all.get(id) ?? null
      const next = change(current)
      await new Promise((resolve) => setImmediate(resolve))
      if (next === current) return current
      if (next === null) all.delete(id)
      else all.set(id, next)
      announce(id, next)
      return next
    })
    tails.set(
      id,
      turn.catch(() => undefined),
    )
    return turn
  }
  return {
    get size() {
      return all.size
    },
    get: (id) => all.get(id) ?? null,
    list: () => [...all.values()],
    update,
    async remove(id) {
      const existed = all.has(id)
      await update(id, () => null)
      return existed
    },
    async clear() {
      const ids = [...all.keys()]
      all.clear()
      for (const id of ids) announce(id, null)
      return ids.length
    },
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
