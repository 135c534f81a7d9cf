import { randomUUID } from 'node:crypto'

import {
  decodeAmendment,
  encodeAmendment,
  piecesOf,
  type NumberedParts,
  type Piece,
  type RowTable,
} from './amendment.js'
import { orphansOf } from './orphans.js'
import { hasUnreadable, type Refusals } from './quarantine.js'
import type { Wal, BatchCut, WalEntry } from '../wal/wal.js'
import { decodeEntry, type EntryParts, type Registration, type Statement } from '../wal/record.js'
import { Unsent, type StillWanted } from './unsent.js'
import { MINUTE_MS } from '../model/time.js'

/** bench/NOTES.md: half of it costs ClickHouse a fifth more CPU when much comes in, twice of it gains nothing */
export const BATCH_BYTES = 48 * 1024 * 1024
/** ClickHouse forms one block, and so one part per table, below this */
export const BATCH_ROWS = 500_000
const BATCH_ENTRIES = 20_000
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
  templates(rows: EntryParts['templates'], token: string): Promise<void>
  register(registration: Registration): Promise<void>
  /** Has a source again that was deleted while newer rows of it waited here. */
  registerAgain?(name: string): Promise<void>
  /** A token for a new batch; absent: a random one. */
  newToken?(): string
  /** Which of these events are stored. */
  held(ids: readonly number[]): Promise<ReadonlySet<number>>
  /** @returns what the one who asked is told */
  execute(statement: OwnStatement): Promise<unknown>
}

/** What this instance does alone. */
export type OwnStatement = Exclude<Statement, { readonly kind: 'shared' }>

/** What instances on one database change together. */
export interface SharedWork {
  readonly unsent: Unsent
  /**
   * Called while nothing is being sent, and before each try to send something. @throws what keeps this
   * instance from knowing what the others have changed: nothing may be sent then
   */
  fence(): Promise<void>
  /** whether a change took effect, so that what came after it may be stored */
  isOver(id: string): boolean
}

export interface WriterOptions {
  readonly wal: Wal
  readonly target: BatchTarget
  readonly refusals: Refusals
  /** absent for the only instance there is */
  readonly shared?: SharedWork
  readonly onWritten: (rows: number) => void
  /** called for every failed attempt; the writer goes on trying */
  readonly onFailure: (error: unknown, attempt: number) => void
}

interface Waiter {
  readonly seq: number
  readonly resolve: () => void
  readonly reject: (cause: unknown) => void
}

interface Batch {
  readonly cut: BatchCut
  readonly parts: readonly NumberedParts[]
}

/**
 * Moves the WAL into ClickHouse in order: cuts a batch, records what it is made of, sends it under its
 * token until it is taken, marks it done. A statement is a batch of its own, between the rows before it
 * and the rows after it.
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #unsent: Unsent
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
  /** moment (of `performance.now`) since which ClickHouse takes nothing, null when it does */
  failingSinceMs: number | null = null

  constructor(options: WriterOptions) {
    this.#options = options
    this.#unsent = options.shared?.unsent ?? new Unsent()
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Says that the others wait for what `fence` has to tell, or that a change is over. */
  poke(): void {
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
    // an entry that could not be written leaves a gap, and nothing would ever reach its number
    const last = this.#options.wal.waiting.findLast((entry) => entry.seq <= seq)
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

  /** Keeps the result of the statement in entry `seq` for the one who appended it. */
  resultOf(seq: number): Promise<unknown> {
    return new Promise((resolve) => this.#results.set(seq, resolve))
  }

  /** Nobody waits for the result of entry `seq` any more. */
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
      const isBetween = this.#options.wal.openCut === null
      const work = isBetween ? this.#between.shift() : undefined
      if (work !== undefined || (isBetween && !this.#isDue())) {
        await (work === undefined ? this.#idle() : work())
        continue
      }
      const batch = await this.#attempt(() => this.#nextBatch())
      if (batch === undefined || batch.parts.length === 0) continue
      if ((await this.#attempt(() => this.#send(batch))) === undefined) return
      if ((await this.#attempt(() => this.#finish(batch))) === undefined) return
    }
  }

  #isDue(): boolean {
    const { waiting, bytes } = this.#options.wal
    const first = waiting[0]
    if (first === undefined) return false
    if (bytes >= BATCH_BYTES || waiting.length >= BATCH_ENTRIES) return true
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
    const { shared } = this.#options
    if (shared === undefined) return await this.#sleep()
    // what fails here is tried again when it is poked, and before anything is sent
    await shared.fence().catch(() => undefined)
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
    const open = wal.openCut
    const entries = open === null ? null : within(wal.waiting, open)
    const batch = await this.#gather(entries ?? wal.waiting, entries !== null)
    if (open !== null && batch.last !== null)
      return await this.#completed({ cut: open, parts: batch.parts })
    if (batch.last === null) {
      // a cut whose entries were damaged or done has nothing left to send
      if (open !== null) await wal.done(open.to)
      return { cut: { from: 0, to: 0, token: '', amendment: null }, parts: [] }
    }
    const token = this.#options.target.newToken?.() ?? randomUUID()
    const cut = { from: batch.first, to: batch.last, token, amendment: null }
    const completed = await this.#completed({ cut, parts: batch.parts })
    if (wal.openCut === null) await wal.cut(completed.cut)
    return completed
  }

  /** Behind damage: repeats of an event whose first row is lost are events all the same. */
  async #completed(batch: Batch): Promise<Batch> {
    const { wal, target } = this.#options
    const { cut, parts } = batch
    if (cut.from > wal.damagedUpTo) return batch
    const before = decodeAmendment(cut.amendment)
    if (before.begins.length > 0) return batch
    const begins = await orphansOf(parts, (ids) => target.held(ids))
    if (begins.length === 0) return batch
    const amended = { ...cut, amendment: encodeAmendment({ ...before, begins }) }
    // every try of it is the same from here on
    await wal.cut(amended)
    return { cut: amended, parts }
  }

  /** @param whole the entries are a batch already, and all of them are taken */
  async #gather(entries: readonly WalEntry[], whole: boolean): Promise<Gathered> {
    const parts: NumberedParts[] = []
    const taken = { bytes: 0, rows: 0, last: null as number | null }
    for (const entry of entries.slice(0, BATCH_ENTRIES)) {
      if (!whole && parts.length > 0 && isFull(taken, entry)) break
      const payload = await this.#options.wal.load(entry)
      if (payload === null) {
        this.forget(entry.seq)
        continue
      }
      const part = decodeEntry(payload)
      const alone = !whole && part.statement !== null
      if (alone && parts.length > 0) break
      parts.push({ ...part, seq: entry.seq })
      taken.bytes += entry.bytes
      taken.rows += part.landingRows
      taken.last = entry.seq
      if (alone) break
    }
    return { first: entries[0]?.seq ?? 0, last: taken.last, parts }
  }

  async #send(batch: Batch): Promise<true> {
    try {
      await this.#options.shared?.fence()
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
    const cut = this.#options.wal.openCut ?? batch.cut
    try {
      await this.#sendAll({ ...batch, cut })
    } catch (error) {
      if (!(error instanceof RowsRefused)) throw error
      const amended = await this.#options.refusals.amend({ ...batch, cut }, error.table)
      if (!amended) throw error.cause
      await this.#sendAmended(batch)
    }
  }

  async #sendAll({ cut, parts }: Batch): Promise<void> {
    const { target } = this.#options
    const wanted = this.#unsent.stillWanted(parts)
    for (const registration of wanted.registrations) await target.register(registration)
    for (const name of wanted.again) await target.registerAgain?.(name)
    if (wanted.templates.length > 0)
      await target.templates(wanted.templates, `${cut.token}:templates`)
    await this.#sendRows({ cut, parts }, wanted.leftOut)
    for (const part of parts) {
      if (part.statement === null) continue
      const result = await this.#execute(part.seq, part.statement)
      this.#results.get(cut.to)?.(result)
      this.#results.delete(cut.to)
    }
  }

  async #execute(seq: number, statement: Statement): Promise<unknown> {
    const { target, shared } = this.#options
    if (statement.kind !== 'shared')
      return this.#unsent.isOvertaken(seq, statement) ? null : await target.execute(statement)
    // rows that came after a deletion must not go with those from before it
    const isBarrier = statement.change.kind !== 'correct-event'
    if (shared !== undefined && isBarrier) await this.#untilOver(statement.id, shared)
    return null
  }

  async #untilOver(id: string, shared: SharedWork): Promise<void> {
    while (!shared.isOver(id)) {
      if (this.#stopping) throw new Stopped()
      await this.#rest(OVER_PAUSE_MS)
      await shared.fence()
    }
  }

  /** Until it is poked, or stopped, or the time is over. */
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

  async #sendRows({ cut, parts }: Batch, leftOut: StillWanted['leftOut']): Promise<void> {
    const recorded = decodeAmendment(cut.amendment)
    const amendment = { ...recorded, refused: [...recorded.refused, ...leftOut] }
    const insert = async (table: RowTable, token: string): Promise<void> => {
      const pieces = this.#unsent.revise(piecesOf(table, parts, amendment))
      if (pieces.length === 0) return
      const rows = pieces.map(({ bytes }) => bytes)
      await this.#options.target.insert(table, rows, token).catch((error: unknown) => {
        throw isRefusal(error) || this.#isBroken(token, pieces)
          ? new RowsRefused(table, error)
          : error
      })
    }
    if (!amendment.landed) await insert('landing', cut.token)
    await insert('dead_letters', `${cut.token}:dead`)
    if (amendment.dead.length > 0)
      await this.#options.target.insert('dead_letters', amendment.dead, `${cut.token}:refused`)
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

  async #finish({ cut, parts }: Batch): Promise<true> {
    const { wal, onWritten } = this.#options
    await wal.done(cut.to)
    this.#unsent.drop(cut.to)
    const finished = this.#waiters.filter((waiter) => waiter.seq <= cut.to)
    this.#waiters = this.#waiters.filter((waiter) => waiter.seq > cut.to)
    for (const waiter of finished) waiter.resolve()
    onWritten(parts.reduce((rows, part) => rows + part.landingRows, 0))
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

interface Gathered {
  readonly first: number
  readonly last: number | null
  readonly parts: readonly NumberedParts[]
}

const isFull = (
  taken: { readonly bytes: number; readonly rows: number },
  next: WalEntry,
): boolean =>
  taken.bytes >= BATCH_BYTES ||
  taken.bytes + next.bytes > BATCH_BYTES * 2 ||
  taken.rows >= BATCH_ROWS

const within = (entries: readonly WalEntry[], cut: BatchCut): readonly WalEntry[] =>
  entries.filter((entry) => entry.seq >= cut.from && entry.seq <= cut.to)
