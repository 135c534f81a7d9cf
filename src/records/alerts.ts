import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import type { Priority } from '../model/event.js'
import { NewestFirst, type Records } from './newest-first.js'
import type { PageQuery } from './page.js'
import { PrioritySchema } from '../model/schemas.js'

const AlertOfRule = Type.Object({
  ruleId: Type.String(),
  /** The values of the fields that the rule groups by, by their names. */
  group: Type.Record(Type.String(), Type.String()),
  state: Type.Union([Type.Literal('firing'), Type.Literal('resolved')]),
  /** The value with which the group began to fire, or resolved. */
  value: Type.Union([Type.Number(), Type.Null()]),
  startedAtMs: Type.Integer(),
  resolvedAtMs: Type.Union([Type.Integer(), Type.Null()]),
})

/** An alert as it is stored. */
export const AlertDoc = Type.Object({
  id: Type.String(),
  seq: Type.Integer(),
  createdAtMs: Type.Integer(),
  title: Type.String(),
  severity: PrioritySchema,
  /** Whether the alert was read individually; read-all marks every alert up to its watermark. */
  read: Type.Boolean(),
  eventIds: Type.Array(Type.Integer()),
  relatedSource: Type.Union([Type.String(), Type.Null()]),
  /** The rule that raised it, and the state of its group. */
  rule: Type.Optional(AlertOfRule),
  acknowledgedBy: Type.Optional(Type.String()),
  acknowledgedAtMs: Type.Optional(Type.Integer()),
})
export type Alert = Readonly<Static<typeof AlertDoc>>

/** The watermark up to which read-all has read; one record with the id `WATERMARK_ID`. */
export const AlertWatermarkDoc = Type.Object({ seq: Type.Integer() })
export type AlertWatermark = Readonly<Static<typeof AlertWatermarkDoc>>

export interface NewAlert {
  /** Set for an alert that may be raised again, which then has no effect. */
  readonly id?: string
  readonly title: string
  readonly severity: Priority
  readonly eventIds: readonly number[]
  /** Null for the common source of the events, if they have one. */
  readonly relatedSource: string | null
  readonly rule?: NonNullable<Alert['rule']>
}

interface AlertFilter {
  /** Null for read and unread alerts. */
  readonly read: boolean | null
  /** Empty for any. */
  readonly severities: readonly string[]
  /** Default: alerts of any rule or none. */
  readonly ruleId?: string | null
  /** Default: any; an alert that no rule raised has none. */
  readonly state?: string | null
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
/** The most removals in flight; the entity writer inserts them together. */
const REMOVALS_AT_ONCE = 500

/** The alerts, held in memory and written through. Every change may reject with `dependency_unavailable`. */
export function createAlerts(deps: AlertDeps) {
  const index = new NewestFirst(deps.records)
  const counter = createCounter(deps, index)
  const firing = watchFiring(deps.records)
  return {
    isAcknowledged: (id: string) => deps.records.get(id)?.acknowledgedBy !== undefined,
    ...createReads(index, counter, firing),
    ...createChanges(deps, index, counter),
  }
}

/** The ids of the alerts that fire, by the rule that raised them. */
function watchFiring(records: Records<Alert>): ReadonlyMap<string, ReadonlySet<string>> {
  const firing = new Map<string, Set<string>>()
  const ruleOf = new Map<string, string>()
  const note = (id: string, alert: Alert | null): void => {
    const { ruleId, state } = alert?.rule ?? {}
    if (ruleId !== undefined && state === 'firing') {
      ruleOf.set(id, ruleId)
      firing.set(ruleId, (firing.get(ruleId) ?? new Set()).add(id))
      return
    }
    const known = ruleOf.get(id)
    if (known === undefined) return
    ruleOf.delete(id)
    const ids = firing.get(known)
    ids?.delete(id)
    if (ids?.size === 0) firing.delete(known)
  }
  for (const alert of records.list()) note(alert.id, alert)
  records.onChange(({ id, value }) => note(id, value))
  return firing
}

const createReads = (
  index: NewestFirst<Alert>,
  counter: Counter,
  firing: ReadonlyMap<string, ReadonlySet<string>>,
) => ({
  page(query: PageQuery, { read, severities, ruleId = null, state = null }: AlertFilter) {
    const page = index.page(
      query,
      (alert) =>
        (read === null || counter.isRead(alert) === read) &&
        (severities.length === 0 || severities.includes(alert.severity)) &&
        (ruleId === null || alert.rule?.ruleId === ruleId) &&
        (state === null || alert.rule?.state === state),
    )
    return { ...page, items: page.items.map(counter.view) }
  },
  openCount: () => counter.open(),
  firingOf: (ruleId: string): readonly string[] => [...(firing.get(ruleId) ?? [])],
  firingCount: (ruleId: string) => firing.get(ruleId)?.size ?? 0,
  /** The alerts that rules raised since then, or that fire still; the newest first. */
  sinceOrFiring(sinceMs: number): readonly Alert[] {
    const found: Alert[] = []
    for (const alert of index.values()) {
      const isFiring = alert.rule?.state === 'firing'
      if (alert.rule !== undefined && (isFiring || alert.createdAtMs > sinceMs))
        found.push(counter.view(alert))
    }
    return found
  },
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
  /** Alerts in the process of being written are not among the records yet, but precede the next request. */
  const pending = new Set<Promise<unknown>>()
  const makeRoom = createEviction(records, index, maxAlerts)
  return {
    async create({
      id = randomUUID(),
      title,
      severity,
      eventIds,
      relatedSource: given,
      rule,
    }: NewAlert): Promise<Alert> {
      if (records.size >= maxAlerts) await makeRoom()
      const asks = given === null && eventIds.length > 0
      const sources = asks ? await deps.sourcesOfEvents(eventIds) : []
      // Nothing is awaited between this check and the write, so that a deletion of the source finds the alert.
      const relatedSource = given ?? soleSource(sources, deps.hasSource)
      const createdAtMs = nowMs()
      const seq = index.nextSeq(createdAtMs, watermarks.get(WATERMARK_ID)?.seq)
      const facts = { id, seq, createdAtMs, title, severity, relatedSource }
      const ofRule = rule === undefined ? {} : { rule }
      const alert: Alert = { ...facts, eventIds: [...eventIds], read: false, ...ofRule }
      const write = records.update(id, (current) => current ?? alert)
      pending.add(write)
      return (await write.finally(() => pending.delete(write))) ?? alert
    },
    ...createProgress(deps, counter),
    /** @throws AppError not_found */
    async read(id: string): Promise<Alert> {
      const alert = await records.update(id, (current) =>
        current === null || counter.isRead(current) ? current : { ...current, read: true },
      )
      if (alert === null) throw missing(id)
      return counter.view(alert)
    },
    /** @returns the number of alerts that were unread */
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
    /** Deletes the alerts of deleted sources. @returns their number */
    async removeForSources(names: readonly string[]): Promise<number> {
      await Promise.allSettled(pending)
      const gone = new Set(names)
      const ids: string[] = []
      for (const { id, relatedSource } of index.values()) {
        if (relatedSource !== null && gone.has(relatedSource)) ids.push(id)
      }
      return removeAll(records, ids)
    },
    /** @returns the number of deleted alerts */
    clear: () => records.clear(),
  }
}

const createProgress = ({ records, nowMs = Date.now }: AlertDeps, counter: Counter) => ({
  /** Acknowledges an alert; only the first acknowledgement counts. @throws AppError not_found */
  async acknowledge(id: string, userId: string): Promise<Alert> {
    const alert = await records.update(id, (current) =>
      current === null || current.acknowledgedBy !== undefined
        ? current
        : { ...current, acknowledgedBy: userId, acknowledgedAtMs: nowMs(), read: true },
    )
    if (alert === null) throw missing(id)
    return counter.view(alert)
  },
  /** Marks an alert as resolved, because the group of its rule has resolved. A deleted alert is ignored. */
  async resolve(id: string, resolvedAtMs: number, value: number | null): Promise<void> {
    await records.update(id, (current) =>
      current?.rule === undefined || current.rule.state === 'resolved'
        ? current
        : { ...current, rule: { ...current.rule, state: 'resolved', resolvedAtMs, value } },
    )
  },
})

type Counter = ReturnType<typeof createCounter>

/** Tracks which alerts are read, and counts those that are not. */
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
