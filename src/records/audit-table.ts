import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'

/** One entry of the audit trail. */
export interface AuditRow {
  /** microseconds since 1970, or the last one plus one: the order of the trail */
  readonly seq: number
  readonly id: string
  readonly atMs: number
  /** '' when nobody was logged in */
  readonly actorId: string
  readonly action: string
  readonly target: string
  /** `ok`, or the code of the error */
  readonly outcome: string
  readonly ip: string
  readonly detail: Readonly<Record<string, unknown>>
}

export interface AuditPosition {
  readonly seq: number
  readonly id: string
}

export interface AuditQuery {
  /** empty = any */
  readonly actions: readonly string[]
  /** empty = any */
  readonly actors: readonly string[]
  /** null = from the newest on */
  readonly after: AuditPosition | null
  readonly limit: number
}

export interface AuditTable {
  /** The same token makes a repetition harmless. */
  append(rows: readonly AuditRow[], token: string): Promise<void>
  /** Newest first. */
  page(query: AuditQuery, signal?: AbortSignal): Promise<readonly AuditRow[]>
}

type Row = {
  readonly seq: number
  readonly id: string
  readonly at_ms: number
  readonly actor_id: string
  readonly action: string
  readonly target: string
  readonly outcome: string
  readonly ip: string
  readonly detail: string
}

const pageSql = statement<
  {
    readonly actions: readonly string[]
    readonly actors: readonly string[]
    readonly before_seq: number
    readonly before_id: string
    readonly limit: number
  },
  Row
>('audit_page')

const APPEND_TIMEOUT_MS = 10_000
const NEWEST: AuditPosition = { seq: Number.MAX_SAFE_INTEGER, id: '' }

export function createAuditTable(store: Store): AuditTable {
  return {
    append: (rows, token) =>
      store.insertRows('audit', rows.map(toRow), {
        timeoutMs: APPEND_TIMEOUT_MS,
        settings: { insert_deduplicate: 1, insert_deduplication_token: token },
      }),
    async page({ actions, actors, after, limit }, signal) {
      const { seq, id } = after ?? NEWEST
      const params = { actions, actors, before_seq: seq, before_id: id, limit }
      const options = signal === undefined ? {} : { signal }
      return (await store.query(pageSql, params, options)).map(toAuditRow)
    },
  }
}

const toRow = ({ atMs, actorId, detail, ...row }: AuditRow): object => ({
  ...row,
  at: new Date(atMs).toISOString(),
  actor_id: actorId,
  detail: JSON.stringify(detail),
})

const toAuditRow = ({ at_ms: atMs, actor_id: actorId, detail, ...row }: Row): AuditRow => ({
  ...row,
  atMs,
  actorId,
  detail: toDetail(detail),
})

function toDetail(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
