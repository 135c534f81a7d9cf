import type { Command, SharedChange } from '../wal/record.js'
import { ALONE, type SharedWork } from '../writer/writer.js'

/** The other changes hold as soon as all instances know of them. */
export type Deletion = Exclude<SharedChange, { readonly kind: 'correct-event' | 'forget-repeats' }>

export const isDeletion = (change: SharedChange): change is Deletion =>
  change.kind === 'delete-sources' || change.kind === 'clear-all'

/** What a change does in this process and in ClickHouse. */
export interface ChangeEffects {
  /** Has the change hold for the messages that are sequenced from now on. */
  begin(change: SharedChange): void
  /** Deletes the rows in ClickHouse, and what belongs to them. Idempotent. @returns the result for the caller */
  execute(deletion: Deletion): Promise<unknown>
  /** Called when the rows are gone. */
  end(deletion: Deletion): void
}

/** Makes deletions and corrections, on all instances of the database. */
export interface Changes extends SharedWork {
  /** @returns the result of `execute`, once the change took effect; null for a change without one */
  carryOut(change: SharedChange): Promise<unknown>
  /** Called when this instance sends nothing more. */
  leave(): Promise<void>
}

/** The changes of the only instance on its database: a deletion is a command in its WAL. */
export const createOwnChanges = (
  effects: ChangeEffects,
  pipeline: { execute(command: Command): Promise<unknown> },
): Changes => ({
  ...ALONE,
  carryOut: async (change) => {
    // No await between `begin` and `execute`, because no event may be sequenced between them.
    effects.begin(change)
    if (!isDeletion(change)) return null
    const result = await pipeline.execute(change)
    if (change.kind === 'clear-all') effects.end(change)
    return result
  },
  leave: async () => undefined,
})
