export interface DeletionParts {
  readonly withLock: <T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>
  /** Has their next messages belong to unregistered sources, and join no earlier event. */
  readonly forget: (sources: readonly string[]) => void
  readonly forgetAll: () => void
  /** Has the webhooks take a repeated delivery of these sources as new; null for all sources. */
  readonly forgetDeliveries: (sources: readonly string[] | null) => Promise<void>
  /** Resolves when the command took effect, after everything acknowledged before it. */
  readonly execute: (
    command:
      | { readonly kind: 'delete-sources'; readonly sources: readonly string[] }
      | { readonly kind: 'clear-all' },
  ) => Promise<unknown>
  /** Resolves when no client is shown what was deleted. */
  readonly onDeleted: () => Promise<void>
}

export interface DeletedSources {
  readonly events: number
  readonly alerts: number
}

export interface ClearedAll {
  readonly events: number
  readonly templates: number
  readonly alerts: number
  readonly incidents: number
  readonly tasks: number
  readonly sources: number
  readonly applications: number
  readonly dead_letters: number
}

export interface Deletions {
  /** @throws AppError dependency_unavailable: the deletion is recorded and takes effect later */
  deleteSources(sources: readonly string[]): Promise<DeletedSources>
  clearAll(): Promise<ClearedAll>
}

/** The lock is renewed; an instance that dies keeps the others from deleting for this long. */
const LOCK_MS = 15_000

export function createDeletions(parts: DeletionParts): Deletions {
  return {
    deleteSources: (sources) =>
      parts.withLock('delete', LOCK_MS, async () => {
        if (sources.length === 0) return { events: 0, alerts: 0 }
        await parts.forgetDeliveries(sources)
        // No event may be sequenced between these two calls, so nothing is awaited.
        parts.forget(sources)
        const deleted = parts.execute({ kind: 'delete-sources', sources })
        const result = (await deleted) as DeletedSources // what `execute` of main.ts gives for this kind
        await parts.onDeleted()
        return result
      }),
    clearAll: () =>
      parts.withLock('delete', LOCK_MS, async () => {
        await parts.forgetDeliveries(null)
        parts.forgetAll()
        const cleared = parts.execute({ kind: 'clear-all' })
        const result = (await cleared) as ClearedAll // likewise
        await parts.onDeleted()
        return result
      }),
  }
}
