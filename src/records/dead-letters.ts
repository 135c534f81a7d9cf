import type { DeadLetter, DeadLetterPosition, DeadLetterQuery } from '../model/dead-letter.js'
import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'

export interface DeadLetters {
  /** Newest first. */
  page(query: DeadLetterQuery, signal?: AbortSignal): Promise<readonly DeadLetter[]>
  /** Oldest first; ids that do not exist are left out. */
  byIds(ids: readonly number[], signal?: AbortSignal): Promise<readonly DeadLetter[]>
  countSince(sinceMs: number, signal?: AbortSignal): Promise<number>
}

type Row = {
  readonly id: number
  readonly received_ms: number
  readonly protocol: string
  readonly source: string
  readonly key_id: string
  readonly reason: string
  readonly detail: string
  readonly line: number
  readonly raw: string
}

const pageSql = statement<
  {
    readonly reasons: readonly string[]
    readonly sources: readonly string[]
    readonly before_ms: number
    readonly before_id: number
    readonly limit: number
  },
  Row
>('dead_letter_page')
const byIdsSql = statement<{ readonly ids: readonly number[]; readonly limit: number }, Row>(
  'dead_letter_by_ids',
)
const countSql = statement<{ readonly since_ms: number }, { readonly n: number }>(
  'dead_letter_count',
)

/** The year 2200: later than any dead letter, and within ClickHouse's range. */
const END_OF_TIME: DeadLetterPosition = { receivedAtMs: 7_258_118_400_000, id: 0 }

export function createDeadLetters(store: Store): DeadLetters {
  const options = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })
  return {
    async page({ reasons, sources, after, limit }, signal) {
      const { receivedAtMs, id } = after ?? END_OF_TIME
      const params = { reasons, sources, before_ms: receivedAtMs, before_id: id, limit }
      return (await store.query(pageSql, params, options(signal))).map(toDeadLetter)
    },
    async byIds(ids, signal) {
      if (ids.length === 0) return []
      const params = { ids, limit: ids.length }
      return (await store.query(byIdsSql, params, options(signal))).map(toDeadLetter)
    },
    async countSince(sinceMs, signal) {
      const rows = await store.query(countSql, { since_ms: sinceMs }, options(signal))
      return rows[0]?.n ?? 0
    },
  }
}

const toDeadLetter = ({ received_ms: receivedAtMs, key_id: keyId, ...row }: Row): DeadLetter => ({
  ...row,
  keyId,
  receivedAtMs,
})
