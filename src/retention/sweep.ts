import { isDeepStrictEqual } from 'node:util'
import { Type, type Static } from '@sinclair/typebox'

import type { Collection } from '../coordination/collection.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import { DAY_MS } from '../model/time.js'
import { endOf, toDay, type Group, type Partition, type Partitions } from './partitions.js'
import type { RetentionPolicy } from './policy.js'

/*
 * Drops what is past its retention.
 *
 * Events, their repeats and dead letters are partitioned by the day of their arrival; events and
 * repeats also by the retention class that held when they arrived. A partition is therefore dropped
 * as a whole when its day is as many days ago as its class keeps rows.
 *
 * When the retention of a source, an application or a severity changes, the partitions of the days
 * until then hold rows of another class; so do those of the next day, while an instance that was not
 * restarted yet stores under the earlier setting. Once a day, and after each change, the groups of such
 * partitions are read; those that are past their retention are deleted by row, and the partition is
 * dropped when nothing else is in it. Tables without classes (dead letters, and databases made
 * before 1018) are treated like this as soon as anything has another retention than RETENTION_DAYS.
 */

export const RetentionDoc = Type.Object({
  /** The fingerprint of the policy for new events. */
  fingerprint: Type.Union([Type.String(), Type.Null()]),
  /** The last change of the policy; 0: none. Partitions of days before, and of the day after, may hold rows of other classes. */
  changedAtMs: Type.Number(),
  /** The end of the newest day that was dropped for the disk. */
  droppedMs: Type.Optional(Type.Number()),
  /** The day that was dropped last for the disk, and when. */
  lastDrop: Type.Optional(Type.Object({ dayMs: Type.Number(), atMs: Type.Number() })),
  /** The shortest retention of each severity, of any source, under the policy of the last run. */
  shortestDays: Type.Optional(Type.Record(Type.String(), Type.Number())),
  /** By severity: what arrived before may be gone under an earlier policy. */
  goneMs: Type.Optional(Type.Record(Type.String(), Type.Number())),
})
export type RetentionRecord = Readonly<Static<typeof RetentionDoc>>

/** The id of the one record. */
export const RETENTION_ID = 'retention'

/** @returns the time of arrival before which events of these severities may be gone, whatever their retention is now; null stands for all */
export const goneUntilMs = (
  record: RetentionRecord | null,
  severities: readonly Severity[] | null,
): number =>
  Math.max(
    record?.droppedMs ?? 0,
    ...(severities ?? SEVERITIES).map((severity) => record?.goneMs?.[severity] ?? 0),
  )

/** The most groups that one statement deletes; the next run continues. */
const GROUPS_AT_ONCE = 1_000

interface SweepDeps {
  readonly policy: RetentionPolicy
  readonly partitions: Partitions
  readonly records: Collection<RetentionRecord>
  readonly onDropped: (dropped: Dropped) => void
}

export interface Dropped {
  readonly table: string
  /** 2026-11-24 */
  readonly day: string
  /** Null when the partition lost only some of its rows. */
  readonly rows: number | null
}

const bySeverity = (of: (severity: Severity) => number): Readonly<Record<string, number>> =>
  Object.fromEntries(SEVERITIES.map((severity) => [severity, of(severity)]))

export function createSweep({ policy, partitions, records, onDropped }: SweepDeps) {
  const noteChange = createChangeNotes({ policy, records })
  /** The day and the policy of the last reading of groups. */
  let readFor = ''

  const daysOf = (partition: Partition, { source, severity }: Group): number => {
    if (severity !== null) return policy.daysOf(source, severity)
    return partition.table === 'dead_letters'
      ? policy.daysOfDeadLetters(source)
      : policy.daysOfSource(source)
  }

  const drop = async (partition: Partition): Promise<void> => {
    await partitions.drop(partition)
    onDropped({ table: partition.table, day: toDay(partition.dayMs), rows: partition.rows })
  }

  /** @returns whether the partition has more expired groups */
  const dropGroups = async (partition: Partition, ageDays: number): Promise<boolean> => {
    const groups = await partitions.groups(partition)
    const expired = groups.filter((group) => ageDays >= daysOf(partition, group))
    if (expired.length === groups.length) {
      await drop(partition)
      return false
    }
    if (expired.length === 0) return false
    await partitions.deleteGroups(partition, expired.slice(0, GROUPS_AT_ONCE))
    onDropped({ table: partition.table, day: toDay(partition.dayMs), rows: null })
    return expired.length > GROUPS_AT_ONCE
  }

  /** Drops everything whose retention has expired at a time. */
  return async (nowMs: number): Promise<void> => {
    const changedAtMs = await noteChange(nowMs)
    const shortest = policy.shortestDays(null, null)
    const reading = `${Math.floor(nowMs / DAY_MS)} ${policy.fingerprint() ?? ''}`
    const isReadingDue = reading !== readFor
    let isUnfinished = false
    // What is on S3 comes last: while S3 is away, the first that has to be read there ends the run.
    const localFirst = (await partitions.list()).toSorted((a, b) => a.coldBytes - b.coldBytes)
    for (const partition of localFirst) {
      const ageDays = (nowMs - endOf(partition)) / DAY_MS
      if (ageDays < shortest) continue
      const { keptDays, dayMs } = partition
      const isMixed =
        keptDays === null ? policy.fingerprint() !== null : dayMs <= changedAtMs + DAY_MS
      if (!isMixed) {
        if (ageDays >= policy.limited(keptDays ?? 0)) await drop(partition)
      } else if (isReadingDue && (await dropGroups(partition, ageDays))) isUnfinished = true
    }
    if (isReadingDue && !isUnfinished) readFor = reading
  }
}

/** @returns the time of the last change of the policy */
const createChangeNotes =
  ({ policy, records }: Pick<SweepDeps, 'policy' | 'records'>) =>
  async (nowMs: number): Promise<number> => {
    const fingerprint = policy.fingerprint()
    const shortestDays = bySeverity((severity) => policy.shortestDays(null, [severity]))
    const known = records.get(RETENTION_ID)
    const changedAtMs = (known?.fingerprint ?? null) === fingerprint ? known?.changedAtMs : nowMs
    const before = known?.shortestDays
    const isNoted = changedAtMs === known?.changedAtMs && isDeepStrictEqual(before, shortestDays)
    if (known !== null && isNoted) return known.changedAtMs
    // What was dropped until now does not come back with a longer retention.
    const goneMs = bySeverity((severity) =>
      Math.max(known?.goneMs?.[severity] ?? 0, nowMs - (before?.[severity] ?? Infinity) * DAY_MS),
    )
    await records.update(RETENTION_ID, (now) => ({
      ...now,
      fingerprint,
      changedAtMs: changedAtMs ?? 0,
      shortestDays,
      goneMs,
    }))
    return changedAtMs ?? 0
  }
