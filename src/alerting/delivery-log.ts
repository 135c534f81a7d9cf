/* The log of attempts to send notices, a table of ClickHouse. */

import { setTimeout as sleep } from 'node:timers/promises'

import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { backoffMs } from '../lib/backoff.js'
import { AppError } from '../model/errors.js'
import { SECOND_MS } from '../model/time.js'
import type { Log } from '../telemetry/log.js'
import { parseTransition, type LoggedTransition } from './alert-log.js'
import type { Notice } from './notices.js'

/**
 * The outcomes of a notice. waiting: not tried yet; failed: will be tried again; held: a silence
 * holds it back; sent; refused: will not be tried again; silenced: its alert resolved while it was
 * held; dropped: the queue was full.
 */
export const OUTCOMES = [
  'waiting',
  'failed',
  'held',
  'sent',
  'refused',
  'silenced',
  'dropped',
] as const
export type Outcome = (typeof OUTCOMES)[number]

/** Whether a notice with this outcome is still to be sent. */
export const isOpen = (outcome: string): boolean =>
  outcome === 'waiting' || outcome === 'failed' || outcome === 'held'

/** The state of a notice by its last attempt. */
export interface Delivery {
  readonly noticeId: string
  readonly attempts: number
  readonly atMs: number
  readonly outcome: string
  readonly status: number
  readonly error: string
}

export interface DeliveryRecord {
  readonly notice: Notice
  readonly attempt: number
  readonly outcome: Outcome
  readonly status?: number | null
  readonly latencyMs?: number
  readonly error?: string | null
  /** The receiver's id for the message. */
  readonly receipt?: string | null
}

interface DeliveryRow {
  readonly notice_id: string
  readonly attempts: number
  readonly at_ms: number
  readonly outcome: string
  readonly status: number
  readonly error: string
}

const unsentSql = statement<
  { readonly after_ms: number; readonly after_id: string; readonly limit: number },
  { readonly id: string; readonly at_ms: number; readonly doc: string }
>('alert_unsent')
const deliveriesSql = statement<{ readonly ids: readonly string[] }, DeliveryRow>(
  'alert_deliveries_of',
)
const receiptSql = statement<
  { readonly alert_id: string; readonly channel_id: string },
  { readonly receipt: string }
>('alert_receipt')

const IDS_AT_ONCE = 1_000
const TRANSITIONS_AT_ONCE = 5_000
/** The most records that wait for ClickHouse; further ones are dropped and logged. */
const MAX_PENDING = 20_000
const ROWS_AT_ONCE = 1_000
const BACKOFF = { baseMs: SECOND_MS, maxMs: 15 * SECOND_MS }

export type DeliveryLog = ReturnType<typeof createDeliveryLog>

export function createDeliveryLog(store: Pick<Store, 'query' | 'insertRows'>, log: Log) {
  const recorder = createRecorder(store, log)
  return {
    record: recorder.record,
    close: recorder.close,

    /** Finds the states of notices by their ids. */
    async of(ids: readonly string[]): Promise<ReadonlyMap<string, Delivery>> {
      const found = new Map<string, Delivery>()
      for (let from = 0; from < ids.length; from += IDS_AT_ONCE) {
        const some = ids.slice(from, from + IDS_AT_ONCE)
        for (const row of await store.query(deliveriesSql, { ids: some })) {
          const { notice_id: noticeId, at_ms: atMs, ...rest } = row
          found.set(noticeId, { noticeId, atMs, ...rest })
        }
      }
      return found
    },

    /** Reads the transitions whose notices may still have to be sent, oldest first. */
    async *recent(): AsyncGenerator<readonly LoggedTransition[], void> {
      let after = { after_ms: 0, after_id: '' }
      for (;;) {
        const rows = await store.query(unsentSql, { ...after, limit: TRANSITIONS_AT_ONCE })
        yield rows.flatMap(({ doc }) => parseTransition(doc))
        const last = rows.at(-1)
        if (last === undefined || rows.length < TRANSITIONS_AT_ONCE) return
        after = { after_ms: last.at_ms, after_id: last.id }
      }
    },

    /** The receiver's id for its first message about an alert. */
    async receiptOf(alertId: string, channelId: string): Promise<string | null> {
      const isOf = (row: DeliveryInsert): boolean =>
        row.alert_id === alertId && row.channel_id === channelId && row.receipt !== ''
      const waiting = recorder.waiting().find(isOf)
      if (waiting !== undefined) return waiting.receipt
      const rows = await store.query(receiptSql, { alert_id: alertId, channel_id: channelId })
      return rows[0]?.receipt ?? null
    },
  }
}

function createRecorder(store: Pick<Store, 'insertRows'>, log: Log) {
  let pending: DeliveryInsert[] = []
  let writing: Promise<void> | null = null
  const closing = new AbortController()
  const { signal } = closing
  /** Inserts the pending rows, and after an error the same rows again. A row that is stored twice changes no result. */
  const write = async (): Promise<void> => {
    for (let failures = 0; pending.length > 0;) {
      const rows = pending.slice(0, ROWS_AT_ONCE)
      try {
        await store.insertRows('alert_deliveries', rows)
        failures = 0
      } catch (error) {
        failures++
        const isLost = signal.aborted || !(error instanceof AppError)
        const text = 'attempts to send notices were not recorded'
        if (isLost || failures === 1) log.warn({ err: error, rows: rows.length, isLost }, text)
        if (!isLost) {
          await sleep(backoffMs(failures, BACKOFF), undefined, { signal }).catch(() => undefined)
          continue
        }
      }
      pending = pending.slice(rows.length)
    }
    writing = null
  }
  return {
    /** The records that are not stored yet. */
    waiting: (): readonly DeliveryInsert[] => pending,

    /** Queues the record of an attempt for insertion. An attempt whose record is lost is repeated after a restart. */
    record(one: DeliveryRecord): void {
      if (pending.length >= MAX_PENDING) {
        log.warn({ notice: one.notice.id }, 'an attempt to send a notice was not recorded')
        return
      }
      pending.push(toRow(one))
      writing ??= write()
    },

    /** Tries once more to store the pending records, which are lost when that fails. */
    async close(): Promise<void> {
      closing.abort()
      await writing
    },
  }
}

type DeliveryInsert = ReturnType<typeof toRow>

const toRow = (one: DeliveryRecord) => ({
  notice_id: one.notice.id,
  attempt: one.attempt,
  at: new Date().toISOString(),
  channel_id: one.notice.channelId,
  alert_id: one.notice.transition.alertId ?? '',
  outcome: one.outcome,
  status: one.status ?? 0,
  latency_ms: one.latencyMs ?? 0,
  error: one.error ?? '',
  receipt: one.receipt ?? '',
})
