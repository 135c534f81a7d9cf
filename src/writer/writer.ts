import {
  commandsOf,
  decodeAmendment,
  encodeAmendment,
  orphansOf,
  type Batch,
  piecesOf,
  standsAlone,
  wholeBlock,
  type NumberedRecord,
  type Piece,
  type RowTable,
} from './batch.js'
import { hasUnreadable, type Quarantine } from './quarantine.js'
import type { LogAt } from '../telemetry/log.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { RecordedBatch } from '../wal/recorded-batch.js'
import type { Wal, WaitingRecord } from '../wal/wal.js'
import { decodeRecord, type LogRecord, type Registration, type Command } from '../wal/record.js'
import { PendingChanges, type StillWanted } from './pending-changes.js'
import { notStored, type StoredBatches } from './taken.js'
import { MINUTE_MS } from '../model/time.js'

/** Half of this costs ClickHouse 20 % more CPU under heavy load; twice as much gains nothing (bench/NOTES.md). */
export const BATCH_BYTES = 48 * 1024 * 1024
/** Up to this number ClickHouse forms one block, and so one part per table. */
export const BATCH_ROWS = 500_000
const BATCH_RECORDS = 20_000
/** Under light load this makes two inserts a second. */
export const BATCH_DELAY_MS = 500
/**
 * An insert costs as much CPU as ten thousand rows, and its merges as much again. When fewer rows arrive, the delay
 * grows to a multiple of the last insert's duration; a second takes 0.6 of the CPU (bench/flow/ingest.ts --small, 2 cores).
 */
const LONG_DELAY_MS = 1_000
const DELAY_PER_INSERT = 6
/**
 * The longer delay applies when the waiting bytes are in this range. Fewer bytes are a light load;
 * with more, the cost of an insert is relatively small.
 */
const LONG_FROM_BYTES = 256 * 1024
const LONG_BELOW_BYTES = 4 * 1024 * 1024
const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 5_000
const CHECK_AFTER_MS = MINUTE_MS
/** How often the writer checks whether a shared change has taken effect, unless it is woken. */
const OVER_PAUSE_MS = 200

/**
 * The destination of batches. Every call is repeated with the same arguments until it succeeds. An
 * error of `insert` with `isDataError` means that ClickHouse refuses the rows themselves.
 */
export interface BatchTarget {
  insert(table: RowTable, parts: readonly Uint8Array[], token: string): Promise<void>
  templates(rows: LogRecord['templates'], token: string): Promise<void>
  register(registrations: readonly Registration[]): Promise<void>
  /** Registers a source again that was deleted while newer rows of it waited. */
  registerAgain(name: string): Promise<void>
  newToken(): string
  readonly taken: StoredBatches
  /** @returns the ids of the events that are stored */
  storedAmong(ids: readonly number[]): Promise<ReadonlySet<number>>
  /** @returns the result for the caller who appended the command */
  execute(command: OwnCommand): Promise<unknown>
}

/** A command that this instance executes alone. */
export type OwnCommand = Exclude<Command, { readonly kind: 'shared' }>

/** The changes of all instances on one database, which the writer waits for. */
export interface SharedWork {
  /**
   * Called before each attempt to send, and while the writer is idle.
   *
   * @throws when the changes of the others are unknown: nothing may be sent then
   */
  barrier(): Promise<void>
  /** Whether a change took effect, so that later rows may be stored. */
  isOver(id: string): boolean
}

/** The work of the only instance on its database, which waits for nobody. */
export const ALONE: SharedWork = { barrier: async () => undefined, isOver: () => true }

export interface WriterOptions {
  readonly wal: Wal
  readonly target: BatchTarget
  readonly quarantine: Quarantine
  /** Changes of other instances that the recovery of the WAL found. */
  readonly pending?: PendingChanges
  readonly log: LogAt<'warn' | 'debug'>
  readonly metrics: Pick<Metrics, 'batchWritten' | 'batchFailed'>
  /** Called when a batch is stored. */
  readonly onWritten: () => void
}

interface Waiter {
  readonly seq: number
  readonly resolve: () => void
  readonly reject: (cause: unknown) => void
}

/**
 * Moves the WAL into ClickHouse, in order.
 *
 * A batch is the oldest waiting records: up to 48 MiB or 500,000 rows, sent after half a second of
 * light load. A command is a batch of its own, between the rows before it and the rows after it,
 * but for the deletion of replayed dead letters: those of a batch are deleted at once, after its rows.
 * Before a batch is first sent, the WAL records which records it holds and the deduplication token
 * it is sent under. Each attempt sends the same bytes under that token, so an attempt whose reply
 * was lost counts once. After a restart the recorded batch is sent first. The batch is retried with
 * growing pauses until ClickHouse has stored it; then it is marked done in the WAL. Rows that
 * ClickHouse stored so long ago that it may have forgotten the token are left out (`taken.ts`).
 *
 * When ClickHouse says that the rows themselves are at fault, or has not taken them for a minute and a block is
 * unreadable, the quarantine finds the refused rows and records the batch again without them (`quarantine.ts`). Rows
 * that another instance deleted or corrected meanwhile are left out or recounted (`pending-changes.ts`).
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #pending: PendingChanges
  #shared = ALONE
  readonly #results = new Map<number, (value: unknown) => void>()
  #waiters: Waiter[] = []
  #wake: (() => void) | null = null
  #timer: NodeJS.Timeout | null = null
  readonly #between: (() => Promise<void>)[] = []
  #flushSeq = 0
  #stopping = false
  #running: Promise<void> = Promise.resolve()
  /** By the monotonic clock: when the system clock is set back, rows must not wait longer. */
  #oldestAtMs = 0
  /** The duration of the last successful send. */
  #tookMs = 0
  /** The token of the last batch whose blocks are readable. */
  #readableToken = ''
  /** The token of a batch that was never sent; '' for none. */
  #newToken = ''
  /** When the current series of failures began, by `performance.now`; null while batches are stored. */
  failingSinceMs: number | null = null

  constructor(options: WriterOptions) {
    this.#options = options
    this.#pending = options.pending ?? new PendingChanges()
  }

  start(shared = ALONE): void {
    this.#shared = shared
    this.#running = this.#run()
  }

  /**
   * Wakes the writer to pass the barrier of the shared changes, because other instances wait for it
   * or a change has taken effect.
   */
  wake(): void {
    this.#wake?.()
  }

  /** Called after an append to the WAL. */
  notify(): void {
    if (this.#oldestAtMs === 0) this.#oldestAtMs = performance.now()
    if (this.#isDue()) this.#wake?.()
    else if (this.#wake !== null)
      this.#timer ??= setTimeout(() => this.#wake?.(), this.#untilDueMs())
  }

  /** Resolves when everything up to `seq` is in ClickHouse; does not wait for a batch to fill up. */
  async flush(seq: number, signal?: AbortSignal): Promise<void> {
    // A record that could not be written leaves a gap, and its sequence is never done.
    const last = this.#options.wal.waiting.findLast((record) => record.seq <= seq)
    if (last === undefined) return
    this.#flushSeq = Math.max(this.#flushSeq, last.seq)
    await new Promise<void>((resolve, reject) => {
      const waiter = { seq: last.seq, resolve, reject }
      this.#waiters.push(waiter)
      const giveUp = (): void => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', giveUp, { once: true })
      this.#wake?.()
    })
  }

  /** Resolves with the result of the command in record `seq`. */
  resultOf(seq: number): Promise<unknown> {
    return new Promise((resolve) => this.#results.set(seq, resolve))
  }

  /** Drops the promise of `resultOf`. */
  forget(seq: number): void {
    this.#results.delete(seq)
  }

  /**
   * Runs `work` between two batches.
   *
   * @param signal when it is aborted first, `work` does not begin
   */
  between<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#between.push(async () => {
        if (!signal.aborted) await work().then(resolve, reject)
      })
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      this.#wake?.()
    })
  }

  /** Ends after the current batch; the waiting records stay in the WAL. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#wake?.()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      // Work between batches waits for a batch that is partly sent.
      const isBetween = this.#options.wal.openBatch === null
      const work = isBetween ? this.#between.shift() : undefined
      if (work !== undefined || (isBetween && !this.#isDue())) {
        await (work === undefined ? this.#idle() : work())
        continue
      }
      const batch = await this.#attempt(() => this.#nextBatch())
      if (batch === undefined || batch.records.length === 0) continue
      if ((await this.#attempt(() => this.#send(batch))) === undefined) return
      if ((await this.#attempt(() => this.#finish(batch))) === undefined) return
    }
  }

  #isDue(): boolean {
    const { waiting, bytes } = this.#options.wal
    const first = waiting[0]
    if (first === undefined) return false
    if (bytes >= BATCH_BYTES || waiting.length >= BATCH_RECORDS) return true
    return first.seq <= this.#flushSeq || this.#untilDueMs() === 0
  }

  /** Rounded up, because a timer may fire a fraction early. */
  #untilDueMs(): number {
    const { bytes } = this.#options.wal
    const isLong = bytes >= LONG_FROM_BYTES && bytes < LONG_BELOW_BYTES
    const longMs = Math.min(this.#tookMs * DELAY_PER_INSERT, LONG_DELAY_MS)
    const delayMs = isLong ? Math.max(longMs, BATCH_DELAY_MS) : BATCH_DELAY_MS
    return Math.max(0, Math.ceil(this.#oldestAtMs + delayMs - performance.now()))
  }

  async #idle(): Promise<void> {
    // A failed barrier is repeated when the writer is woken, and before anything is sent.
    await this.#shared.barrier().catch(() => undefined)
    // A wake-up during the barrier finds no timer to end, so it is checked here.
    const isWanted = this.#isDue() || this.#between.length > 0 || this.#stopping
    if (!isWanted) await this.#sleep()
  }

  async #sleep(): Promise<void> {
    const waits = this.#options.wal.waiting.length > 0
    await new Promise<void>((resolve) => {
      this.#timer = waits ? setTimeout(resolve, this.#untilDueMs()) : null
      this.#wake = resolve
    })
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#wake = null
  }

  /** Repeats a step until it succeeds. @returns undefined when the writer is stopped first */
  async #attempt<T>(step: () => Promise<T>): Promise<T | undefined> {
    let waitMs = RETRY_MIN_MS
    for (let attempt = 1; ; attempt++) {
      try {
        return await step()
      } catch (error) {
        if (error instanceof Stopped) return undefined
        this.#tellFailure(error, attempt)
      }
      if (this.#stopping) return undefined
      await this.#pause(waitMs)
      waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)
    }
  }

  #tellFailure(err: unknown, attempt: number): void {
    const { log, metrics } = this.#options
    metrics.batchFailed()
    log[attempt === 1 ? 'warn' : 'debug']({ err, attempt }, 'a batch waits for ClickHouse')
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        if (!this.#stopping) return
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = null
  }

  async #nextBatch(): Promise<Batch> {
    const { wal } = this.#options
    this.#oldestAtMs = performance.now()
    const open = wal.openBatch
    const whole = open === null ? null : within(wal.waiting, open)
    const batch = await this.#gather(whole ?? wal.waiting, whole !== null)
    if (open !== null && batch.last !== null)
      return await this.#completed({ recorded: open, records: batch.records })
    if (batch.last === null) {
      // The records of the batch are damaged or done.
      if (open !== null) await wal.done(open.to)
      return NO_BATCH
    }
    const token = this.#options.target.newToken()
    const recorded = { from: batch.first, to: batch.last, token, amendment: null }
    const completed = await this.#completed({ recorded, records: batch.records })
    if (wal.openBatch === null) await wal.recordBatch(completed.recorded)
    this.#newToken = token
    return completed
  }

  /** After damage of the WAL, the first repeat of an event whose first row is lost begins the event. */
  async #completed(batch: Batch): Promise<Batch> {
    const { wal, target } = this.#options
    const { recorded, records } = batch
    if (recorded.from > wal.damagedUpTo) return batch
    const before = decodeAmendment(recorded.amendment)
    if (before.begins.length > 0) return batch
    const begins = await orphansOf(records, (ids) => target.storedAmong(ids))
    if (begins.length === 0) return batch
    const amended = { ...recorded, amendment: encodeAmendment({ ...before, begins }) }
    // From here on every attempt sends the same bytes.
    await wal.recordBatch(amended)
    return { recorded: amended, records }
  }

  /** @param whole whether the records are a recorded batch, so that all of them are taken */
  async #gather(waiting: readonly WaitingRecord[], whole: boolean): Promise<Gathered> {
    const records: NumberedRecord[] = []
    const taken = { bytes: 0, rows: 0, last: null as number | null }
    for (const next of waiting.slice(0, BATCH_RECORDS)) {
      if (!whole && records.length > 0 && isFull(taken, next)) break
      const payload = await this.#options.wal.load(next)
      if (payload === null) {
        this.forget(next.seq)
        continue
      }
      const record = decodeRecord(payload)
      const alone = !whole && standsAlone(record.command)
      if (alone && records.length > 0) break
      records.push({ ...record, seq: next.seq })
      taken.bytes += next.bytes
      taken.rows += record.landingRows
      taken.last = next.seq
      if (alone) break
    }
    return { first: waiting[0]?.seq ?? 0, last: taken.last, records }
  }

  async #send(batch: Batch): Promise<true> {
    try {
      await this.#shared.barrier()
      const beganAtMs = performance.now()
      await this.#sendAmended(batch)
      this.#tookMs = performance.now() - beganAtMs
      this.failingSinceMs = null
      return true
    } catch (error) {
      this.failingSinceMs ??= performance.now()
      throw error
    }
  }

  async #sendAmended(batch: Batch): Promise<void> {
    // An earlier attempt may have amended the batch.
    const recorded = this.#options.wal.openBatch ?? batch.recorded
    try {
      await this.#sendAll({ ...batch, recorded })
    } catch (error) {
      if (!(error instanceof RowsRefused)) throw error
      const amended = await this.#options.quarantine.amend({ ...batch, recorded }, error.table)
      if (!amended) throw error.cause
      await this.#sendAmended(batch)
    }
  }

  async #sendAll({ recorded, records }: Batch): Promise<void> {
    const { target } = this.#options
    const wanted = this.#pending.stillWanted(records)
    const rowsSent = async (): Promise<void> => {
      if (wanted.templates.length > 0)
        await target.templates(wanted.templates, `${recorded.token}:templates`)
      await this.#sendRows({ recorded, records }, wanted.leftOut)
    }
    const registered = async (): Promise<void> => {
      if (wanted.registrations.length > 0) await target.register(wanted.registrations)
      for (const name of wanted.again) await target.registerAgain(name)
    }
    // Rows and registrations are sent in parallel, so that no row waits for the sources of others.
    for (const result of await Promise.allSettled([rowsSent(), registered()]))
      if (result.status === 'rejected') throw result.reason
    for (const { seq, command } of commandsOf(records)) {
      const result = await this.#execute(seq, command)
      this.#results.get(recorded.to)?.(result)
      this.#results.delete(recorded.to)
    }
  }

  async #execute(seq: number, command: Command): Promise<unknown> {
    const { target } = this.#options
    if (command.kind !== 'shared')
      return this.#pending.isOvertaken(seq, command) ? null : await target.execute(command)
    // Later rows wait until all instances have executed a deletion.
    if (command.change.kind !== 'correct-event') await this.#untilOver(command.id)
    return null
  }

  async #untilOver(id: string): Promise<void> {
    this.#pending.reach(id)
    while (!this.#shared.isOver(id)) {
      if (this.#stopping) throw new Stopped()
      await this.#rest(OVER_PAUSE_MS)
      await this.#shared.barrier()
    }
  }

  /** Waits until the writer is woken or stopped, or for `ms`. */
  async #rest(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = null
  }

  async #sendRows({ recorded, records }: Batch, leftOut: StillWanted['leftOut']): Promise<void> {
    const before = decodeAmendment(recorded.amendment)
    const amendment = { ...before, refused: [...before.refused, ...leftOut] }
    const isNew = recorded.token === this.#newToken
    this.#newToken = ''
    const insert = async (table: RowTable, token: string, all: readonly Piece[]): Promise<void> => {
      const pieces = isNew ? all : await notStored(table, token, all, this.#options.target.taken)
      if (pieces.length === 0) return
      const rows = pieces.map(({ bytes }) => bytes)
      await this.#options.target.insert(table, rows, token).catch((error: unknown) => {
        throw isRefusal(error) || this.#isBroken(token, pieces)
          ? new RowsRefused(table, error)
          : error
      })
    }
    const rowsFor = (table: RowTable): readonly Piece[] =>
      this.#pending.revise(piecesOf(table, records, amendment))
    if (!amendment.landed) await insert('landing', recorded.token, rowsFor('landing'))
    await insert('dead_letters', `${recorded.token}:dead`, rowsFor('dead_letters'))
    const dead = amendment.dead.map((bytes) => wholeBlock(recorded.from, 'dead_letters', bytes))
    await insert('dead_letters', `${recorded.token}:refused`, dead)
  }

  /** When a batch could not be stored for a minute, checks once whether its bytes can be read at all. */
  #isBroken(token: string, pieces: readonly Piece[]): boolean {
    const nowMs = performance.now()
    const isLong = nowMs - (this.failingSinceMs ?? nowMs) > CHECK_AFTER_MS
    if (!isLong || this.#readableToken === token) return false
    if (hasUnreadable(pieces)) return true
    this.#readableToken = token
    return false
  }

  async #finish({ recorded, records }: Batch): Promise<true> {
    const { wal, metrics, onWritten } = this.#options
    await wal.done(recorded.to)
    this.#pending.drop(recorded.to)
    const finished = this.#waiters.filter((waiter) => waiter.seq <= recorded.to)
    this.#waiters = this.#waiters.filter((waiter) => waiter.seq > recorded.to)
    for (const waiter of finished) waiter.resolve()
    metrics.batchWritten(records.reduce((rows, { landingRows }) => rows + landingRows, 0))
    onWritten()
    return true
  }
}

/** The writer was stopped while it waited for other instances. */
class Stopped extends Error {
  override readonly name = 'Stopped'
}

class RowsRefused extends Error {
  override readonly name = 'RowsRefused'
  readonly table: RowTable

  constructor(table: RowTable, cause: unknown) {
    super(`rows for ${table} are refused`, { cause })
    this.table = table
  }
}

const isRefusal = (error: unknown): boolean =>
  error instanceof Error && 'isDataError' in error && error.isDataError === true

const NO_BATCH: Batch = { recorded: { from: 0, to: 0, token: '', amendment: null }, records: [] }

interface Gathered {
  readonly first: number
  readonly last: number | null
  readonly records: readonly NumberedRecord[]
}

const isFull = (
  taken: { readonly bytes: number; readonly rows: number },
  next: WaitingRecord,
): boolean =>
  taken.bytes >= BATCH_BYTES ||
  taken.bytes + next.bytes > BATCH_BYTES * 2 ||
  taken.rows >= BATCH_ROWS

const within = (
  records: readonly WaitingRecord[],
  recorded: RecordedBatch,
): readonly WaitingRecord[] =>
  records.filter((record) => record.seq >= recorded.from && record.seq <= recorded.to)
