import { Type, type Static } from '@sinclair/typebox'

import type { State } from '../../coordination/state.js'
import type { Entities } from './entities.js'
import { HOUR_MS } from '../../model/time.js'

/**
 * A family is the chain of refresh tokens of one login. Only its current token is valid: each refresh
 * replaces it, and the use of an older token ends the family, because one of its holders is a thief.
 */
export interface Families {
  readonly begin: (family: Family) => Promise<void>
  /** Replaces the current token. Of concurrent callers with the same token only one gets `rotated`. */
  readonly rotate: (move: Move) => Promise<'rotated' | 'reused' | 'ended'>
  readonly end: (id: string) => Promise<void>
}

export const FamilyDoc = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  /** Id of the current refresh token. */
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

/** Concurrent logins of a user; a further one ends the login that expires first. */
const MAX_PER_USER = 50
const SWEEP_MS = HOUR_MS

/**
 * Families of a single instance, stored in ClickHouse: refresh tokens stay valid after a restart, and used
 * ones stay invalid.
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

/**
 * Families that instances share in Redis. When Redis loses its data, every user must log in again.
 */
export function createSharedFamilies(
  state: Pick<State, 'get' | 'set' | 'compareAndSet' | 'delete'>,
  nowMs: () => number = Date.now,
): Families {
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
