/** How sources go, alone or with their application. */
export interface DeletionParts {
  readonly withLock: <T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>
  /** Their messages are of unregistered sources from here on, and join no earlier event. */
  readonly forget: (sources: readonly string[]) => void
  readonly forgetAll: () => void
  /** What they have delivered to the webhooks is no duplicate any more; null: of all sources. */
  readonly forgetDeliveries: (sources: readonly string[] | null) => Promise<void>
  /** Takes effect after everything acknowledged before it; resolves when it did. */
  readonly execute: (
    command:
      | { readonly kind: 'delete-sources'; readonly sources: readonly string[] }
      | { readonly kind: 'clear-all' },
  ) => Promise<unknown>
  /** Resolves when nobody is shown what was deleted. */
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
  /** @throws AppError dependency_unavailable: it is remembered and carried out later */
  deleteSources(sources: readonly string[]): Promise<DeletedSources>
  clearAll(): Promise<ClearedAll>
}

/** renewed meanwhile; one that dies keeps the others from deleting for so long */
const LOCK_MS = 15_000

export function createDeletions(parts: DeletionParts): Deletions {
  return {
    deleteSources: (sources) =>
      parts.withLock('delete', LOCK_MS, async () => {
        if (sources.length === 0) return { events: 0, alerts: 0 }
        await parts.forgetDeliveries(sources)
        // the two lines are one moment: nothing may be sequenced between them
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
