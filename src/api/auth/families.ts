import { Type, type Static } from '@sinclair/typebox'

import type { Entities } from './entities.js'
import { HOUR_MS } from '../../model/time.js'

/**
 * A family is a session: the chain of refresh tokens of one login, and the access tokens that came with them.
 * Only its current refresh token is valid: each refresh replaces it, and the use of an older token ends the
 * family, because one of its holders is a thief.
 */
export interface Families {
  /**
   * Synchronous, because every request calls it.
   *
   * @returns null for a family that has ended or expired
   */
  readonly get: (id: string) => Family | null
  /** The families of a user that have neither ended nor expired. */
  readonly listOf: (userId: string) => readonly Family[]
  readonly begin: (family: Family) => Promise<void>
  /** Replaces the current token. Of concurrent callers with the same token only one gets the family. */
  readonly rotate: (move: Move) => Promise<Family | 'reused' | 'ended'>
  readonly end: (id: string) => Promise<void>
}

/** The client of a session at the last login or refresh. */
const ClientDoc = Type.Object({ address: Type.String(), agent: Type.String() })
export type Client = Readonly<Static<typeof ClientDoc>>

export const FamilyDoc = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  /** Id of the current refresh token. */
  jti: Type.String(),
  /** When the current refresh token expires. */
  expiresAtMs: Type.Number(),
  /** The end of the session, however often it is refreshed; absent for sessions of earlier versions. */
  endsAtMs: Type.Optional(Type.Number()),
  /** The session epoch of the user at login; absent for 0. */
  epoch: Type.Optional(Type.Number()),
  /** The login; absent for sessions of earlier versions, as is the client. */
  createdAtMs: Type.Optional(Type.Number()),
  client: Type.Optional(ClientDoc),
  /** The last refresh; absent before the first. */
  refreshedAtMs: Type.Optional(Type.Number()),
})
export type Family = Readonly<Static<typeof FamilyDoc>>

interface Move {
  readonly id: string
  readonly from: string
  readonly to: string
  /** The lifetime of the new token, which ends with the session at the latest. */
  readonly lifetimeMs: number
  readonly client?: Client | undefined
}

/**
 * The most concurrent sessions of a user, because some scripts log in for each call. Beyond it, the
 * one that expires first ends.
 */
const MAX_PER_USER = 1_000
const SWEEP_MS = HOUR_MS

/** Stores families in ClickHouse: tokens stay valid after a restart, and those that were used or ended stay invalid. */
export function createFamilies(
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
  const isCurrent = (family: Family): boolean => family.expiresAtMs > nowMs()
  return {
    get: (id) => {
      const family = entities.get(id)
      return family !== null && isCurrent(family) ? family : null
    },
    listOf: (userId) => entities.list().filter((f) => f.userId === userId && isCurrent(f)),
    begin: async (family) => {
      await sweep(family.userId)
      await entities.put(family.id, family)
    },
    rotate: async ({ id, from, to, lifetimeMs, client }) => {
      let rotated = false
      const family = await entities.update(id, (current) => {
        rotated = current?.jti === from && current.expiresAtMs > nowMs()
        if (!rotated || current === null) return current
        const { endsAtMs = current.expiresAtMs } = current
        const expiresAtMs = Math.min(nowMs() + lifetimeMs, endsAtMs)
        const seen = { refreshedAtMs: nowMs(), ...(client === undefined ? {} : { client }) }
        return { ...current, jti: to, expiresAtMs, endsAtMs, ...seen }
      })
      if (family === null) return 'ended'
      if (rotated) return family
      await end(id)
      return 'reused'
    },
    end,
  }
}
