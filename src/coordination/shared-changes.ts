import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import { PrioritySchema, ReadonlyTexts } from '../model/schemas.js'
import type { SharedChange, SharedCommand } from '../wal/record.js'
import type { PendingChanges } from '../writer/pending-changes.js'
import type { Writer } from '../writer/writer.js'
import type { Wal } from '../wal/wal.js'
import { isDeletion, type ChangeEffects, type Changes } from './changes.js'
import type { Collection } from './collection.js'
import type { Instance } from './instance.js'
import { DAY_MS } from '../model/time.js'

/** An instance that works on this database, and the changes that it has acknowledged. */
const InstanceDoc = Type.Object({
  /** Whether the others no longer wait for this instance, which then reads the changes before it sends again. */
  isAway: Type.Boolean(),
  known: Type.Array(Type.String()),
  atMs: Type.Number(),
})
type InstanceRecord = Readonly<Static<typeof InstanceDoc>>

/** A change that all instances make together. */
const SharedChangeDoc = Type.Object({
  change: Type.Union([
    Type.Object({ kind: Type.Literal('delete-sources'), sources: ReadonlyTexts }),
    Type.Object({ kind: Type.Literal('clear-all') }),
    Type.Object({ kind: Type.Literal('forget-repeats') }),
    Type.Object({
      kind: Type.Literal('correct-event'),
      event: Type.Number(),
      priority: PrioritySchema,
    }),
  ]),
  /** The instance that received the request. */
  by: Type.String(),
  atMs: Type.Number(),
  /** When the change had taken effect; null before. */
  overMs: Type.Union([Type.Number(), Type.Null()]),
  /** The result for the caller. */
  result: Type.Unknown(),
})
type SharedChangeRecord = Readonly<Static<typeof SharedChangeDoc>>

/** An instance that has not read the changes of the others for this long sends nothing. */
const LEASE_MS = 5_000
/** An instance that does not acknowledge a change for this long is away. */
const AWAY_MS = 10_000
/** Another instance executes a change when the one that received it has not done so for this long. */
const TAKE_OVER_MS = 3_000
const WAIT_MS = 20_000
const TICK_MS = 200
const LEAVE_MS = 1_000
/** After this long an instance that was away is not expected back. */
const GONE_MS = 30 * DAY_MS

interface SharedChangesDeps extends Pick<
  Instance,
  'log' | 'entities' | 'replica' | 'exclusive' | 'self' | 'store'
> {
  readonly wal: Wal
  readonly writer: Writer
  /** The changes that the writer applies to its batches, as restored by the recovery of the WAL. */
  readonly pending: PendingChanges
  readonly pipeline: {
    /** Appends a command to the WAL; the position of its record is that of the change. */
    appendCommand(command: SharedCommand): { readonly seq: number; readonly durable: Promise<void> }
  }
  readonly effects: ChangeEffects
}

/**
 * The change log: deletions and corrections that all instances on one database make together.
 *
 * 1. A change is a record in ClickHouse, which every instance reads through its replica.
 * 2. An instance that reads a change forgets what the change concerns, and writes the place of the change
 *    into its WAL: the rows before that place are older than the change. The writer leaves them out of what it
 *    sends (`writer/pending-changes.ts`).
 * 3. As soon as no batch under way holds such rows, the instance acknowledges the change in its own record.
 * 4. When all instances have acknowledged it, one of them deletes the rows in ClickHouse. Only then do the
 *    writers send what came after the change.
 *
 * An instance that does not acknowledge for AWAY_MS is noted as away. Before it sends anything again it reads the
 * changes (`barrier`), and leaves out the rows that it had taken before them. Redis makes this fast and keeps two
 * instances from carrying out the same change; whether a change holds does not depend on Redis.
 */
export class SharedChanges implements Changes {
  readonly #deps: SharedChangesDeps
  readonly #changes: Collection<SharedChangeRecord>
  readonly #instances: Collection<InstanceRecord>
  /** Whether the position of a change in the WAL is on disk, by id. */
  readonly #marked = new Map<string, 'writing' | 'durable'>()
  /** When a change was first seen here, by `performance.now`. */
  readonly #seenMs = new Map<string, number>()
  readonly #waiting = new Map<string, (record: SharedChangeRecord) => void>()
  readonly #timer: NodeJS.Timeout
  #isAcknowledging = false
  #isTicking = false
  #isClosed = false

  constructor(deps: SharedChangesDeps) {
    this.#deps = deps
    this.#changes = deps.entities.collection('shared_change', SharedChangeDoc)
    this.#instances = deps.entities.collection('instance', InstanceDoc)
    this.#timer = setInterval(() => void this.#tick(), TICK_MS).unref()
    this.#changes.onChange(({ value, id }) => {
      if (value !== null) this.#learnAll()
      else this.#forgotten(id)
      void this.#tick()
    })
    this.#instances.onChange(() => void this.#tick())
    this.#learnAll()
  }

  /**
   * Makes a change on all instances.
   *
   * @returns the result of `execute`, once the change has taken effect
   */
  async carryOut(change: SharedChange): Promise<unknown> {
    const id = randomUUID()
    const made = new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id)
        reject(tooSlow())
      }, WAIT_MS)
      this.#waiting.set(id, ({ result }) => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve(result)
      })
    })
    // When the change cannot be stored, the caller gets the error of the write instead.
    made.catch(() => undefined)
    const { self: by } = this.#deps
    await this.#changes.put(id, { change, by, atMs: Date.now(), overMs: null, result: null })
    return await made
  }

  isOver(id: string): boolean {
    const record = this.#changes.get(id)
    return record === null || record.overMs !== null
  }

  async barrier(): Promise<void> {
    const { replica } = this.#deps
    if (performance.now() - replica.caughtUpAtMs > LEASE_MS) await replica.catchUp()
    if (this.#isClosed || !this.#mustAcknowledge()) return
    await this.#acknowledge()
  }

  /** Removes this instance, which sends nothing more, or marks it as away while its WAL still holds rows. */
  async leave(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    const { self } = this.#deps
    const left =
      this.#deps.wal.waiting.length === 0
        ? this.#instances.remove(self)
        : this.#instances.update(self, (own) => (own === null ? null : { ...own, isAway: true }))
    const late = new Promise((resolve) => setTimeout(resolve, LEAVE_MS).unref())
    // An instance that does not read this in time marks this one as away later.
    await Promise.race([left.catch(() => undefined), late])
  }

  /** The changes with their ids, the oldest first. */
  #list(): readonly (readonly [string, SharedChangeRecord])[] {
    return this.#changes
      .entries()
      .toSorted(([a, one], [b, other]) => one.atMs - other.atMs || (a < b ? -1 : 1))
  }

  #own(): InstanceRecord | null {
    return this.#instances.get(this.#deps.self)
  }

  #learnAll(): void {
    for (const [id, record] of this.#list()) {
      this.#learn(id, record)
      if (record.overMs !== null) this.#end(id, record)
    }
  }

  /** Nothing is awaited between forgetting and writing the position, so that no event is sequenced in between. */
  #learn(id: string, { change, atMs, overMs }: SharedChangeRecord): void {
    if (!this.#seenMs.has(id)) this.#seenMs.set(id, performance.now())
    if (this.#marked.has(id) || this.#own()?.known.includes(id) === true) return
    if (this.#deps.pending.has(id)) {
      // The recovery of the WAL found the position of the change.
      this.#marked.set(id, 'durable')
      return
    }
    this.#deps.effects.begin(change)
    const wasMissed = overMs !== null && isDeletion(change)
    const open = this.#deps.wal.openBatch
    const command = {
      kind: 'shared',
      id,
      change,
      beforeMs: wasMissed ? atMs : null,
      fromSeq: wasMissed || open === null ? 0 : open.to + 1,
    } as const
    this.#marked.set(id, 'writing')
    const { seq, durable } = this.#deps.pipeline.appendCommand(command)
    this.#deps.pending.add(seq, command)
    void this.#noteDurable(id, durable)
  }

  async #noteDurable(id: string, durable: Promise<void>): Promise<void> {
    try {
      await durable
      this.#marked.set(id, 'durable')
      this.#deps.writer.wake()
    } catch {
      // Rows before the position are left out nevertheless; the next tick tries again.
      this.#marked.delete(id)
    }
  }

  #end(id: string, record: SharedChangeRecord): void {
    const { change } = record
    if (this.#own()?.known.includes(id) !== true) this.#deps.pending.widen(id)
    if (isDeletion(change)) this.#deps.effects.end(change)
    this.#waiting.get(id)?.(record)
    this.#deps.writer.wake()
  }

  #forgotten(id: string): void {
    this.#marked.delete(id)
    this.#seenMs.delete(id)
    this.#deps.writer.wake()
  }

  #mustAcknowledge(): boolean {
    const own = this.#own()
    if (own === null || own.isAway) return true
    return this.#changes
      .entries()
      .some(([id]) => this.#canAcknowledge(id) && !own.known.includes(id))
  }

  /** Whether no batch holds rows that the change concerns, now or later. */
  #canAcknowledge(id: string): boolean {
    const isDurable = this.#marked.get(id) === 'durable'
    return isDurable && this.#deps.pending.covers(id, this.#deps.wal.openBatch)
  }

  /** Acknowledges the changes that are known here. It is called while no batch is being sent. */
  async #acknowledge(): Promise<void> {
    if (this.#isAcknowledging) return
    this.#isAcknowledging = true
    try {
      const wasThere = this.#own()?.isAway === false
      await this.#instances.update(this.#deps.self, (own) => ({
        isAway: false,
        atMs: Date.now(),
        known: this.#changes
          .entries()
          .map(([id]) => id)
          .filter((id) => own?.known.includes(id) === true || this.#canAcknowledge(id)),
      }))
      // Other instances wait for this one only since its record exists, so changes made just before are read now.
      if (!wasThere) await this.#deps.replica.catchUp()
    } finally {
      this.#isAcknowledging = false
    }
  }

  async #tick(): Promise<void> {
    if (this.#isTicking || this.#isClosed || this.#changes.size === 0) return
    this.#isTicking = true
    try {
      this.#learnAll()
      if (this.#mustAcknowledge()) this.#deps.writer.wake()
      for (const [id, record] of this.#list()) await this.#advance(id, record)
    } catch (error) {
      this.#deps.log.debug({ err: error }, 'a change that all instances make is delayed')
    } finally {
      this.#isTicking = false
    }
  }

  async #advance(id: string, record: SharedChangeRecord): Promise<void> {
    const ageMs = performance.now() - (this.#seenMs.get(id) ?? 0)
    if (record.by !== this.#deps.self && ageMs < TAKE_OVER_MS) return
    if (record.overMs !== null) {
      await this.#prune(id)
      return
    }
    if (this.#missing(id).length === 0) {
      // An instance that was away may have come back.
      await this.#deps.replica.catchUp()
      if (this.#missing(id).length > 0) return
      if (!isDeletion(record.change)) await this.#confirm(id, record)
      else await this.#effect(id)
      return
    }
    if (ageMs < AWAY_MS) return
    for (const instance of this.#missing(id)) await this.#noteAway(instance, id)
  }

  /** Completes a correction or `forget-repeats`, which all instances have acknowledged. */
  async #confirm(id: string, record: SharedChangeRecord): Promise<void> {
    this.#waiting.get(id)?.(record)
    if (await this.#prune(id)) return
    // The record stays for an instance that is away.
    await this.#changes.update(id, (now) => (now === null ? null : { ...now, overMs: Date.now() }))
  }

  async #effect(id: string): Promise<void> {
    await this.#deps.exclusive(`change:${id}`, async () => {
      await this.#changes.reload(id)
      const record = this.#changes.get(id)
      if (record === null || record.overMs !== null) return
      // An instance that is marked as away may have begun an insert.
      if (await this.#areInsertsRunning()) return
      if (!isDeletion(record.change)) return
      const result = (await this.#deps.effects.execute(record.change)) ?? null
      await this.#changes.update(id, (now) =>
        now === null ? null : { ...now, overMs: Date.now(), result },
      )
    })
  }

  async #areInsertsRunning(): Promise<boolean> {
    if (!this.#instances.list().some(({ isAway }) => isAway)) return false
    try {
      return (await this.#deps.store.insertsRunning((AWAY_MS - LEASE_MS) / 1000)) > 0
    } catch (error) {
      if (error instanceof AppError) throw error
      // This ClickHouse user may not list running inserts. They had time to end until the instance was marked as away.
      return false
    }
  }

  /** Instances that are not away and have not acknowledged the change. */
  #missing(id: string): readonly string[] {
    return this.#instances
      .entries()
      .filter(([, { isAway, known }]) => !isAway && !known.includes(id))
      .map(([instance]) => instance)
  }

  async #noteAway(instance: string, id: string): Promise<void> {
    await this.#instances.update(instance, (now) => {
      if (now === null || now.isAway || now.known.includes(id)) return now
      this.#deps.log.warn({ instance }, 'an instance does not answer; it is marked as away')
      return { ...now, isAway: true }
    })
  }

  /**
   * Deletes the record of a change that every instance has made.
   *
   * @returns whether it was deleted
   */
  async #prune(id: string): Promise<boolean> {
    for (const [instance, { isAway, atMs }] of this.#instances.entries())
      if (isAway && Date.now() - atMs > GONE_MS) await this.#instances.remove(instance)
    const isKnown = this.#instances.entries().every(([, { known }]) => known.includes(id))
    if (isKnown) await this.#changes.remove(id)
    return isKnown
  }
}

const tooSlow = (): AppError =>
  new AppError('dependency_unavailable', 'not all instances have made the change yet', {
    details: { dependency: 'clickhouse' },
    retryAfterS: 2,
  })
