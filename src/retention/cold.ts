/*
 * Cold storage: partitions of days that arrived COLD_AFTER_DAYS ago move to the disk `cold`, which
 * is S3. They stay part of their tables: queries, deletions and corrections reach them there, and
 * retention drops them. One instance at a time moves the due partitions, oldest first. A failed
 * move is repeated in the next round; the events stay in place until then. Each instance reads a
 * row of the newest cold day from time to time, to detect whether S3 answers. Dead letters stay on
 * the local disk, because lists read them from the newest on; so do rollups, which have no daily
 * partitions.
 */

import { moveToCold, probeCold } from '../clickhouse/cold-disk.js'
import type { Store } from '../clickhouse/client.js'
import { StoreError } from '../clickhouse/failure.js'
import type { Exclusive } from '../coordination/lock.js'
import { DAY_MS, MINUTE_MS } from '../model/time.js'
import type { Log } from '../telemetry/log.js'
import { endOf, toDay, type Partition, type Partitions } from './partitions.js'
import { createRounds } from './rounds.js'

interface ColdDeps {
  readonly store: Pick<Store, 'query' | 'change'>
  readonly partitions: Pick<Partitions, 'list'>
  readonly exclusive: Exclusive
  /** COLD_AFTER_DAYS; null when nothing moves. What was moved before is still read. */
  readonly afterDays: number | null
  /**
   * Checks the permissions of S3_URL; null without it.
   *
   * @throws Error saying what is not allowed, without keys
   */
  readonly checkS3: (() => Promise<void>) | null
  readonly log: Log
}

export type Cold = ReturnType<typeof createCold>

const ROUND_MS = MINUTE_MS

export function createCold({ store, partitions, exclusive, afterDays, checkS3, log }: ColdDeps) {
  const s3 = createS3Check(checkS3)
  /** The end of the newest day of arrival that has cold rows; 0 for none. */
  let untilMs = 0
  let coldBytes = 0
  /** The fault of the last round. */
  let fault: string | null = null

  const look = async (): Promise<readonly Partition[]> => {
    const all = await partitions.list()
    const cold = all.filter((one) => one.coldBytes > 0)
    untilMs = cold.reduce((end, one) => Math.max(end, endOf(one)), 0)
    coldBytes = cold.reduce((sum, one) => sum + one.coldBytes, 0)
    return all
  }

  const move = async (all: readonly Partition[], nowMs: number): Promise<void> => {
    if (afterDays === null) return
    const due = all
      .filter((one) => one.table !== 'dead_letters' && one.coldBytes < one.bytes)
      .filter((one) => nowMs - endOf(one) >= afterDays * DAY_MS)
      .toSorted((a, b) => a.dayMs - b.dayMs)
    for (const { table, id, dayMs, rows, bytes } of due) {
      await moveToCold(store, table, id)
      log.info({ table, day: toDay(dayMs), rows, bytes }, 'moved to cold storage')
    }
    if (due.length > 0) await look()
  }

  const probe = async (all: readonly Partition[]): Promise<void> => {
    const [newest] = all.filter((one) => one.coldBytes > 0).toSorted((a, b) => b.dayMs - a.dayMs)
    if (newest !== undefined) await probeCold(store, newest.table, newest.id)
  }

  /** Moves the partitions that are due at a time. */
  const round = async (nowMs = Date.now()): Promise<void> => {
    const all = await look()
    try {
      await s3.checkOnce()
      await probe(all)
      await exclusive('cold', () => move(all, nowMs))
      fault = null
    } catch (error) {
      const err = await s3.explain(error)
      const reason = reasonOf(err)
      if (fault !== reason) log.warn({ err }, 'cold storage: will be tried again')
      fault = reason
    }
  }

  const rounds = createRounds({
    work: () => round(),
    firstMs: 0,
    pauseMs: ROUND_MS,
    onError: (error) => log.warn({ err: error }, 'cold storage could not be checked'),
  })

  return {
    round,
    start: rounds.start,
    /** Does not wait for a move, which the server completes by itself. */
    close: (): void => void rounds.close(),
    /** Events that arrived before may be in cold storage; 0 for none. */
    untilMs: (): number => untilMs,
    bytes: (): number => coldBytes,
    /** Why events cannot be moved or read; null when they can. */
    fault: (): string | null =>
      fault === null || (afterDays === null && untilMs === 0)
        ? null
        : `cold storage does not answer or takes nothing: ${fault}`,
  }
}

/** Checks S3 at the start and after a fault, because its own error is clearer than that of ClickHouse. */
function createS3Check(tryS3: ColdDeps['checkS3']) {
  let isChecked = tryS3 === null
  return {
    checkOnce: async (): Promise<void> => {
      if (!isChecked) await tryS3?.()
      isChecked = true
    },
    /** @returns S3's error; the given error when it is from S3 itself, or S3 works */
    explain: async (error: unknown): Promise<unknown> => {
      if (!isChecked || tryS3 === null) return error
      isChecked = false
      try {
        await tryS3()
      } catch (why) {
        return why
      }
      return error
    },
  }
}

/** The fault for the health check, which anybody can read; the log has the server's whole text. */
const reasonOf = (error: unknown): string =>
  error instanceof StoreError
    ? `ClickHouse answered ${error.type || error.code}`
    : error instanceof Error
      ? error.message
      : 'unknown'
