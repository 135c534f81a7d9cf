import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import type { Priority } from '../model/event.js'
import { NewestFirst, type Records } from './newest-first.js'
import type { PageQuery } from './page.js'
import { PrioritySchema } from '../model/schemas.js'

/** An alert as it is stored. */
export const AlertDoc = Type.Object({
  id: Type.String(),
  seq: Type.Integer(),
  createdAtMs: Type.Integer(),
  title: Type.String(),
  severity: PrioritySchema,
  /** Whether it was read by itself; read-all reads every alert up to its watermark as well. */
  read: Type.Boolean(),
  eventIds: Type.Array(Type.Integer()),
  relatedSource: Type.Union([Type.String(), Type.Null()]),
})
export type Alert = Readonly<Static<typeof AlertDoc>>

/** The watermark up to which read-all has read; one record with the id `WATERMARK_ID`. */
export const AlertWatermarkDoc = Type.Object({ seq: Type.Integer() })
export type AlertWatermark = Readonly<Static<typeof AlertWatermarkDoc>>

export interface NewAlert {
  /** Given for an alert that may be raised again: the second time changes nothing. */
  readonly id?: string
  readonly title: string
  readonly severity: Priority
  readonly eventIds: readonly number[]
  /** Null for the common source of the events, if they have one. */
  readonly relatedSource: string | null
}

interface AlertFilter {
  /** Null for read and unread alerts. */
  readonly read: boolean | null
  /** Empty for any. */
  readonly severities: readonly string[]
}

export interface AlertDeps {
  readonly records: Records<Alert>
  readonly watermarks: Pick<Records<AlertWatermark>, 'get' | 'update' | 'onChange'>
  /** The distinct sources of those events that exist. */
  readonly sourcesOfEvents: (ids: readonly number[]) => Promise<readonly string[]>
  /** Whether a source is registered; false as soon as its deletion begins. */
  readonly hasSource: (name: string) => boolean
  readonly nowMs?: () => number
  /** With this many alerts the oldest hundredth is deleted, read ones first. */
  readonly maxAlerts?: number
}

export type Alerts = ReturnType<typeof createAlerts>

const WATERMARK_ID = 'read'
const MAX_ALERTS = 200_000
/** Removals that are under way at once; the entity writer inserts them together. */
const REMOVALS_AT_ONCE = 500

/** Alerts in memory, written through. Every change may reject with `dependency_unavailable`. */
export function createAlerts(deps: AlertDeps) {
  const index = new NewestFirst(deps.records)
  const counter = createCounter(deps, index)
  return { ...createReads(index, counter), ...createChanges(deps, index, counter) }
}

const createReads = (index: NewestFirst<Alert>, counter: Counter) => ({
  page(query: PageQuery, { read, severities }: AlertFilter) {
    const page = index.page(
      query,
      (alert) =>
        (read === null || counter.isRead(alert) === read) &&
        (severities.length === 0 || severities.includes(alert.severity)),
    )
    return { ...page, items: page.items.map(counter.view) }
  },
  openCount: () => counter.open(),
  /** Gives the newest alerts. */
  recent(count: number): readonly Alert[] {
    const newest: Alert[] = []
    for (const alert of index.values()) {
      if (newest.length >= count) break
      newest.push(counter.view(alert))
    }
    return newest
  },
})

function createChanges(deps: AlertDeps, index: NewestFirst<Alert>, counter: Counter) {
  const { records, watermarks, nowMs = Date.now, maxAlerts = MAX_ALERTS } = deps
  /** Alerts being written are not among the records yet, but precede the next request. */
  const pending = new Set<Promise<unknown>>()
  const makeRoom = createEviction(records, index, maxAlerts)
  return {
    async create({
      id = randomUUID(),
      title,
      severity,
      eventIds,
      relatedSource: given,
    }: NewAlert): Promise<Alert> {
      if (records.size >= maxAlerts) await makeRoom()
      const asks = given === null && eventIds.length > 0
      const sources = asks ? await deps.sourcesOfEvents(eventIds) : []
      // Nothing is awaited between this check and the write, so that a deletion of the source finds the alert.
      const relatedSource = given ?? soleSource(sources, deps.hasSource)
      const createdAtMs = nowMs()
      const seq = index.nextSeq(createdAtMs, watermarks.get(WATERMARK_ID)?.seq)
      const facts = { id, seq, createdAtMs, title, severity, relatedSource }
      const alert: Alert = { ...facts, eventIds: [...eventIds], read: false }
      const write = records.update(id, (current) => current ?? alert)
      pending.add(write)
      return (await write.finally(() => pending.delete(write))) ?? alert
    },
    /** @throws AppError not_found */
    async read(id: string): Promise<Alert> {
      const alert = await records.update(id, (current) =>
        current === null || counter.isRead(current) ? current : { ...current, read: true },
      )
      if (alert === null) throw missing(id)
      return counter.view(alert)
    },
    /** @returns how many were unread */
    async readAll(): Promise<number> {
      await Promise.allSettled(pending)
      const updated = counter.open()
      const newest = index.values().next().value
      if (updated === 0 || newest === undefined) return 0
      const { seq } = newest
      await watermarks.update(WATERMARK_ID, (current) =>
        current !== null && current.seq >= seq ? current : { seq },
      )
      return updated
    },
    /** Deletes the alerts of deleted sources. @returns how many there were */
    async removeForSources(names: readonly string[]): Promise<number> {
      await Promise.allSettled(pending)
      const gone = new Set(names)
      const ids: string[] = []
      for (const { id, relatedSource } of index.values()) {
        if (relatedSource !== null && gone.has(relatedSource)) ids.push(id)
      }
      return removeAll(records, ids)
    },
    /** @returns how many there were */
    clear: () => records.clear(),
  }
}

type Counter = ReturnType<typeof createCounter>

/** Says which alerts are read, and counts those that are not. */
function createCounter({ records, watermarks }: AlertDeps, index: NewestFirst<Alert>) {
  const unread = new Set<string>()
  let readUpTo = 0
  const isRead = ({ read, seq }: Alert): boolean => read || seq <= readUpTo
  const count = (): void => {
    readUpTo = watermarks.get(WATERMARK_ID)?.seq ?? 0
    unread.clear()
    for (const alert of index.values()) if (!isRead(alert)) unread.add(alert.id)
  }
  count()
  watermarks.onChange(count)
  records.onChange(({ id, value }) => {
    if (value === null || isRead(value)) unread.delete(id)
    else unread.add(id)
  })
  return {
    isRead,
    view: (alert: Alert): Alert =>
      alert.read === isRead(alert) ? alert : { ...alert, read: true },
    open: (): number => unread.size,
  }
}

/** Removes the oldest hundredth, read ones first, whenever there are `maxAlerts`. */
function createEviction(
  records: Records<Alert>,
  index: NewestFirst<Alert>,
  maxAlerts: number,
): () => Promise<unknown> {
  let running: Promise<unknown> | null = null
  const evict = async (): Promise<void> => {
    const count = records.size - maxAlerts + Math.ceil(maxAlerts / 100)
    const read = index.oldest(count, (alert) => alert.read)
    const others = index.oldest(count - read.length, (alert) => !alert.read)
    await removeAll(
      records,
      [...read, ...others].map(({ id }) => id),
    )
  }
  return async () => {
    running ??= evict().finally(() => {
      running = null
    })
    await running
  }
}

async function removeAll(records: Records<Alert>, ids: readonly string[]): Promise<number> {
  let removed = 0
  for (let from = 0; from < ids.length; from += REMOVALS_AT_ONCE) {
    const some = ids.slice(from, from + REMOVALS_AT_ONCE)
    const existed = await Promise.all(some.map((id) => records.remove(id)))
    removed += existed.filter(Boolean).length
  }
  return removed
}

function soleSource(
  [first, ...others]: readonly string[],
  hasSource: (name: string) => boolean,
): string | null {
  return first !== undefined && others.length === 0 && hasSource(first) ? first : null
}

const missing = (id: string): AppError =>
  new AppError('not_found', 'there is no such alert', { details: { alert_id: id } })
