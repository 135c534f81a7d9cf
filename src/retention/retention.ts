import { openBucket } from '../clickhouse/bucket.js'
import type { Instance } from '../coordination/instance.js'
import type { Severity } from '../model/event.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../model/time.js'
import type { Audit } from '../records/audit.js'
import type { AuditEntry } from '../records/audit-record.js'
import type { Applications } from '../records/applications.js'
import type { Sources } from '../records/sources.js'
import { s3Of } from '../settings/cold.js'
import type { Collection } from '../coordination/collection.js'
import { createClockJump } from './clock-jump.js'
import { createCold, type Cold } from './cold.js'
import { createDiskLimit, diskOf, heldLimit, usedShareOf, type DiskLimit } from './disk-limit.js'
import { createPartitions, endOf, toDay, type Partition, type Partitions } from './partitions.js'
import { createRetentionPolicy, type RetentionPolicy } from './policy.js'
import { createRounds, type Rounds } from './rounds.js'
import {
  createSweep,
  goneUntilMs,
  RETENTION_ID,
  RetentionDoc,
  type RetentionRecord,
} from './sweep.js'

interface RetentionDeps extends Pick<
  Instance,
  'config' | 'log' | 'metrics' | 'store' | 'entities' | 'exclusive' | 'isEmbedded' | 'dataDir'
> {
  readonly audit: Audit
  readonly sources: Sources
  readonly applications: Applications
  /** Called when days were dropped for the disk. */
  readonly onDropped: () => void
}

/** What is stored, and what was dropped. */
export interface StorageReport {
  readonly stored: readonly Partition[]
  /** Used share of the disk under the embedded ClickHouse; null with a server. */
  readonly usedShare: number | null
  /** The day that MAX_DISK dropped last; null for none. */
  readonly dropped: DroppedDay | null
}

interface DroppedDay {
  readonly atMs: number
  /** 2026-11-24 */
  readonly day: string
}

export type Retention = ReturnType<typeof createRetention>

/** The first sweep waits until the clock of a machine that has just started is right. */
const FIRST_SWEEP_MS = 10 * MINUTE_MS
const DISK_EVERY_MS = 30_000
const CLOCK_JUMPED =
  'the clock was put forward by more than an hour: retention drops nothing for an hour'

/** Drops expired rows every hour, on one instance at a time, and moves old partitions to cold storage. */
export function createRetention(deps: RetentionDeps) {
  const { config, log, store, entities, exclusive, isEmbedded } = deps
  const policy = createRetentionPolicy(deps)
  const partitions = createPartitions(store)
  const records = entities.collection('retention', RetentionDoc)
  const limit = heldLimit(config.maxDisk, isEmbedded, log)
  // The disk of a server is not known here.
  const dir = isEmbedded ? deps.dataDir.path : null
  const disk = createDiskRounds({ ...deps, policy, partitions, records, limit, dir })
  const cold = openCold(deps, partitions)
  const sweepAt = createSweep({
    policy,
    partitions,
    records,
    onDropped: (dropped) => log.info(dropped, 'past retention: dropped'),
  })
  const sweep = (nowMs = Date.now()): Promise<void> => exclusive('retention', () => sweepAt(nowMs))
  const hasJumped = createClockJump()
  const rounds = createRounds({
    work: async () => {
      if (hasJumped()) log.warn({}, CLOCK_JUMPED)
      else await sweep()
    },
    firstMs: FIRST_SWEEP_MS,
    pauseMs: HOUR_MS,
    onError: (error) => log.warn({ err: error }, 'retention could not be applied'),
  })
  return {
    sweep,
    cold,
    policy,
    /** The part of MAX_DISK that can be enforced; null for no limit. */
    maxDisk: limit,
    start: (): void => {
      rounds.start()
      disk.start()
      // An embedded ClickHouse without S3_URL has no such disk.
      if (!isEmbedded || s3Of(config) !== null) cold.start()
    },
    /** A warning for operators: days were dropped for the disk, or cold storage does not answer; null for none. */
    told: (): string | null => {
      const all = [disk.told(), cold.fault()].filter((one) => one !== null)
      return all.length === 0 ? null : all.join('; ')
    },
    report: async (): Promise<StorageReport> => ({
      stored: await partitions.list(),
      usedShare: dir === null ? null : await usedShareOf(dir),
      dropped: disk.last(),
    }),
    /** Resolves when the current sweep has ended. */
    close: async (): Promise<void> => {
      cold.close()
      await Promise.all([disk.close(), rounds.close()])
    },
    /** The time of arrival since which all events of these sources and severities are stored; null stands for all. */
    keptSinceMs: (
      sources: readonly string[] | null,
      severities: readonly Severity[] | null,
    ): number =>
      Math.max(
        Date.now() - policy.shortestDays(sources, severities) * DAY_MS,
        goneUntilMs(records.get(RETENTION_ID), severities),
      ),
  }
}

function openCold({ config, log, store, exclusive }: RetentionDeps, partitions: Partitions): Cold {
  const s3 = s3Of(config)
  const checkS3 = s3 === null ? null : openBucket(s3).check
  return createCold({ store, partitions, exclusive, afterDays: config.coldAfterDays, checkS3, log })
}

interface DiskRoundDeps extends RetentionDeps {
  readonly limit: DiskLimit | null
  readonly dir: string | null
  readonly policy: RetentionPolicy
  readonly partitions: Partitions
  readonly records: Collection<RetentionRecord>
}

interface DiskRounds extends Rounds {
  last(): DroppedDay | null
  /** A warning about days dropped within the last day, or why none can be; null for none. */
  told(): string | null
}

/** Compares the disk with MAX_DISK periodically. */
function createDiskRounds(deps: DiskRoundDeps): DiskRounds {
  const { limit, dir, exclusive, records, audit, metrics, log } = deps
  let stuck: string | null = null
  // The last drop is stored in the database, so that other instances and the next start know it.
  const last = (): DroppedDay | null => {
    const drop = records.get(RETENTION_ID)?.lastDrop
    return drop === undefined ? null : { atMs: drop.atMs, day: toDay(drop.dayMs) }
  }
  const told = (): string | null => {
    const drop = last()
    if (drop === null || Date.now() - drop.atMs > DAY_MS) return stuck
    const dropped = `MAX_DISK is exceeded: events that arrived on ${drop.day} were dropped`
    return stuck === null ? dropped : `${dropped}; ${stuck}`
  }
  if (limit === null) return { start: () => undefined, close: async () => undefined, told, last }
  const dropDay = createDiskLimit({ ...deps, limit, disk: () => diskOf(dir ?? '') })
  const work = async (): Promise<void> => {
    const { dropped, nothingDropped } = await exclusive('retention', () => dropDay(Date.now()))
    if (nothingDropped !== null && stuck === null) log.warn({}, nothingDropped)
    stuck = nothingDropped
    const [first] = dropped
    if (first === undefined) return
    const droppedMs = Math.max(endOf(first), records.get(RETENTION_ID)?.droppedMs ?? 0)
    await records.update(RETENTION_ID, (now) => ({
      fingerprint: null,
      changedAtMs: 0,
      ...now,
      droppedMs,
      lastDrop: { dayMs: first.dayMs, atMs: Date.now() },
    }))
    for (const partition of dropped) {
      const { table, rows } = partition
      const keptDays = deps.policy.limited(partition.keptDays ?? 0)
      log.warn({ table, day: toDay(first.dayMs), rows, keptDays }, 'MAX_DISK is exceeded: dropped')
      metrics.droppedForDisk(rows)
      deps.onDropped()
      void audit.record(toAuditEntry(partition, keptDays))
    }
  }
  const onError = (error: unknown): void =>
    log.warn({ err: error }, 'MAX_DISK could not be applied')
  return {
    ...createRounds({ work, firstMs: DISK_EVERY_MS, pauseMs: DISK_EVERY_MS, onError }),
    last,
    told,
  }
}

const toAuditEntry = ({ table, dayMs, rows, bytes }: Partition, keptDays: number): AuditEntry => ({
  actorId: '',
  action: 'dropForDisk',
  target: `${table} of ${toDay(dayMs)}`,
  outcome: 'ok',
  ip: '',
  detail: { reason: 'MAX_DISK is exceeded', rows, bytes, kept_days: keptDays },
})
