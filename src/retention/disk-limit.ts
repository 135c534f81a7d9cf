import { statfs } from 'node:fs/promises'
import { join } from 'node:path'

import type { LogAt } from '../telemetry/log.js'
import { endOf, localBytes, type Partition, type Partitions } from './partitions.js'
import type { RetentionPolicy } from './policy.js'

/** MAX_DISK: a share (0..1) of the disk, or the local bytes of events, repeats and dead letters. */
export type DiskLimit =
  | { readonly kind: 'share'; readonly share: number }
  | { readonly kind: 'bytes'; readonly bytes: number }

export interface Disk {
  readonly usedBytes: number
  /** Used, or free for users other than root. */
  readonly bytes: number
}

interface DiskLimitDeps {
  readonly limit: DiskLimit
  /** The disk under ClickHouse. */
  readonly disk: () => Promise<Disk>
  readonly partitions: Pick<Partitions, 'list' | 'drop'>
  readonly policy: Pick<RetentionPolicy, 'limited'>
}

interface Outcome {
  readonly dropped: readonly Partition[]
  /** Why nothing is dropped although the limit is exceeded; else null. */
  readonly nothingDropped: string | null
}

/** @returns the part of MAX_DISK that can be enforced: the disk of a ClickHouse server is not known here */
export function heldLimit(
  limit: DiskLimit | null,
  isEmbedded: boolean,
  log: LogAt<'warn'>,
): DiskLimit | null {
  if (isEmbedded || limit?.kind !== 'share') return limit
  log.warn(
    {},
    'MAX_DISK in per cent has no effect with CLICKHOUSE_URL: nothing is dropped before the disk of the server is full; ' +
      'set it in bytes, such as MAX_DISK=50000000000, or to off',
  )
  return null
}

/** A share of MAX_DISK. When events take less than this, other files fill the disk, and no events are dropped. */
const OWN_SHARE = 0.5

/** The disk that a directory is on. */
export async function diskOf(dir: string): Promise<Disk> {
  const { blocks, bfree, bavail, bsize } = await statfs(dir)
  const used = blocks - bfree
  return { usedBytes: used * bsize, bytes: (used + bavail) * bsize }
}

/** The used share of the disk that a directory is on. */
export async function usedShareOf(dir: string): Promise<number> {
  const { usedBytes, bytes } = await diskOf(dir)
  return usedBytes / Math.max(1, bytes)
}

/**
 * Drops a day of events when the limit is exceeded: the oldest one with the shortest retention. The
 * current day stays, and so does cold storage. ClickHouse removes the files a moment later, so a
 * call drops only one day, and the next call measures again.
 */
export function createDiskLimit({ limit, disk, partitions, policy }: DiskLimitDeps) {
  const daysOf = ({ keptDays }: Partition): number => policy.limited(keptDays ?? 0)
  const drop = async (all: readonly Partition[], nowMs: number): Promise<Outcome> => {
    // A day in cold storage has local rows too until the next move: of corrections, or of an outage.
    const droppable = all
      .filter((one) => endOf(one) <= nowMs && one.coldBytes === 0)
      .toSorted((a, b) => daysOf(a) - daysOf(b) || a.dayMs - b.dayMs)
    const [first] = droppable
    if (first === undefined) return { dropped: [], nothingDropped: ONLY_TODAY }
    const dropped = droppable.filter(
      (one) => one.dayMs === first.dayMs && daysOf(one) === daysOf(first),
    )
    for (const one of dropped) await partitions.drop(one)
    return { dropped, nothingDropped: null }
  }

  const list = async (): Promise<readonly Partition[]> =>
    (await partitions.list()).filter((one) => localBytes(one) > 0)
  const sum = (all: readonly Partition[]): number =>
    all.reduce((bytes, one) => bytes + localBytes(one), 0)

  const holdBytes = async (most: number, nowMs: number): Promise<Outcome> => {
    const all = await list()
    return sum(all) > most ? await drop(all, nowMs) : NOTHING
  }

  const holdShare = async (share: number, nowMs: number): Promise<Outcome> => {
    const { usedBytes, bytes } = await disk()
    const mostBytes = bytes * share
    // A ClickHouse at rest is not asked.
    if (usedBytes <= mostBytes) return NOTHING
    const all = await list()
    const ownBytes = sum(all)
    if (ownBytes > mostBytes * OWN_SHARE) return await drop(all, nowMs)
    const percent = (part: number): number => Math.round((part / bytes) * 100)
    const nothingDropped =
      `the disk is ${percent(usedBytes)} % full, above MAX_DISK=${percent(mostBytes)}%, and events take ` +
      `${percent(ownBytes)} % of it: other files fill it, so no events are dropped`
    return { dropped: [], nothingDropped }
  }

  return (nowMs: number): Promise<Outcome> =>
    limit.kind === 'bytes' ? holdBytes(limit.bytes, nowMs) : holdShare(limit.share, nowMs)
}

const NOTHING: Outcome = { dropped: [], nothingDropped: null }
const ONLY_TODAY =
  'MAX_DISK is exceeded by the events of today, which are not dropped: raise MAX_DISK, or send less'

/**
 * ClickHouse needs some MiB of disk to store one row. When a start fails with less free space, the
 * error says that the disk is full.
 */
const LEAST_FREE_BYTES = 16 * 1024 * 1024
/** The free files (inodes) that an embedded ClickHouse needs to start. */
const LEAST_FREE_FILES = 300

/**
 * Explains a failed start on a full disk, which may fail in many ways.
 *
 * @param cause the error of the start
 * @returns an error that names the directory whose disk is full; null when there is space
 */
export async function explainFullDisk(dataDir: string, cause: unknown): Promise<Error | null> {
  for (const dir of ['', 'wal', 'clickhouse'].map((name) => join(dataDir, name))) {
    const disk = await statfs(dir).catch(() => null)
    if (disk === null) continue
    const { bavail, bsize, files, ffree } = disk
    const isFull = bavail * bsize < LEAST_FREE_BYTES
    // Some file systems have no limit of files and report 0.
    if (!isFull && (files === 0 || ffree >= LEAST_FREE_FILES)) continue
    const free = isFull ? `${bavail * bsize} bytes are free` : `${ffree} more files fit on it`
    const reason = cause instanceof Error ? cause.message : String(cause)
    return new Error(
      `the disk of ${dir} is full (${free}): make room on it and start again, nothing that was ` +
        `acknowledged is lost (${reason})`,
      { cause },
    )
  }
  return null
}
