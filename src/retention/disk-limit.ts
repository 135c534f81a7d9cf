import { statfs } from 'node:fs/promises'

import { endOf, type Partition, type Partitions } from './partitions.js'
import type { RetentionPolicy } from './policy.js'

/** MAX_DISK: a share (0..1) of the disk, or the bytes of events, repeats and dead letters. */
export type DiskLimit =
  | { readonly kind: 'share'; readonly share: number }
  | { readonly kind: 'bytes'; readonly bytes: number }

interface DiskLimitDeps {
  readonly limit: DiskLimit
  /** Used share of the disk under ClickHouse. */
  readonly usedShare: () => Promise<number>
  readonly partitions: Pick<Partitions, 'list' | 'drop'>
  readonly policy: Pick<RetentionPolicy, 'limited'>
}

/** The used share of the disk that a directory is on. */
export async function usedShareOf(dir: string): Promise<number> {
  const { blocks, bfree, bavail } = await statfs(dir)
  const used = blocks - bfree
  return used / Math.max(1, used + bavail)
}

/**
 * Drops a day when the limit is exceeded: the oldest of the shortest retention. The present day stays, whatever else fills the
 * disk. ClickHouse removes the files a moment later, so a call drops one day and the next one measures again.
 *
 * @returns what was dropped
 */
export function createDiskLimit({ limit, usedShare, partitions, policy }: DiskLimitDeps) {
  const isExceeded = async (all: readonly Partition[]): Promise<boolean> =>
    limit.kind === 'share'
      ? (await usedShare()) > limit.share
      : all.reduce((sum, { bytes }) => sum + bytes, 0) > limit.bytes

  const daysOf = ({ keptDays }: Partition): number => policy.limited(keptDays ?? 0)

  return async (nowMs: number): Promise<readonly Partition[]> => {
    const all = await partitions.list()
    if (!(await isExceeded(all))) return []
    const [first] = all
      .filter((one) => endOf(one) <= nowMs)
      .toSorted((a, b) => daysOf(a) - daysOf(b) || a.dayMs - b.dayMs)
    if (first === undefined) return []
    const dropped = all.filter((one) => one.dayMs === first.dayMs && daysOf(one) === daysOf(first))
    for (const one of dropped) await partitions.drop(one)
    return dropped
  }
}
