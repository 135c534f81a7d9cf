import { randomUUID } from 'node:crypto'

import {
  decodeAmendment,
  encodeAmendment,
  orphansOf,
  type Batch,
  piecesOf,
  type NumberedRecord,
  type Piece,
  type RowTable,
} from './batch.js'
import { hasUnreadable, type Quarantine } from './quarantine.js'
import type { Wal, RecordedBatch, WaitingRecord } from '../wal/wal.js'
import { decodeRecord, type LogRecord, type Registration, type Command } from '../wal/record.js'
import { PendingChanges, type StillWanted } from './pending-changes.js'
import { MINUTE_MS } from '../model/time.js'

/** bench/NOTES.md: half of it costs ClickHouse a fifth more CPU when much comes in, twice of it gains nothing */
export const BATCH_BYTES = 48 * 1024 * 1024
/** ClickHouse forms one block, and so one part per table, below this */
export const BATCH_ROWS = 500_000
const BATCH_RECORDS = 20_000
/** under light load about two inserts a second */
export const BATCH_DELAY_MS = 500
/**
 * An insert costs what some ten thousand rows cost, and its merges as much again: while fewer come in that time, ClickHouse
 * is not to spend more than a part of it on them. bench/flow/ingest.ts --small, 2 cores: a second takes 0.6 of its CPU
 */
const LONG_DELAY_MS = 1_000
const DELAY_PER_INSERT = 6
/** few: shown at once; many: what an insert costs hardly matters */
const LONG_FROM_BYTES = 256 * 1024
const LONG_BELOW_BYTES = 4 * 1024 * 1024
const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 5_000
const LOOK_AFTER_MS = MINUTE_MS
/** between two looks at whether a change of all instances is over, when nothing tells */
const OVER_PAUSE_MS = 200

/**
 * Where batches go; every call is repeated with the same arguments until it succeeds. An error of `insert`
 * that has `isDataError` says that the rows themselves are refused.
 */
export interface BatchTarget {
  insert(table: RowTable, parts: readonly Uint8Array[], token: string): Promise<void>
  templates(rows: LogRecord['templates'], token: string): Promise<void>
  register(registration: Registration): Promise<void>
  /** Has a source again that was deleted while newer rows of it waited here. */
  registerAgain?(name: string): Promise<void>
  /** A token for a new batch; absent: a random one. */
  newToken?(): string
  /** Which of these events are stored. */
  storedAmong(ids: readonly number[]): Promise<ReadonlySet<number>>
  /** @returns the result for the caller who appended the command */
  execute(command: OwnCommand): Promise<unknown>
}

/** What this instance does alone. */
export type OwnCommand = Exclude<Command, { readonly kind: 'shared' }>

/** The changes that instances on one database make together, as the writer waits for them. */
export interface SharedWork {
  /**
   * Called while nothing is being sent, and before each attempt to send.
   *
   * @throws when this instance can't know what the others have changed: nothing may be sent then
   */
  barrier(): Promise<void>
  /** Whether a change took effect, so that what came after it may be stored. */
  isOver(id: string): boolean
}

export interface WriterOptions {
  readonly wal: Wal
  readonly target: BatchTarget
  readonly quarantine: Quarantine
  /** Changes of other instances that the recovery of the WAL found. */
  readonly pending?: PendingChanges
  readonly onWritten: (rows: number) => void
  /** called for every failed attempt; the writer goes on trying */
  readonly onFailure: (error: unknown, attempt: number) => void
}

interface Waiter {
  readonly seq: number
  readonly resolve: () => void
  readonly reject: (cause: unknown) => void
}

/**
 * Moves the WAL into ClickHouse, in order.
 *
 * A batch is the oldest waiting records: up to 48 MiB or 500,000 rows, sent after half a second of light load. A
 * command is a batch of its own, between the rows before it and the rows after it. Before a batch is first sent, the
 * WAL records which records it holds and the deduplication token it is sent under. Each try sends the same bytes under
 * that token, so a try whose answer was lost counts once; after a restart the recorded batch is the first that is sent.
 * Tries go on, with growing pauses, until ClickHouse takes the batch; then it is marked done in the WAL.
 *
 * When ClickHouse says that the rows themselves are at fault, or has not taken them for a minute and a block is
 * unreadable, the quarantine finds the refused rows and records the batch again without them (`quarantine.ts`). Rows
 * that another instance deleted or corrected meanwhile are left out or recounted (`pending-changes.ts`).
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #pending: PendingChanges
  /** null for a single instance. */
  #shared: SharedWork | null = null
  readonly #results = new Map<number, (value: unknown) => void>()
  #waiters: Waiter[] = []
  #wake: (() => void) | null = null
  #timer: NodeJS.Timeout | null = null
  readonly #between: (() => Promise<void>)[] = []
  #flushSeq = 0
  #stopping = false
  #running: Promise<void> = Promise.resolve()
  /** not of the clock, which may be set: rows would wait for as long as it was set back */
  #oldestAtMs = 0
  /** how long ClickHouse took for the last batch */
  #tookMs = 0
  /** token of the rows that were found sound */
  #sound = ''
  /** When ClickHouse first refused what it still refuses, by `performance.now`; null when it takes batches. */
  failingSinceMs: number | null = null

  constructor(options: WriterOptions) {
    this.#options = options
    this.#pending = options.pending ?? new PendingChanges()
  }

  /** @param shared null for a single instance */
  start(shared: SharedWork | null = null): void {
    this.#shared = shared
    this.#running = this.#run()
  }

  /** Makes the writer pass the barrier of the shared changes: other instances wait for it, or a change is over. */
  wake(): void {
    this.#wake?.()
  }

  /** Says that the WAL has more. */
  notify(): void {
    if (this.#oldestAtMs === 0) this.#oldestAtMs = performance.now()
    if (this.#isDue()) this.#wake?.()
    else if (this.#wake !== null)
      this.#timer ??= setTimeout(() => this.#wake?.(), this.#untilDueMs())
  }

  /** Resolves when everything up to `seq` is in ClickHouse; does not wait for a batch to fill up. */
  async flush(seq: number, signal?: AbortSignal): Promise<void> {
    // a record that could not be written leaves a gap, and nothing would ever reach its number
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

  /** Keeps the result of the command in record `seq` for the one who appended it. */
  resultOf(seq: number): Promise<unknown> {
    return new Promise((resolve) => this.#results.set(seq, resolve))
  }

  /** Nobody waits for the result of record `seq` any more. */
  forget(seq: number): void {
    this.#results.delete(seq)
  }

  /**
   * Runs `work` between two batches: nothing is written meanwhile.
   *
   * @param signal aborted before it was begun, it is not begun
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

  /** Ends after the batch in hand; what waits stays in the WAL. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#wake?.()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      // a batch that was begun is whole only when it is done
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

  /** Whole: a timer may end a little early. */
  #untilDueMs(): number {
    const { bytes } = this.#options.wal
    const isLong = bytes >= LONG_FROM_BYTES && bytes < LONG_BELOW_BYTES
    const longMs = Math.min(this.#tookMs * DELAY_PER_INSERT, LONG_DELAY_MS)
    const delayMs = isLong ? Math.max(longMs, BATCH_DELAY_MS) : BATCH_DELAY_MS
    return Math.max(0, Math.ceil(this.#oldestAtMs + delayMs - performance.now()))
  }

  async #idle(): Promise<void> {
    if (this.#shared === null) return await this.#sleep()
    // What fails here is tried again when the writer is woken, and before anything is sent.
    await this.#shared.barrier().catch(() => undefined)
    // it may have been woken meanwhile
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

  /** Repeats a step until it succeeds; undefined when the writer was stopped in between. */
  async #attempt<T>(step: () => Promise<T>): Promise<T | undefined> {
    let waitMs = RETRY_MIN_MS
    for (let attempt = 1; ; attempt++) {
      try {
        return await step()
      } catch (error) {
        if (error instanceof Stopped) return undefined
        this.#options.onFailure(error, attempt)
      }
      if (this.#stopping) return undefined
      await this.#pause(waitMs)
      waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)
    }
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
    const token = this.#options.target.newToken?.() ?? randomUUID()
    const recorded = { from: batch.first, to: batch.last, token, amendment: null }
    const completed = await this.#completed({ recorded, records: batch.records })
    if (wal.openBatch === null) await wal.recordBatch(completed.recorded)
    return completed
  }

  /** Behind damage: repeats of an event whose first row is lost are events all the same. */
  async #completed(batch: Batch): Promise<Batch> {
    const { wal, target } = this.#options
    const { recorded, records } = batch
    if (recorded.from > wal.damagedUpTo) return batch
    const before = decodeAmendment(recorded.amendment)
    if (before.begins.length > 0) return batch
    const begins = await orphansOf(records, (ids) => target.storedAmong(ids))
    if (begins.length === 0) return batch
    const amended = { ...recorded, amendment: encodeAmendment({ ...before, begins }) }
    // every try of it is the same from here on
    await wal.recordBatch(amended)
    return { recorded: amended, records }
  }

  /** @param whole the records are a batch already, and all of them are taken */
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
      const alone = !whole && record.command !== null
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
      await this.#shared?.barrier()
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
    // as it was last recorded: an earlier try may have set rows aside
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
    for (const registration of wanted.registrations) await target.register(registration)
    for (const name of wanted.again) await target.registerAgain?.(name)
    if (wanted.templates.length > 0)
      await target.templates(wanted.templates, `${recorded.token}:templates`)
    await this.#sendRows({ recorded, records }, wanted.leftOut)
    for (const { seq, command } of records) {
      if (command === null) continue
      const result = await this.#execute(seq, command)
      this.#results.get(recorded.to)?.(result)
      this.#results.delete(recorded.to)
    }
  }

  async #execute(seq: number, command: Command): Promise<unknown> {
    const { target } = this.#options
    if (command.kind !== 'shared')
      return this.#pending.isOvertaken(seq, command) ? null : await target.execute(command)
    // rows that came after a deletion must not go with those from before it
    const isBarrier = command.change.kind !== 'correct-event'
    if (this.#shared !== null && isBarrier) await this.#untilOver(command.id, this.#shared)
    return null
  }

  async #untilOver(id: string, shared: SharedWork): Promise<void> {
    while (!shared.isOver(id)) {
      if (this.#stopping) throw new Stopped()
      await this.#rest(OVER_PAUSE_MS)
      await shared.barrier()
    }
  }

  /** Waits until the writer is woken or stopped, or the time is over. */
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
    const insert = async (table: RowTable, token: string): Promise<void> => {
      const pieces = this.#pending.revise(piecesOf(table, records, amendment))
      if (pieces.length === 0) return
      const rows = pieces.map(({ bytes }) => bytes)
      await this.#options.target.insert(table, rows, token).catch((error: unknown) => {
        throw isRefusal(error) || this.#isBroken(token, pieces)
          ? new RowsRefused(table, error)
          : error
      })
    }
    if (!amendment.landed) await insert('landing', recorded.token)
    await insert('dead_letters', `${recorded.token}:dead`)
    if (amendment.dead.length > 0)
      await this.#options.target.insert('dead_letters', amendment.dead, `${recorded.token}:refused`)
  }

  /** Looked at once for rows that were not taken for long, whatever the reason. */
  #isBroken(token: string, pieces: readonly Piece[]): boolean {
    const nowMs = performance.now()
    const isLong = nowMs - (this.failingSinceMs ?? nowMs) > LOOK_AFTER_MS
    if (!isLong || this.#sound === token) return false
    if (hasUnreadable(pieces)) return true
    this.#sound = token
    return false
  }

  async #finish({ recorded, records }: Batch): Promise<true> {
    const { wal, onWritten } = this.#options
    await wal.done(recorded.to)
    this.#pending.drop(recorded.to)
    const finished = this.#waiters.filter((waiter) => waiter.seq <= recorded.to)
    this.#waiters = this.#waiters.filter((waiter) => waiter.seq > recorded.to)
    for (const waiter of finished) waiter.resolve()
    onWritten(records.reduce((rows, { landingRows }) => rows + landingRows, 0))
    return true
  }
}

/** The writer was stopped while it waited for others. */
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
