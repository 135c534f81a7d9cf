import type { Entities } from '../../src/api/auth/entities.js'

interface MemoryEntities<T extends object> extends Entities<T> {
  /** A copy of the stored entities, as a restart finds them. */
  readonly copy: () => MemoryEntities<T>
}

/** Entities in memory. A write takes a tick of the event loop; the writes of an id are serialised. */
export function memoryEntities<T extends object>(
  initial: Iterable<[string, T]> = [],
): MemoryEntities<T> {
  const all = new Map<string, T>(initial)
  const tails = new Map<string, Promise<unknown>>()
  const inTurn = <R>(id: string, write: () => R): Promise<R> => {
    const turn = (tails.get(id) ?? Promise.resolve()).then(async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return write()
    })
    tails.set(
      id,
      turn.catch(() => undefined),
    )
    return turn
  }
  return {
    get: (id) => all.get(id) ?? null,
    list: () => [...all.values()],
    put: (id, entity) => inTurn(id, () => void all.set(id, entity)),
    update: (id, change) =>
      inTurn(id, () => {
        const next = change(all.get(id) ?? null)
        if (next === null) all.delete(id)
        else all.set(id, next)
        return next
      }),
    remove: (id) => inTurn(id, () => all.delete(id)),
    copy: () => memoryEntities(all),
  }
}
