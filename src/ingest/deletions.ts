import type { ChangeEffects, Changes, Deletion } from '../coordination/changes.js'
import type { Instance } from '../coordination/instance.js'
import type { WithLock } from '../coordination/lock.js'
import type { Events } from '../events/events.js'
import type { Ledger } from '../events/ledger.js'
import type { EventQuestion } from '../events/occurrences.js'
import type { TemplateStats } from '../events/template-stats.js'
import type { Insights } from '../insights/insights.js'
import { counted } from '../lib/counted.js'
import { AppError } from '../model/errors.js'
import { PRIORITIES } from '../model/event.js'
import type { Priorities } from '../priority/store.js'
import type { Applications } from '../records/applications.js'
import { clearRecords, type WorkRecords } from '../records/records.js'
import type { Sources } from '../records/sources.js'
import type { TemplateRegistry } from '../templates/registry.js'
import type { Retention } from '../retention/retention.js'
import type { BatchStore } from '../writer/batch-store.js'
import type { Pipeline } from './pipeline.js'
import type { Sequencer } from './sequencer.js'
import { forgetStored } from './once.js'

/*
 * Deleting sources, or everything:
 *
 * 1. The request takes the lock of deletions, and has the webhooks forget what the sources delivered.
 * 2. `begin`: from here on messages of these names belong to unregistered sources, and no message repeats an earlier
 *    event.
 * 3. Synchronously with step 2 the command is appended to the WAL, between the rows before it and those after it.
 * 4. When the writer reaches the command, `execute` deletes rows, insights, alerts and corrected priorities, and
 *    last the records of the sources. The command is idempotent, because it is repeated after a crash.
 * 5. `end`: a source that was registered under the same name meanwhile is active again.
 *
 * With several instances the change log has each of them do step 2 and one of them step 4 (`shared-changes.ts`).
 */

interface Affected {
  readonly batches: BatchStore
  readonly sources: Sources
  readonly sequencer: Sequencer
  readonly templates: TemplateRegistry
  readonly templateStats: TemplateStats
  readonly priorities: Priorities
  readonly insights: Insights
  readonly records: WorkRecords
  readonly applications: Applications
  readonly ledger: Ledger
}

export interface DeletedSources {
  readonly events: number
  readonly alerts: number
}

export interface ClearedAll {
  readonly events: number
  readonly templates: number
  readonly alerts: number
  readonly incidents: number
  readonly tasks: number
  readonly sources: number
  readonly applications: number
  readonly dead_letters: number
}

/** The reply to a deletion by query. */
export interface DeletedEvents {
  readonly deleted: number
  /** The matches that are left, because the time of one request was over. */
  readonly remaining: number
}

/** The effects of changes. `onCleared` calls its listener on each instance when everything was deleted. */
export interface Effects extends ChangeEffects {
  onCleared(listener: () => void): void
}

export function createEffects(affected: Affected): Effects {
  const { batches, sources, sequencer, templates, templateStats, priorities, insights } = affected
  const { records } = affected
  const clearedListeners: (() => void)[] = []
  const deleteSources = async (names: readonly string[]): Promise<DeletedSources> => {
    const events = await batches.deleteSources(names)
    await insights.forget(names)
    const alerts = await records.alerts.removeForSources(names)
    await records.templateNotes.removeForSources(names)
    await priorities.remove(isAmong(names))
    await sources.remove(names)
    return { events, alerts }
  }

  const clearAll = async (): Promise<ClearedAll> => {
    const known = await templateStats.known()
    const { events, deadLetters } = await batches.clear()
    await insights.forgetAll()
    const counts = await clearRecords(records, affected.applications)
    await priorities.remove(() => true)
    const gone = await sources.removeAll()
    return { events, templates: known, dead_letters: deadLetters, sources: gone, ...counts }
  }

  const forget = (names: readonly string[] | null): void => {
    if (names === null) {
      sources.forgetAll()
      sequencer.forgetAll()
    } else {
      sources.forget(names)
      sequencer.forget(names)
    }
    const isDeleted = isAmong(names)
    templates.forget(({ source }) => isDeleted(source))
    priorities.forget(isDeleted)
  }

  return {
    begin: (change) => {
      switch (change.kind) {
        case 'delete-sources':
        case 'clear-all':
          return forget(namesOf(change))
        case 'forget-repeats':
          return sequencer.forgetAll()
        case 'correct-event':
          return sequencer.correct(change.event, PRIORITIES.indexOf(change.priority))
      }
    },
    execute: (deletion) =>
      affected.ledger.deleting<DeletedSources | ClearedAll>(() =>
        deletion.kind === 'delete-sources' ? deleteSources(deletion.sources) : clearAll(),
      ),
    end: (deletion) => {
      const names = namesOf(deletion)
      if (names === null) for (const listener of clearedListeners) listener()
      sources.release(names ?? undefined)
      priorities.recall(isAmong(names))
    },
    onCleared: (listener) => void clearedListeners.push(listener),
  }
}

/** @param names null for all sources */
const isAmong = (names: readonly string[] | null): ((source: string) => boolean) => {
  const gone = names === null ? null : new Set(names)
  return (source) => gone?.has(source) ?? true
}

/** @returns null for all sources */
const namesOf = (deletion: Deletion): readonly string[] | null =>
  deletion.kind === 'delete-sources' ? deletion.sources : null

interface DeletionDeps extends Pick<Instance, 'withLock' | 'state'> {
  readonly changes: Changes
  readonly pipeline: Pipeline
  readonly events: Events
  readonly batches: BatchStore
  readonly retention: Retention
  /** Resolves when no client can read the deleted data. */
  readonly onChanged: () => Promise<void>
}

export type Deletions = ReturnType<typeof createDeletions>

/** The most events that one command deletes: their ids and rows are in one record of the WAL. */
const EVENTS_AT_ONCE = 10_000
/** The most events of one deletion. */
const MOST_EVENTS = 1_000_000
/** The time for one deletion; a request has 30 s in all. */
const DELETE_MS = 18_000

/** The lease of the lock, which is renewed. When an instance dies, the others can delete nothing for this long. */
const LOCK_MS = 15_000

export function createDeletions(deps: DeletionDeps) {
  const { state, changes, pipeline, events, onChanged } = deps
  const withLock = lockUnlessAway(deps)
  const deleteSome = async (ids: readonly number[]): Promise<void> => {
    for (const rows of await events.removal.rows(ids)) {
      const stats = Buffer.from(rows.stats).toString('base64')
      const token = deps.batches.newToken()
      const command = { kind: 'delete-events', ids: rows.ids, stats, token } as const
      await pipeline.execute(command, { bytes: rows.landing, rows: rows.landingRows })
    }
  }
  const carryOut = async (deletion: Deletion): Promise<unknown> => {
    await forgetStored(state, namesOf(deletion))
    return await changes.carryOut(deletion)
  }
  return {
    /** @throws AppError dependency_unavailable: the deletion is recorded and takes effect later */
    deleteSources: (sources: readonly string[]): Promise<DeletedSources> =>
      withLock('delete', LOCK_MS, async () => {
        if (sources.length === 0) return { events: 0, alerts: 0 }
        const result = await carryOut({ kind: 'delete-sources', sources })
        await onChanged()
        return result as DeletedSources // the result of `execute` for this kind
      }),
    /**
     * Deletes the events of a query if their number is as expected.
     *
     * 1. On all instances, later messages no longer repeat earlier events, and repeats so far are stored.
     * 2. The events are counted.
     * 3. In batches, their ids and the rows that subtract them from the rollups are read, and put into the WAL together
     *    with the command that deletes them. Each event is therefore subtracted and deleted, or neither, whatever crashes.
     *
     * @throws AppError count_mismatch, dependency_unavailable
     */
    deleteEvents: (question: EventQuestion, expected: number): Promise<DeletedEvents> =>
      withLock('delete', LOCK_MS, async () => {
        const startedMs = performance.now()
        await changes.carryOut({ kind: 'forget-repeats' })
        await pipeline.settle()
        const range = events.rangeOf(question, Date.now())
        const all = await events.removal.ids(range, MOST_EVENTS + 1)
        if (all.length !== expected) throw mismatch(expected, all.length)
        let deleted = 0
        let [nowMs, longestMs] = [performance.now(), 0]
        // No batch is begun that could end too late, by the duration of the slowest so far.
        while (deleted < all.length && nowMs - startedMs + longestMs < DELETE_MS) {
          const ids = all.slice(deleted, deleted + EVENTS_AT_ONCE)
          await deleteSome(ids)
          deleted += ids.length
          longestMs = Math.max(longestMs, performance.now() - nowMs)
          nowMs = performance.now()
        }
        await onChanged()
        return { deleted, remaining: all.length - deleted }
      }),
    /** @throws AppError dependency_unavailable: the deletion is recorded and takes effect later */
    clearAll: (): Promise<ClearedAll> =>
      withLock('delete', LOCK_MS, async () => {
        const result = await carryOut({ kind: 'clear-all' })
        await onChanged()
        return result as ClearedAll // the result of `execute` for this kind
      }),
  }
}

/** A deletion that waited for cold storage would delay all rows behind it in the WAL. */
const lockUnlessAway =
  ({ withLock, retention }: DeletionDeps): WithLock =>
  async (key, ttlMs, work) => {
    // A deletion needs cold storage only when there are rows in it.
    const { cold } = retention
    const fault = cold.untilMs() === 0 ? null : cold.fault()
    if (fault === null) return await withLock(key, ttlMs, work)
    const details = { dependency: 'cold_storage' }
    throw new AppError('dependency_unavailable', fault, { details, retryAfterS: 60 })
  }

const mismatch = (expected: number, events: number): AppError =>
  new AppError(
    'count_mismatch',
    events > MOST_EVENTS
      ? `the query matches more than ${MOST_EVENTS} events: delete a shorter time span`
      : `the query matches ${counted(events, 'event')}, not ${expected}`,
    { details: { events, expected } },
  )
