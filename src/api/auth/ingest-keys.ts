import type { WithLock } from '../../coordination/lock.js'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../../model/errors.js'
import { ReadonlyTexts } from '../../model/schemas.js'
import {
  createStoredKeys,
  generateKey,
  KEY_FIELDS,
  type KeyDeps,
  type NewKey,
} from './stored-keys.js'

/** A stored ingest key. */
export const IngestKeyDoc = Type.Object({
  ...KEY_FIELDS,
  /** Null allows every source. */
  sources: Type.Union([ReadonlyTexts, Type.Null()]),
  autoRegister: Type.Boolean(),
  /** The source of records that name none; null = the default source. */
  defaultSource: Type.Union([Type.String(), Type.Null()]),
  /** Id of the user or API token that created the key; absent for keys that the service made at its start. */
  createdBy: Type.Optional(Type.String()),
})
export type IngestKey = Readonly<Static<typeof IngestKeyDoc>>

type IngestKeyInput = Pick<
  IngestKey,
  'name' | 'sources' | 'autoRegister' | 'defaultSource' | 'createdBy'
>

type NewIngestKey = NewKey<IngestKey>

interface IngestKeyDeps extends KeyDeps<IngestKey> {
  readonly withLock: WithLock
}

export interface IngestKeys {
  /** @throws AppError overloaded */
  readonly create: (input: IngestKeyInput) => Promise<NewIngestKey>
  readonly list: () => readonly IngestKey[]
  /** @param name a key's name or the first characters that lists show; '' = the oldest key. @returns null when there is none */
  readonly named: (name: string) => IngestKey | null
  /** @returns null when there is no such key */
  readonly find: (id: string) => IngestKey | null
  /** @throws AppError not_found */
  readonly remove: (id: string) => Promise<void>
  /** Synchronous; its time does not depend on the number of keys. @returns null when the key is not valid */
  readonly verify: (key: string) => IngestKey | null
  /**
   * Creates the key `given` unless it exists; without `given`, a generated key unless any key exists.
   * @returns null when nothing was created
   */
  readonly ensureFirst: (given: string | null) => Promise<NewIngestKey | null>
}

const LOCK_TTL_MS = 10_000
const FIRST: IngestKeyInput = {
  name: 'first key',
  sources: null,
  autoRegister: true,
  defaultSource: null,
}

const newKey = (): string => generateKey('ik_')

export function createIngestKeys(deps: IngestKeyDeps): IngestKeys {
  const { entities, withLock } = deps
  const keys = createStoredKeys(deps)
  const add = (key: string, input: IngestKeyInput): Promise<NewIngestKey> =>
    keys.add(key, (common) => ({ ...input, ...common }))
  return {
    create: (input) => add(newKey(), input),
    list: () => entities.list(),
    named: (name) => findNamed(entities.list(), name),
    find: (id) => entities.get(id),
    remove: async (id) => {
      if (await keys.remove(id)) return
      throw new AppError('not_found', 'there is no such ingest key', { details: { key_id: id } })
    },
    verify: (key) => {
      const stored = keys.find(key)
      if (stored !== null) keys.noteUse(stored.id)
      return stored
    },
    ensureFirst: async (given) => {
      const isThere = (): boolean => (given === null ? entities.list().length > 0 : keys.has(given))
      if (isThere()) return null
      return await withLock('first-ingest-key', LOCK_TTL_MS, async () =>
        isThere() ? null : await add(given ?? newKey(), FIRST),
      )
    },
  }
}

function findNamed(keys: readonly IngestKey[], name: string): IngestKey | null {
  const oldestFirst = keys.toSorted((a, b) => a.createdAtMs - b.createdAtMs)
  const isMeant = (key: IngestKey): boolean =>
    name === '' || key.name === name || key.prefix === name
  return oldestFirst.find(isMeant) ?? null
}
