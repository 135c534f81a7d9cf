import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import type { Entities } from './entities.js'
import { MINUTE_MS } from '../../model/time.js'

/** The stored fields of a key; of the key itself only the hash is stored. */
export const KEY_FIELDS = {
  id: Type.String(),
  name: Type.String(),
  /** The first characters of the key, by which users recognise it. */
  prefix: Type.String(),
  /** The SHA-256 in hex. A key is long and random, so a slow hash is not needed. */
  hash: Type.String(),
  createdAtMs: Type.Number(),
  /** Updated at most once a minute. */
  lastUsedAtMs: Type.Union([Type.Number(), Type.Null()]),
}
const KeyDoc = Type.Object(KEY_FIELDS)
type StoredKey = Readonly<Static<typeof KeyDoc>>

export interface NewKey<T> {
  readonly stored: T
  /** The key, shown once. */
  readonly key: string
}

export interface KeyDeps<T extends object> {
  readonly entities: Entities<T>
  /** Called when `lastUsedAtMs` could not be stored; the next use a minute later tries again. */
  readonly onError: (error: unknown) => void
  readonly nowMs?: () => number
}

const USE_NOTED_EVERY_MS = MINUTE_MS
/** Verified keys are cached, because hashing a key costs as much as the other checks of a small request. */
const REMEMBERED_KEYS = 1_024
/** Longer than any key. */
const MAX_KEY_CHARACTERS = 256
const PREFIX_CHARACTERS = 8

/** Keys that are shown once, and stored as hashes. */
export function createStoredKeys<T extends StoredKey>(deps: KeyDeps<T>) {
  const { entities, onError, nowMs = Date.now } = deps
  /** When the last use was last stored, by id of the key. */
  const notedAtMs = new Map<string, number>()
  /** The ids of verified keys. The record is looked up on each use, so that a deleted key is refused. */
  const remembered = new LRUCache<string, string>({ max: REMEMBERED_KEYS })

  const findByHash = (key: string): T | null => {
    if (key.length > MAX_KEY_CHARACTERS) return null
    const hash = digest(key)
    const stored = entities.get(idOf(hash))
    if (stored === null || !timingSafeEqual(Buffer.from(stored.hash, 'hex'), hash)) return null
    remembered.set(key, stored.id)
    return stored
  }
  return {
    has: (key: string): boolean => entities.get(idOf(digest(key))) !== null,
    /** @param toStored joins the common fields of all keys with those of this kind */
    add: async (
      key: string,
      toStored: (common: Omit<StoredKey, 'name'>) => T,
    ): Promise<NewKey<T>> => {
      const hash = digest(key)
      const stored = toStored({
        id: idOf(hash),
        prefix: key.slice(0, PREFIX_CHARACTERS),
        hash: hash.toString('hex'),
        createdAtMs: nowMs(),
        lastUsedAtMs: null,
      })
      await entities.put(stored.id, stored)
      return { stored, key }
    },
    /** @returns whether there was one */
    remove: async (id: string): Promise<boolean> => {
      notedAtMs.delete(id)
      return await entities.remove(id)
    },
    /** Synchronous; its time does not depend on the number of keys. @returns null when there is no such key */
    find: (key: string): T | null => entities.get(remembered.get(key) ?? '') ?? findByHash(key),
    noteUse: (id: string): void => {
      const usedAtMs = nowMs()
      if (usedAtMs - (notedAtMs.get(id) ?? -Infinity) < USE_NOTED_EVERY_MS) return
      notedAtMs.set(id, usedAtMs)
      const note = (key: T | null): T | null =>
        key === null ? null : { ...key, lastUsedAtMs: usedAtMs }
      entities.update(id, note).catch(onError)
    },
  }
}

const digest = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Derives the id from the hash, so that a key is found without a further index. It is hashed once more,
 * because ids are public and must not help to guess a key that a user chose. */
function idOf(hash: Buffer): string {
  const hex = createHash('sha256').update('id').update(hash).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return [...parts, hex.slice(20, 32)].join('-')
}

/** @param prefix the kind of the key, which people and secret scanners recognise */
export const generateKey = (prefix: string): string =>
  `${prefix}${randomBytes(30).toString('base64url')}`
