import type { Changes } from '../coordination/changes.js'
import type { Instance } from '../coordination/instance.js'
import type { Events } from '../events/events.js'
import { AppError } from '../model/errors.js'
import { SEVERITIES, type EventRecord, type Priority } from '../model/event.js'
import type { Retention } from '../retention/retention.js'
import type { TemplateRegistry } from '../templates/registry.js'
import type { Command } from '../wal/record.js'
import { encodeCorrection, type CorrectionRows } from './correction-rows.js'
import type { Priorities } from './store.js'

/** Reasons are truncated to this many characters. */
const REASON_CHARACTERS = 200
/** Lease of the lock of an event. */
const LOCK_MS = 30_000

interface CorrectionDeps extends Pick<Instance, 'withLock'> {
  readonly changes: Changes
  readonly events: Events
  readonly templates: TemplateRegistry
  readonly priorities: Priorities
  readonly retention: Retention
  readonly pipeline: {
    /** Resolves when everything acknowledged so far is stored. */
    settle(): Promise<void>
    /** Puts a command and rows into the write-ahead log; resolves when both took effect. */
    execute(command: Command, rows: CorrectionRows | null): Promise<unknown>
  }
  /** Resolves when no client can read outdated counts. */
  readonly onChanged: () => Promise<void>
}

export type Corrections = ReturnType<typeof createCorrections>

/**
 * Corrects the priority of an event, one correction of an event at a time, so that two people's corrections both move
 * exactly what is counted:
 *
 * 1. Lock the event and read it.
 * 2. Store the priority for the event's template. It applies to later events of the template, and the model learns from it.
 * 3. Count later repeats of the event under the new priority, on all instances.
 * 4. Wait until everything sequenced under the old priority is stored, and read what is counted.
 * 5. Write the rows that move these counts to the new priority, together with the command that changes the event,
 *    through the write-ahead log.
 * 6. Announce that counts have changed. The route that asked writes the audit record.
 */
export function createCorrections({
  withLock,
  changes,
  events,
  templates,
  priorities,
  retention,
  pipeline,
  onChanged,
}: CorrectionDeps) {
  const find = async (id: number): Promise<EventRecord> => {
    const event = await events.get(id)
    if (event !== null) return event
    throw new AppError('not_found', 'there is no such event', { details: { event_id: id } })
  }

  const correctLocked = async (
    id: number,
    priority: Priority,
    reason: string,
  ): Promise<EventRecord> => {
    const event = await find(id)
    const templateId = templates.byId(event.templateId)?.id ?? event.templateId
    const { source, severity, timestampMs: tsMs } = event
    await priorities.correct({ templateId, source, severity, priority })
    await changes.carryOut({ kind: 'correct-event', event: id, priority })
    await pipeline.settle()
    const keptDays = retention.policy.classesOf(source)?.[SEVERITIES.indexOf(severity)] ?? 0
    const counted = await events.counted(id)
    const rows = encodeCorrection({ ...event, keptDays, counted }, priority)
    const correction = { id, tsMs, priority, reason: shorten(reason) }
    await pipeline.execute({ kind: 'correct-event', correction }, rows)
    await onChanged()
    return await find(id)
  }

  return {
    /** @throws AppError not_found, dependency_unavailable */
    correct: (id: number, priority: Priority, reason: string): Promise<EventRecord> =>
      withLock(`correct:${id}`, LOCK_MS, () => correctLocked(id, priority, reason)),
  }
}

/** Truncates by code point, so that no character is split. */
export const shorten = (reason: string): string =>
  Array.from(reason).slice(0, REASON_CHARACTERS).join('')
