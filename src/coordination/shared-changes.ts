import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import type { Priority } from '../model/event.js'
import { PrioritySchema, ReadonlyTexts } from '../model/schemas.js'
import type { SharedChange, SharedCommand } from '../wal/record.js'
import type { PendingChanges } from '../writer/pending-changes.js'
import type { SharedWork } from '../writer/writer.js'
import type { Collection } from './collection.js'
import type { Entities } from './entities.js'
import type { Log } from '../telemetry/log.js'
import type { Exclusive } from './lock.js'
import type { Following } from './replica.js'
import { DAY_MS } from '../model/time.js'

/** An instance that works on this database, and which of the changes of all instances it knows. */
const InstanceDoc = Type.Object({
  /** others need not wait for it: it looks at what was changed before it writes again */
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
    Type.Object({
      kind: Type.Literal('correct-event'),
      event: Type.Number(),
      priority: PrioritySchema,
    }),
  ]),
  /** the instance that was asked for it */
  by: Type.String(),
  atMs: Type.Number(),
  /** when it had taken effect, null before */
  overMs: Type.Union([Type.Number(), Type.Null()]),
  /** what the one who asked is told */
  result: Type.Unknown(),
})
type SharedChangeRecord = Readonly<Static<typeof SharedChangeDoc>>

/** nothing is sent by an instance that has not looked for so long at what others changed */
const LEASE_MS = 5_000
/** one that does not answer for so long is away */
const AWAY_MS = 10_000
/** when the instance that was asked does not carry a change out, another one does */
const TAKE_OVER_MS = 3_000
const WAIT_MS = 20_000
const TICK_MS = 200
const LEAVE_MS = 1_000
/** an instance that was away for so long is not expected back */
const GONE_MS = 30 * DAY_MS

export interface SharedChangesParts {
  readonly entities: Entities
  readonly following: Pick<Following, 'look' | 'knownSinceMs'>
  readonly exclusive: Exclusive
  /** who works on this data directory */
  readonly self: string
  readonly log: Log
  /** Inserts of batches that ClickHouse has been at for longer than so many seconds. */
  readonly insertsRunning: (seconds: number) => Promise<number>
  /** What is left out of the batches; the recovery of the WAL has filled it. */
  readonly pending: PendingChanges
}

/** What a change acts on in this process; made after the changes themselves. */
export interface ActedOn {
  /** the messages of these sources are of unregistered ones from here on; null: of all */
  forget(sources: readonly string[] | null): void
  /** the deletion of these is over */
  release(sources: readonly string[] | null): void
  /** repeats of the event count under this priority from here on */
  correct(event: number, priority: Priority): void
  /** whether a source of this name is registered */
  has(source: string): boolean
  mark(command: SharedCommand): { readonly seq: number; readonly durable: Promise<void> }
  openBatch(): { readonly from: number; readonly to: number } | null
  isWalEmpty(): boolean
  /** Has the writer call `barrier`. */
  wake(): void
  /** Takes the rows out of ClickHouse, and what belongs to them. @returns what the one who asked is told */
  carryOut(deletion: Deletion): Promise<unknown>
}

type Deletion = Exclude<SharedChange, { readonly kind: 'correct-event' }>

/**
 * Deletions and corrections on a database with several instances. A change is a record in ClickHouse. Each
 * instance that learns of it takes no more notice of what it concerns, gives it a place in its WAL, leaves
 * the rows before that place out of what it sends (`writer/pending-changes.ts`), and says so as soon as nothing is on
 * its way that still holds them. When all have said so the rows are taken out of ClickHouse, and only then
 * goes what came after the change.
 *
 * An instance that does not answer is noted as away. Before it sends anything again it looks at what was
 * changed meanwhile, and leaves out what it had taken before that.
 *
 * Redis makes it fast and keeps two from carrying out one change; whether it holds does not depend on Redis.
 */
export class SharedChanges implements SharedWork {
  readonly pending: PendingChanges
  readonly #parts: SharedChangesParts
  readonly #changes: Collection<SharedChangeRecord>
  readonly #instances: Collection<InstanceRecord>
  #on: ActedOn | null = null
  /** places in the WAL that are on disk, and those on their way */
  readonly #marked = new Map<string, 'writing' | 'durable'>()
  /** when a change was first seen here, of the steady clock */
  readonly #seenMs = new Map<string, number>()
  readonly #waiting = new Map<string, (record: SharedChangeRecord) => void>()
  readonly #timer: NodeJS.Timeout
  #isAnswering = false
  #isTicking = false
  #isClosed = false

  constructor(parts: SharedChangesParts) {
    this.#parts = parts
    this.pending = parts.pending
    this.#changes = parts.entities.collection('shared_change', SharedChangeDoc)
    this.#instances = parts.entities.collection('instance', InstanceDoc)
    this.#timer = setInterval(() => void this.#tick(), TICK_MS).unref()
  }

  /** Begins to take part; before anything is sent. */
  join(on: ActedOn): void {
    this.#on = on
    this.#changes.onChange(({ value, id }) => {
      if (value !== null) this.#learnAll()
      else this.#forgotten(id)
      void this.#tick()
    })
    this.#instances.onChange(() => void this.#tick())
    this.#learnAll()
  }

  /** Makes a change everywhere. @returns what `carryOut` gave, once it took effect */
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
    // when it can't be noted nobody waits for it
    made.catch(() => undefined)
    const { self: by } = this.#parts
    await this.#changes.put(id, { change, by, atMs: Date.now(), overMs: null, result: null })
    return await made
  }

  isOver(id: string): boolean {
    const record = this.#changes.get(id)
    return record === null || record.overMs !== null
  }

  async barrier(): Promise<void> {
    const { following } = this.#parts
    if (performance.now() - following.knownSinceMs > LEASE_MS) await following.look()
    if (this.#isClosed || !this.#mustAnswer()) return
    await this.#answer()
  }

  /** This instance sends nothing more. */
  async leave(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    const { self } = this.#parts
    const isDone = this.#on?.isWalEmpty() ?? true
    const left = isDone
      ? this.#instances.remove(self)
      : this.#instances.update(self, (own) => (own === null ? null : { ...own, isAway: true }))
    const late = new Promise((resolve) => setTimeout(resolve, LEAVE_MS).unref())
    // who is not told waits for it, and then notes that it is away
    await Promise.race([left.catch(() => undefined), late])
  }

  /** The records with their ids, the oldest first. */
  #list(): readonly (readonly [string, SharedChangeRecord])[] {
    return this.#changes
      .entries()
      .toSorted(([a, one], [b, other]) => one.atMs - other.atMs || (a < b ? -1 : 1))
  }

  #own(): InstanceRecord | null {
    return this.#instances.get(this.#parts.self)
  }

  #learnAll(): void {
    const on = this.#on
    if (on === null) return
    for (const [id, record] of this.#list()) {
      this.#learn(id, record, on)
      if (record.overMs !== null) this.#end(id, record, on)
    }
  }

  /** Synchronous from what is forgotten to the place in the order. */
  #learn(id: string, { change, atMs, overMs }: SharedChangeRecord, on: ActedOn): void {
    if (!this.#seenMs.has(id)) this.#seenMs.set(id, performance.now())
    if (this.#marked.has(id) || this.#own()?.known.includes(id) === true) return
    if (this.pending.has(id)) {
      // its place was found in the WAL of an earlier run
      this.#marked.set(id, 'durable')
      return
    }
    takeNotice(change, on)
    const wasMissed = overMs !== null && change.kind !== 'correct-event'
    const open = on.openBatch()
    const command = {
      kind: 'shared',
      id,
      change,
      beforeMs: wasMissed ? atMs : null,
      fromSeq: wasMissed || open === null ? 0 : open.to + 1,
    } as const
    this.#marked.set(id, 'writing')
    const { seq, durable } = on.mark(command)
    this.pending.add(seq, command)
    void this.#noteDurable(id, durable, on)
  }

  async #noteDurable(id: string, durable: Promise<void>, on: ActedOn): Promise<void> {
    try {
      await durable
      this.#marked.set(id, 'durable')
      on.wake()
    } catch {
      // the rows before it are kept back all the same; it is tried again
      this.#marked.delete(id)
    }
  }

  #end(id: string, record: SharedChangeRecord, on: ActedOn): void {
    const { change } = record
    if (this.#own()?.known.includes(id) !== true) this.pending.widen(id)
    if (change.kind === 'delete-sources') on.release(change.sources)
    if (change.kind === 'clear-all') on.release(null)
    this.#waiting.get(id)?.(record)
    on.wake()
  }

  #forgotten(id: string): void {
    this.#marked.delete(id)
    this.#seenMs.delete(id)
    this.#on?.wake()
  }

  #mustAnswer(): boolean {
    const own = this.#own()
    if (own === null || own.isAway) return true
    return this.#changes.entries().some(([id]) => this.#canAnswer(id) && !own.known.includes(id))
  }

  /** Nothing that the change concerns is on its way, nor will be. */
  #canAnswer(id: string): boolean {
    const isDurable = this.#marked.get(id) === 'durable'
    return isDurable && this.pending.covers(id, this.#on?.openBatch() ?? null)
  }

  /** Tells the others what is known here. Called while nothing is being sent. */
  async #answer(): Promise<void> {
    if (this.#isAnswering) return
    this.#isAnswering = true
    try {
      const wasThere = this.#own()?.isAway === false
      await this.#instances.update(this.#parts.self, (own) => ({
        isAway: false,
        atMs: Date.now(),
        known: this.#changes
          .entries()
          .map(([id]) => id)
          .filter((id) => own?.known.includes(id) === true || this.#canAnswer(id)),
      }))
      // what was changed just before this one was waited for again
      if (!wasThere) await this.#parts.following.look()
    } finally {
      this.#isAnswering = false
    }
  }

  async #tick(): Promise<void> {
    const on = this.#on
    if (this.#isTicking || this.#isClosed || on === null || this.#changes.size === 0) return
    this.#isTicking = true
    try {
      this.#learnAll()
      if (this.#mustAnswer()) on.wake()
      for (const [id, record] of this.#list()) await this.#advance(id, record, on)
    } catch (error) {
      this.#parts.log.debug({ err: error }, 'a change of all instances waits')
    } finally {
      this.#isTicking = false
    }
  }

  async #advance(id: string, record: SharedChangeRecord, on: ActedOn): Promise<void> {
    const ageMs = performance.now() - (this.#seenMs.get(id) ?? 0)
    if (record.by !== this.#parts.self && ageMs < TAKE_OVER_MS) return
    if (record.overMs !== null) {
      await this.#prune(id)
      return
    }
    if (this.#missing(id).length === 0) {
      // one that was away may have come back since
      await this.#parts.following.look()
      if (this.#missing(id).length > 0) return
      if (record.change.kind === 'correct-event') await this.#confirm(id, record)
      else await this.#effect(id, on)
      return
    }
    if (ageMs < AWAY_MS) return
    for (const instance of this.#missing(id)) await this.#noteAway(instance, id)
  }

  /** All that a correction needs is that everyone knows of it; its counts are moved by the one who was asked. */
  async #confirm(id: string, record: SharedChangeRecord): Promise<void> {
    this.#waiting.get(id)?.(record)
    if (await this.#prune(id)) return
    // it is kept for one that is away
    await this.#changes.update(id, (now) => (now === null ? null : { ...now, overMs: Date.now() }))
  }

  async #effect(id: string, on: ActedOn): Promise<void> {
    await this.#parts.exclusive(`change:${id}`, async () => {
      await this.#changes.reload(id)
      const record = this.#changes.get(id)
      if (record === null || record.overMs !== null) return
      // what an instance that went away had begun to send
      if (await this.#isSomethingOnItsWay()) return
      if (record.change.kind === 'correct-event') return
      const result = (await on.carryOut(record.change)) ?? null
      await this.#changes.update(id, (now) =>
        now === null ? null : { ...now, overMs: Date.now(), result },
      )
    })
  }

  async #isSomethingOnItsWay(): Promise<boolean> {
    if (!this.#instances.list().some(({ isAway }) => isAway)) return false
    try {
      return (await this.#parts.insertsRunning((AWAY_MS - LEASE_MS) / 1000)) > 0
    } catch (error) {
      if (error instanceof AppError) throw error
      // a user who may not see what runs: it has had the time until the instance was noted as away
      return false
    }
  }

  /** Instances that are there and have not said that they know of it. */
  #missing(id: string): readonly string[] {
    return this.#instances
      .entries()
      .filter(([, { isAway, known }]) => !isAway && !known.includes(id))
      .map(([instance]) => instance)
  }

  async #noteAway(instance: string, id: string): Promise<void> {
    await this.#instances.update(instance, (now) => {
      if (now === null || now.isAway || now.known.includes(id)) return now
      this.#parts.log.warn({ instance }, 'an instance does not answer; it is noted as away')
      return { ...now, isAway: true }
    })
  }

  /** A change that all have made need not be remembered. @returns whether it is not */
  async #prune(id: string): Promise<boolean> {
    for (const [instance, { isAway, atMs }] of this.#instances.entries())
      if (isAway && Date.now() - atMs > GONE_MS) await this.#instances.remove(instance)
    const isKnown = this.#instances.entries().every(([, { known }]) => known.includes(id))
    if (isKnown) await this.#changes.remove(id)
    return isKnown
  }
}

function takeNotice(change: SharedChange, on: ActedOn): void {
  switch (change.kind) {
    case 'delete-sources':
      return on.forget(change.sources)
    case 'clear-all':
      return on.forget(null)
    case 'correct-event':
      return on.correct(change.event, change.priority)
  }
}

const tooSlow = (): AppError =>
  new AppError('dependency_unavailable', 'not all instances have made the change yet; they will', {
    details: { dependency: 'clickhouse' },
    retryAfterS: 2,
  })
