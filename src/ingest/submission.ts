import type { BodyResult, BodyTask } from './block.js'
import type { Command } from '../wal/record.js'

/** What became of one body, or of several of the same protocol and sources together. */
export interface AcceptedBodies {
  readonly protocol: string
  /** distinct sources of the accepted messages */
  readonly sources: readonly string[]
  received: number
  accepted: number
  rejected: number
  dropped: number
  bytes: number
}

/**
 * What to count of the bodies of a task. Those of one source share their list of sources: a task of small ones has few.
 *
 * @param jobs of each body, in order
 */
export function sumsOf(
  jobs: readonly { readonly submission: Pick<BodyTask, 'protocol' | 'bytes'> }[],
  bodies: readonly BodyResult[],
): readonly AcceptedBodies[] {
  const bySources = new Map<readonly string[], AcceptedBodies>()
  const sums: AcceptedBodies[] = []
  jobs.forEach(({ submission: { protocol, bytes } }, i) => {
    const body = bodies[i]
    if (body === undefined) return
    const { sources, received, accepted, rejected, dropped } = body
    let sum = bySources.get(sources)
    if (sum?.protocol !== protocol) {
      sum = { protocol, sources, received: 0, accepted: 0, rejected: 0, dropped: 0, bytes: 0 }
      bySources.set(sources, sum)
      sums.push(sum)
    }
    sum.received += received
    sum.accepted += accepted
    sum.rejected += rejected
    sum.dropped += dropped
    sum.bytes += bytes?.byteLength ?? 0
  })
  return sums
}

/** The deletion of the dead letters that were replayed, and are stored or rejected anew; null when there are none. */
export function deletionOf(
  jobs: readonly { readonly submission: { readonly replays: number | null } }[],
  bodies: readonly BodyResult[],
): Command | null {
  const ids = jobs.flatMap(({ submission: { replays } }, i) => {
    const body = bodies[i]
    const settled = body !== undefined && body.accepted + body.rejected > 0
    return replays !== null && settled ? [replays] : []
  })
  return ids.length === 0 ? null : { kind: 'delete-dead-letters', ids }
}
