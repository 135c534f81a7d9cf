import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../lib/backoff.js'
import { AppError } from '../model/errors.js'
import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { LogAt } from '../telemetry/log.js'
import type { AuditChain, Link, StoredRecord } from './audit-chain.js'
import type { AuditEntry, AuditRecord } from './audit-record.js'

interface AuditDeps {
  /**
   * Stores entries; a repetition with the same token has no effect.
   *
   * @throws AppError when a retry may succeed; other errors are not retried
   */
  readonly append: (rows: readonly StoredRecord[], token: string) => Promise<void>
  readonly chain: AuditChain
  readonly log: LogAt<'warn'>
  readonly nowMs?: () => number
  readonly limits?: Partial<AuditLimits>
}

interface AuditLimits {
  /** The most entries that wait while they cannot be stored. */
  readonly waiting: number
  /** How long an action waits for its entry to be stored, ms. */
  readonly waitMs: number
  /** The least time from one insert to the next, ms: many small inserts would burden ClickHouse. */
  readonly gapMs: number
}

export interface Audit {
  /**
   * Resolves when the entry is stored, or after `waitMs`, so that the trail does not delay an
   * action for long. A late entry is also logged. Never rejects.
   */
  record(entry: AuditEntry): Promise<void>
  /** Resolves when everything recorded is stored, or after `deadlineMs`. */
  close(deadlineMs: number): Promise<void>
}

const LIMITS: AuditLimits = { waiting: 10_000, waitMs: 250, gapMs: 50 }
const BATCH = 1_000
const RETRY_BACKOFF = { baseMs: 200, maxMs: 10_000 }

export const createAudit = (deps: AuditDeps): Audit => new Trail(deps)

interface Waiting {
  readonly record: AuditRecord
  readonly done: () => void
}

/** States: idle ─record─▶ sending ─stored─▶ sending the next batch after a pause, or idle; a failed batch is sent again. */
class Trail implements Audit {
  readonly #deps: AuditDeps
  readonly #limits: AuditLimits
  #queue: Waiting[] = []
  #running: Promise<void> | null = null
  #isClosing = false
  #lastSeq: number

  constructor(deps: AuditDeps) {
    this.#deps = deps
    this.#limits = { ...LIMITS, ...deps.limits }
    this.#lastSeq = deps.chain.head.seq
  }

  async record(entry: AuditEntry): Promise<void> {
    const atMs = (this.#deps.nowMs ?? Date.now)()
    this.#lastSeq = Math.max(this.#lastSeq + 1, atMs * 1_000)
    const record = { ...entry, seq: this.#lastSeq, id: randomUUID(), atMs }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#limits.waitMs)
      const done = (): void => {
        clearTimeout(timer)
        resolve()
      }
      this.#enqueue({ record, done })
    })
  }

  async close(deadlineMs: number): Promise<void> {
    this.#isClosing = true
    const timer = new AbortController()
    const deadline = sleep(deadlineMs, undefined, { signal: timer.signal }).catch(() => undefined)
    await Promise.race([this.#running, deadline])
    timer.abort()
  }

  #enqueue(waiting: Waiting): void {
    this.#queue.push(waiting)
    if (this.#queue.length > this.#limits.waiting) {
      const lost = this.#queue.shift()
      lost?.done()
      this.#deps.log.warn({ audit: lost?.record }, 'audit entry is not stored')
    }
    this.#running ??= this.#run()
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const nextMs = performance.now() + this.#limits.gapMs
      const batch = this.#queue.splice(0, BATCH)
      const isStored = await this.#send(batch.map(({ record }) => record))
      for (const { done } of batch) done()
      if (!isStored) break
      if (!this.#isClosing) await sleep(Math.max(0, nextMs - performance.now()))
    }
    this.#running = null
  }

  #noteStored(): void {
    try {
      this.#deps.chain.stored()
    } catch (err) {
      this.#deps.log.warn(
        { err },
        'the end of the audit trail cannot be kept in the data directory',
      )
    }
  }

  /** Writes late entries to the log, so that they are found there meanwhile. */
  #log(records: readonly AuditRecord[], err: unknown): void {
    const { log } = this.#deps
    log.warn({ err, entries: records.length }, 'the audit trail cannot be written')
    for (const record of records) log.warn({ audit: record }, 'audit entry is late')
  }

  /** Tries until it succeeds or the error is permanent. @returns false when it was interrupted by the end of the program */
  async #send(records: readonly AuditRecord[]): Promise<boolean> {
    const { append, chain } = this.#deps
    const token = randomUUID()
    const linked = chain.link(records)
    for (let attempt = 1; ; attempt++) {
      try {
        await append(linked, token)
        this.#noteStored()
        return true
      } catch (error) {
        if (attempt === 1) this.#log(records, error)
        if (!(error instanceof AppError)) return true
        if (this.#isClosing) return false
      }
      await sleep(backoffMs(attempt, RETRY_BACKOFF))
    }
  }
}

export interface AuditPosition {
  readonly seq: number
  readonly id: string
}

export interface AuditQuery {
  /** Empty for any. */
  readonly actions: readonly string[]
  /** Empty for any. */
  readonly actors: readonly string[]
  /** Null for the first page. */
  readonly after: AuditPosition | null
  readonly limit: number
}

export interface AuditTable {
  /** Stores entries; a repetition with the same token has no effect. */
  append(rows: readonly StoredRecord[], token: string): Promise<void>
  /** All entries, oldest first. */
  all(): AsyncIterable<readonly StoredRecord[]>
  /** @returns the newest entry of a chain; null for none */
  newestOf(writer: string): Promise<StoredRecord | null>
  /** Whether a chain has an entry with this hash. */
  has(writer: string, hash: string): Promise<boolean>
  /** Newest first. */
  page(query: AuditQuery, signal?: AbortSignal): Promise<readonly AuditRecord[]>
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

const allSql = statement<
  { readonly after_seq: number; readonly after_id: string; readonly limit: number },
  Row
>('audit_all')
const newestSql = statement<{ readonly writer: string }, Row>('audit_newest')
const linkedSql = statement<
  { readonly writer: string; readonly hash: string },
  { readonly entries: number }
>('audit_linked')

const PAGE_ROWS = 5_000
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
      return (await store.query(pageSql, params, options)).map(toRecord)
    },
    async *all() {
      for (let [seq, id] = [0, '']; ;) {
        const params = { after_seq: seq, after_id: id, limit: PAGE_ROWS }
        const rows = (await store.query(allSql, params)).map(toRecord)
        yield rows
        const last = rows.at(-1)
        if (last === undefined || rows.length < PAGE_ROWS) return
        ;({ seq, id } = last)
      }
    },
    async newestOf(writer) {
      const [row] = await store.query(newestSql, { writer })
      return row === undefined ? null : toRecord(row)
    },
    async has(writer, hash) {
      const [row] = await store.query(linkedSql, { writer, hash })
      return (row?.entries ?? 0) > 0
    },
  }
}

/** The position in the chain is stored as part of the detail, and is not shown to readers of the trail. */
const toRow = ({ atMs, actorId, detail, link, ...row }: StoredRecord): object => ({
  ...row,
  at: new Date(atMs).toISOString(),
  actor_id: actorId,
  detail: JSON.stringify({ ...detail, [LINK]: link }),
})

const LINK = 'audit_link'

function toRecord({ at_ms: atMs, actor_id: actorId, detail: text, ...row }: Row): StoredRecord {
  const { [LINK]: link = null, ...detail } = toDetail(text)
  return { ...row, atMs, actorId, detail, link: isLink(link) ? link : null }
}

function toDetail(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

const isLink = (value: unknown): value is Link =>
  typeof value === 'object' &&
  value !== null &&
  'writer' in value &&
  'number' in value &&
  'previous' in value &&
  'previousAtMs' in value &&
  'hash' in value
