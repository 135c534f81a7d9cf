import type { WithLock } from '../../coordination/lock.js'
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import { AppError } from '../../model/errors.js'
import { ReadonlyTexts } from '../../model/schemas.js'
import type { Entities } from './entities.js'
import { MINUTE_MS } from '../../model/time.js'

/** A stored ingest key; of the key itself only the hash is stored. */
export const IngestKeyDoc = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** The first characters of the key, by which users recognise it. */
  prefix: Type.String(),
  /** Hex SHA-256. A key is long and random, so a slow hash would add only delay. */
  hash: Type.String(),
  /** Null allows every source. */
  sources: Type.Union([ReadonlyTexts, Type.Null()]),
  autoRegister: Type.Boolean(),
  /** The source of records that name none; null = the one of all keys. */
  defaultSource: Type.Union([Type.String(), Type.Null()]),
  createdAtMs: Type.Number(),
  /** Updated at most once a minute. */
  lastUsedAtMs: Type.Union([Type.Number(), Type.Null()]),
})
export type IngestKey = Readonly<Static<typeof IngestKeyDoc>>

type IngestKeyInput = Pick<IngestKey, 'name' | 'sources' | 'autoRegister' | 'defaultSource'>

interface NewIngestKey {
  readonly stored: IngestKey
  /** Shown once. */
  readonly key: string
}

interface IngestKeyDeps {
  readonly entities: Entities<IngestKey>
  readonly withLock: WithLock
  /** Called when `lastUsedAtMs` could not be stored; the next use a minute later tries again. */
  readonly onError: (error: unknown) => void
  readonly nowMs?: () => number
}

export interface IngestKeys {
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

const USE_NOTED_EVERY_MS = MINUTE_MS
/** Hashing a key twice costs as much as the other checks of a small request. */
const REMEMBERED_KEYS = 1_024
/** Longer than any key. */
const MAX_KEY_CHARACTERS = 256
const PREFIX_CHARACTERS = 8
const LOCK_TTL_MS = 10_000
const FIRST: IngestKeyInput = {
  name: 'first key',
  sources: null,
  autoRegister: true,
  defaultSource: null,
}

export function createIngestKeys(deps: IngestKeyDeps): IngestKeys {
  const { entities, onError, nowMs = Date.now } = deps
  /** When the last use was last stored, by id of the key. */
  const notedAtMs = new Map<string, number>()
  /** Ids by key. The record is looked up on each use, so that a deleted key is refused. */
  const remembered = new LRUCache<string, string>({ max: REMEMBERED_KEYS })

  const add = async (key: string, input: IngestKeyInput): Promise<NewIngestKey> => {
    const hash = digest(key)
    const stored: IngestKey = {
      ...input,
      id: idOf(hash),
      prefix: key.slice(0, PREFIX_CHARACTERS),
      hash: hash.toString('hex'),
      createdAtMs: nowMs(),
      lastUsedAtMs: null,
    }
    await entities.put(stored.id, stored)
    return { stored, key }
  }
  const noteUse = (id: string): void => {
    const usedAtMs = nowMs()
    if (usedAtMs - (notedAtMs.get(id) ?? -Infinity) < USE_NOTED_EVERY_MS) return
    notedAtMs.set(id, usedAtMs)
    const note = (key: IngestKey | null): IngestKey | null =>
      key === null ? null : { ...key, lastUsedAtMs: usedAtMs }
    entities.update(id, note).catch(onError)
  }

  const findByHash = (key: string): IngestKey | null => {
    if (key.length > MAX_KEY_CHARACTERS) return null
    const hash = digest(key)
    const stored = entities.get(idOf(hash))
    if (stored === null || !timingSafeEqual(Buffer.from(stored.hash, 'hex'), hash)) return null
    remembered.set(key, stored.id)
    return stored
  }

  return {
    create: (input) => add(generateKey(), input),
    list: () => entities.list(),
    named: (name) => findNamed(entities.list(), name),
    find: (id) => entities.get(id),
    remove: async (id) => {
      notedAtMs.delete(id)
      if (await entities.remove(id)) return
      throw new AppError('not_found', 'there is no such ingest key', { details: { key_id: id } })
    },
    verify: (key) => {
      const stored = entities.get(remembered.get(key) ?? '') ?? findByHash(key)
      if (stored !== null) noteUse(stored.id)
      return stored
    },
    ensureFirst: async (given) => {
      const isThere = (): boolean =>
        given === null ? entities.list().length > 0 : entities.get(idOf(digest(given))) !== null
      if (isThere()) return null
      return await deps.withLock('first-ingest-key', LOCK_TTL_MS, async () =>
        isThere() ? null : await add(given ?? generateKey(), FIRST),
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

const digest = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Derives the id from the hash, so that a key is found without a further index. It is hashed once more,
 * because ids are public and must not help to guess a key that a user chose. */
function idOf(hash: Buffer): string {
  const hex = createHash('sha256').update('id').update(hash).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return [...parts, hex.slice(20, 32)].join('-')
}

const generateKey = (): string => `ik_${randomBytes(30).toString('base64url')}`
