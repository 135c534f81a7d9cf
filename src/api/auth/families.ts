import { Type, type Static } from '@sinclair/typebox'

import type { Entities } from './entities.js'
import { HOUR_MS } from '../../model/time.js'

/**
 * A family is what a login begins and its refreshes continue; at any time one refresh token of
 * it, the current one, is good.
 */
export interface Families {
  readonly begin: (family: Family) => Promise<void>
  /** Moves on to the next token. Of many callers with the current token one gets `rotated`. A
   * token that is not the current one was used before: that ends the family. */
  readonly rotate: (move: Move) => Promise<'rotated' | 'reused' | 'ended'>
  readonly end: (id: string) => Promise<void>
}

export const FamilyDoc = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  /** id of the current refresh token */
  jti: Type.String(),
  expiresAtMs: Type.Number(),
})
export type Family = Readonly<Static<typeof FamilyDoc>>

interface Move {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly expiresAtMs: number
}

/** Logins a user can have at once; one more ends the one nearest to its expiry. */
const MAX_PER_USER = 50
const SWEEP_MS = HOUR_MS

/**
 * Families of a single instance, kept in the store: a refresh token outlives a restart, and so
 * does the knowledge that it was used.
 */
export function createDurableFamilies(
  entities: Entities<Family>,
  nowMs: () => number = Date.now,
): Families {
  let sweptAtMs = 0
  const sweep = async (userId: string): Promise<void> => {
    const families = entities.list()
    const own = families.filter((f) => f.userId === userId)
    own.sort((a, b) => b.expiresAtMs - a.expiresAtMs)
    const leaving = own.slice(MAX_PER_USER - 1)
    if (nowMs() - sweptAtMs > SWEEP_MS) {
      sweptAtMs = nowMs()
      leaving.push(...families.filter((f) => f.expiresAtMs <= sweptAtMs))
    }
    for (const family of leaving) await entities.remove(family.id)
  }
  const end = async (id: string): Promise<void> => {
    await entities.remove(id)
  }
  return {
    begin: async (family) => {
      await sweep(family.userId)
      await entities.put(family.id, family)
    },
    rotate: async ({ id, from, to, expiresAtMs }) => {
      let rotated = false
      const family = await entities.update(id, (current) => {
        rotated = current?.jti === from && current.expiresAtMs > nowMs()
        return rotated && current !== null ? { ...current, jti: to, expiresAtMs } : current
      })
      if (family === null) return 'ended'
      if (rotated) return 'rotated'
      await end(id)
      return 'reused'
    },
    end,
  }
}

/** What shared families need of the state. */
export interface FamilyState {
  readonly get: (key: string) => Promise<string | null>
  readonly set: (key: string, value: string, ttlMs: number) => Promise<void>
  readonly compareAndSet: (
    key: string,
    expected: string,
    next: string,
    ttlMs: number,
  ) => Promise<boolean>
  readonly delete: (key: string) => Promise<void>
}

/**
 * Families that instances share. They last as long as the state: when that is emptied, everyone
 * logs in again.
 */
export function createSharedFamilies(state: FamilyState, nowMs: () => number = Date.now): Families {
  const keyOf = (id: string): string => `family:${id}`
  const ttlMs = (expiresAtMs: number): number => Math.max(1, Math.ceil(expiresAtMs - nowMs()))
  return {
    begin: ({ id, jti, expiresAtMs }) => state.set(keyOf(id), jti, ttlMs(expiresAtMs)),
    rotate: async ({ id, from, to, expiresAtMs }) => {
      if (await state.compareAndSet(keyOf(id), from, to, ttlMs(expiresAtMs))) return 'rotated'
      if ((await state.get(keyOf(id))) === null) return 'ended'
      await state.delete(keyOf(id))
      return 'reused'
    },
    end: (id) => state.delete(keyOf(id)),
  }
}
