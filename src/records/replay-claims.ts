import { Type } from '@sinclair/typebox'

import type { Entities } from '../coordination/entities.js'

const ClaimDoc = Type.Object({ ids: Type.Array(Type.Number()) })

/** Which dead letters an instance has in its WAL as new messages, for the others to leave alone. */
export interface ReplayClaims {
  /** Notes that these are replayed here. @returns those that no other instance has */
  claim(ids: readonly number[]): Promise<readonly number[]>
  /** Everything that was claimed here is stored. */
  release(): Promise<void>
}

/** @param self who works on this data directory; its claims outlive the process, as its WAL does */
export function createReplayClaims(entities: Entities, self: string): ReplayClaims {
  const claims = entities.collection('replay_claim', ClaimDoc)
  return {
    claim: async (ids) => {
      const others = new Set(
        claims.entries().flatMap(([instance, claim]) => (instance === self ? [] : claim.ids)),
      )
      const free = ids.filter((id) => !others.has(id))
      if (free.length > 0)
        await claims.update(self, (own) => ({ ids: [...(own?.ids ?? []), ...free] }))
      return free
    },
    release: async () => {
      await claims.remove(self)
    },
  }
}

/** For the only instance there is. */
export const noReplayClaims: ReplayClaims = {
  claim: async (ids) => ids,
  release: async () => undefined,
}
