/*
 * Cold storage: partitions of days that arrived COLD_AFTER_DAYS ago move to the disk `cold`, which is S3. They stay part of
 * their tables: questions, deletions and corrections reach them there, and retention drops them.
 *
 * One instance at a time moves what is due, the oldest day first. A move that fails is tried again at the next round, and the
 * events stay where they are until then. Each instance reads a row of the newest cold day now and then, to know whether S3
 * answers. Dead letters, which lists read from the newest on, stay on the local disk; so do rollups, which have no days.
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
  /** COLD_AFTER_DAYS; null: nothing moves, but what was moved is read there. */
  readonly afterDays: number | null
  /** Tries what S3_URL has to allow; null without it. @throws Error saying why not, without keys */
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
  /** What went wrong in the last round. */
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

  /** Moves what is due at a time. */
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
    onError: (error) => log.warn({ err: error }, 'cold storage could not be looked at'),
  })

  return {
    round,
    start: rounds.start,
    /** Does not wait for a move, which the server ends by itself. */
    close: (): void => void rounds.close(),
    /** Events that arrived before are in cold storage, maybe; 0 for none. */
    untilMs: (): number => untilMs,
    bytes: (): number => coldBytes,
    /** What keeps events from being moved or read; null for nothing. */
    fault: (): string | null =>
      fault === null || (afterDays === null && untilMs === 0)
        ? null
        : `cold storage does not answer or takes nothing: ${fault}`,
  }
}

/** Tries S3 at the start and after a fault: it says better than ClickHouse what is wrong. */
function createS3Check(tryS3: ColdDeps['checkS3']) {
  let isChecked = tryS3 === null
  return {
    checkOnce: async (): Promise<void> => {
      if (!isChecked) await tryS3?.()
      isChecked = true
    },
    /** @returns what S3 says; the error itself when that is of S3, or S3 takes all */
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

/** For health, which anybody reads; the log has the server's whole text. */
const reasonOf = (error: unknown): string =>
  error instanceof StoreError
    ? `ClickHouse answered ${error.type || error.code}`
    : error instanceof Error
      ? error.message
      : 'unknown'
