import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import type { Priority } from '../model/event.js'
import type { Page } from './keyset.js'
import { NewestFirst, type PageQuery } from './newest-first.js'
import { removeRecords, type Records } from './records.js'
import { PrioritySchema } from '../model/schemas.js'

/** An alert as it is stored. */
export const AlertDoc = Type.Object({
  id: Type.String(),
  seq: Type.Integer(),
  createdAtMs: Type.Integer(),
  title: Type.String(),
  severity: PrioritySchema,
  /** read on its own; one at or below the mark of read-all is read as well */
  read: Type.Boolean(),
  eventIds: Type.Array(Type.Integer()),
  relatedSource: Type.Union([Type.String(), Type.Null()]),
})
export type Alert = Readonly<Static<typeof AlertDoc>>

/** Up to where read-all has read; one record with the id `MARK_ID`. */
export const AlertMarkDoc = Type.Object({ seq: Type.Integer() })
export type AlertMark = Readonly<Static<typeof AlertMarkDoc>>

export interface NewAlert {
  /** for those that may be raised again: the second time is as if it were not */
  readonly id?: string
  readonly title: string
  readonly severity: Priority
  readonly eventIds: readonly number[]
  /** null = the common source of the events, if they have one */
  readonly relatedSource: string | null
}

interface AlertFilter {
  /** null = both */
  readonly read: boolean | null
  /** empty = any */
  readonly severities: readonly string[]
}

export interface AlertParts {
  readonly records: Records<Alert>
  readonly marks: Pick<Records<AlertMark>, 'get' | 'update' | 'onChange'>
  /** distinct sources of the events of these ids that exist */
  readonly sourcesOfEvents: (ids: readonly number[]) => Promise<readonly string[]>
  /** whether a source is registered; false from the moment its deletion begins */
  readonly hasSource: (name: string) => boolean
  readonly nowMs?: () => number
  /** when there are so many, the oldest hundredth goes, read ones first */
  readonly maxAlerts?: number
}

/** Alerts in memory, written through. Every change may reject with dependency_unavailable. */
export interface Alerts {
  page(query: PageQuery, filter: AlertFilter): Page<Alert>
  create(alert: NewAlert): Promise<Alert>
  /** @throws AppError not_found */
  read(id: string): Promise<Alert>
  /** @returns how many were unread */
  readAll(): Promise<number>
  /** For the deletion of sources. @returns how many went */
  removeForSources(names: readonly string[]): Promise<number>
  /** unread ones */
  openCount(): number
  /** the newest */
  recent(count: number): readonly Alert[]
  clear(): Promise<number>
}

const MARK_ID = 'read'
const MAX_ALERTS = 200_000

export function createAlerts(parts: AlertParts): Alerts {
  const index = new NewestFirst(parts.records)
  const counter = createCounter(parts, index)
  return { ...createReads(index, counter), ...createChanges(parts, index, counter) }
}

type Reads = Pick<Alerts, 'page' | 'openCount' | 'recent'>

const createReads = (index: NewestFirst<Alert>, counter: Counter): Reads => ({
  page(query, { read, severities }) {
    const page = index.page(
      query,
      (alert) =>
        (read === null || counter.isRead(alert) === read) &&
        (severities.length === 0 || severities.includes(alert.severity)),
    )
    return { ...page, items: page.items.map(counter.view) }
  },
  openCount: () => counter.open(),
  recent(count) {
    const newest: Alert[] = []
    for (const alert of index.values()) {
      if (newest.length >= count) break
      newest.push(counter.view(alert))
    }
    return newest
  },
})

function createChanges(
  parts: AlertParts,
  index: NewestFirst<Alert>,
  counter: Counter,
): Omit<Alerts, keyof Reads> {
  const { records, marks, nowMs = Date.now, maxAlerts = MAX_ALERTS } = parts
  /** alerts being written: not among the records yet, but before whatever is asked for next */
  const pending = new Set<Promise<unknown>>()
  const makeRoom = createEviction(records, index, maxAlerts)
  return {
    async create({ id = randomUUID(), title, severity, eventIds, relatedSource: given }) {
      if (records.size >= maxAlerts) await makeRoom()
      const asks = given === null && eventIds.length > 0
      const sources = asks ? await parts.sourcesOfEvents(eventIds) : []
      // nothing is awaited from here on to the write: a deletion sees either the alert or no source
      const relatedSource = given ?? soleSource(sources, parts.hasSource)
      const createdAtMs = nowMs()
      const seq = index.nextSeq(createdAtMs, marks.get(MARK_ID)?.seq)
      const facts = { id, seq, createdAtMs, title, severity, relatedSource }
      const alert: Alert = { ...facts, eventIds: [...eventIds], read: false }
      const write = records.update(id, (current) => current ?? alert)
      pending.add(write)
      return (await write.finally(() => pending.delete(write))) ?? alert
    },
    async read(id) {
      const alert = await records.update(id, (current) =>
        current === null || counter.isRead(current) ? current : { ...current, read: true },
      )
      if (alert === null) throw missing(id)
      return counter.view(alert)
    },
    async readAll() {
      await Promise.allSettled(pending)
      const updated = counter.open()
      const newest = index.values().next().value
      if (updated === 0 || newest === undefined) return 0
      const { seq } = newest
      await marks.update(MARK_ID, (mark) => (mark !== null && mark.seq >= seq ? mark : { seq }))
      return updated
    },
    async removeForSources(names) {
      await Promise.allSettled(pending)
      const gone = new Set(names)
      const ids: string[] = []
      for (const { id, relatedSource } of index.values()) {
        if (relatedSource !== null && gone.has(relatedSource)) ids.push(id)
      }
      return removeRecords(records, ids)
    },
    clear: () => records.clear(),
  }
}

type Counter = ReturnType<typeof createCounter>

/** Who is read, and how many are not. */
function createCounter({ records, marks }: AlertParts, index: NewestFirst<Alert>) {
  const unread = new Set<string>()
  let markSeq = 0
  const isRead = ({ read, seq }: Alert): boolean => read || seq <= markSeq
  const count = (): void => {
    markSeq = marks.get(MARK_ID)?.seq ?? 0
    unread.clear()
    for (const alert of index.values()) if (!isRead(alert)) unread.add(alert.id)
  }
  count()
  marks.onChange(count)
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
    await removeRecords(
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

function soleSource(
  [first, ...others]: readonly string[],
  hasSource: (name: string) => boolean,
): string | null {
  return first !== undefined && others.length === 0 && hasSource(first) ? first : null
}

const missing = (id: string): AppError =>
  new AppError('not_found', 'there is no such alert', { details: { alert_id: id } })
