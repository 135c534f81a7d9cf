import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../lib/backoff.js'
import { AppError } from '../model/errors.js'

/** What somebody did. */
export interface AuditEntry {
  /** '' when nobody was logged in */
  readonly actorId: string
  readonly action: string
  readonly target: string
  /** `ok`, or the code of the error */
  readonly outcome: string
  readonly ip: string
  /** small; no secrets */
  readonly detail: Readonly<Record<string, unknown>>
}

/** An entry with its place in the trail. */
export interface AuditRecord extends AuditEntry {
  readonly seq: number
  readonly id: string
  readonly atMs: number
}

interface AuditParts {
  /**
   * The same token makes a repetition harmless.
   *
   * @throws AppError when the same call may succeed later; anything else is not tried again
   */
  readonly append: (rows: readonly AuditRecord[], token: string) => Promise<void>
  readonly log: {
    warn(fields: object, text: string): void
  }
  readonly nowMs?: () => number
  readonly limits?: Partial<AuditLimits>
}

interface AuditLimits {
  /** entries held while they cannot be stored */
  readonly held: number
  /** how long an action waits for its entry to be stored, ms */
  readonly waitMs: number
  /** least time from one insert to the next, ms: many small ones would burden ClickHouse */
  readonly gapMs: number
}

export interface Audit {
  /**
   * Resolves when the entry is stored, or after `waitMs`: an action is not held up by its trail.
   * An entry that is late goes to the log as well. Never rejects.
   */
  record(entry: AuditEntry): Promise<void>
  /** Resolves when everything recorded is stored, or after `deadlineMs`. */
  close(deadlineMs: number): Promise<void>
}

const LIMITS: AuditLimits = { held: 10_000, waitMs: 250, gapMs: 50 }
const BATCH = 1_000
const RETRY_BACKOFF = { baseMs: 200, maxMs: 10_000 }

export const createAudit = (parts: AuditParts): Audit => new Trail(parts)

interface Waiting {
  readonly record: AuditRecord
  readonly done: () => void
}

/** idle ─record─▶ sending ─stored─▶ sending the next batch after a gap, or idle; failed ─▶ tried again */
class Trail implements Audit {
  readonly #parts: AuditParts
  readonly #limits: AuditLimits
  #queue: Waiting[] = []
  #running: Promise<void> | null = null
  #isClosing = false
  #lastSeq = 0

  constructor(parts: AuditParts) {
    this.#parts = parts
    this.#limits = { ...LIMITS, ...parts.limits }
  }

  async record(entry: AuditEntry): Promise<void> {
    const atMs = (this.#parts.nowMs ?? Date.now)()
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
    if (this.#queue.length > this.#limits.held) {
      const lost = this.#queue.shift()
      lost?.done()
      this.#parts.log.warn({ audit: lost?.record }, 'audit entry is not stored')
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

  /** The log is the second place where entries can be found. */
  #tell(records: readonly AuditRecord[], err: unknown): void {
    const { log } = this.#parts
    log.warn({ err, entries: records.length }, 'the audit trail can not be written')
    for (const record of records) log.warn({ audit: record }, 'audit entry is late')
  }

  /** Tries until it succeeds or cannot. @returns false when it gave up, for the program is ending */
  async #send(records: readonly AuditRecord[]): Promise<boolean> {
    const { append } = this.#parts
    const token = randomUUID()
    for (let attempt = 1; ; attempt++) {
      try {
        await append(records, token)
        return true
      } catch (error) {
        if (attempt === 1) this.#tell(records, error)
        if (!(error instanceof AppError)) return true
        if (this.#isClosing) return false
      }
      await sleep(backoffMs(attempt, RETRY_BACKOFF))
    }
  }
}
