import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import { AppError } from '../../model/errors.js'
import { ReadonlyTexts } from '../../model/schemas.js'
import type { Entities } from './entities.js'
import { MINUTE_MS } from '../../model/time.js'

/** An ingest key as it is stored; the key itself is not. */
export const IngestKeyDoc = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** the first characters of the key, to be recognised by */
  prefix: Type.String(),
  /** hex SHA-256; a key is long and random, so a slow hash would add nothing but delay */
  hash: Type.String(),
  /** null = any */
  sources: Type.Union([ReadonlyTexts, Type.Null()]),
  autoRegister: Type.Boolean(),
  createdAtMs: Type.Number(),
  /** kept up to date to the minute */
  lastUsedAtMs: Type.Union([Type.Number(), Type.Null()]),
})
export type IngestKey = Readonly<Static<typeof IngestKeyDoc>>

interface IngestKeyInput {
  readonly name: string
  readonly sources: readonly string[] | null
  readonly autoRegister: boolean
}

interface NewIngestKey {
  readonly stored: IngestKey
  /** shown once */
  readonly key: string
}

interface IngestKeyDeps {
  readonly entities: Entities<IngestKey>
  /** Across all instances; `work` knows what the others have stored. */
  readonly withLock: <T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>
  /** told when a moment of last use could not be written; it is tried again a minute later */
  readonly onError: (error: unknown) => void
  readonly nowMs?: () => number
}

export interface IngestKeys {
  readonly create: (input: IngestKeyInput) => Promise<NewIngestKey>
  /** in no particular order */
  readonly list: () => readonly IngestKey[]
  /** @throws AppError not_found */
  readonly remove: (id: string) => Promise<void>
  /** Synchronous, and as fast with many keys as with one. @returns null for any other text */
  readonly verify: (key: string) => IngestKey | null
  /**
   * Sees to it that there is a key: `given`, when it is set, else a generated one when there is
   * none at all.
   * @returns null when nothing had to be made
   */
  readonly ensureFirst: (given: string | null) => Promise<NewIngestKey | null>
}

const USE_NOTED_EVERY_MS = MINUTE_MS
/** Hashing twice costs as much as the rest of a small request's check. */
const REMEMBERED_KEYS = 1_024
/** longer than any key */
const MAX_KEY_CHARACTERS = 256
const PREFIX_CHARACTERS = 8
const LOCK_TTL_MS = 10_000
const FIRST: IngestKeyInput = { name: 'first key', sources: null, autoRegister: true }

export function createIngestKeys(deps: IngestKeyDeps): IngestKeys {
  const { entities, onError, nowMs = Date.now } = deps
  /** when a use was last sent to be written, by id; keys that are gone are dropped with them */
  const notedAtMs = new Map<string, number>()
  /** ids of keys that were right; whether they still stand is looked up each time */
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

  const find = (key: string): IngestKey | null => {
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
    remove: async (id) => {
      notedAtMs.delete(id)
      if (await entities.remove(id)) return
      throw new AppError('not_found', 'there is no such ingest key', { details: { key_id: id } })
    },
    verify: (key) => {
      const stored = entities.get(remembered.get(key) ?? '') ?? find(key)
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

const digest = (key: string): Buffer => createHash('sha256').update(key).digest()

/** The id follows from the hash, so that a key is found without an index beside the store. It is
 * hashed once more: an id is shown, and must not help in guessing a key somebody chose. */
function idOf(hash: Buffer): string {
  const hex = createHash('sha256').update('id').update(hash).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return [...parts, hex.slice(20, 32)].join('-')
}

const generateKey = (): string => `ik_${randomBytes(30).toString('base64url')}`
