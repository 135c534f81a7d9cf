import { AppError } from '../model/errors.js'
import type { EventRecord, EventType, Priority, Severity } from '../model/event.js'

/** correction reasons are kept up to this many characters */
const REASON_CHARACTERS = 200

interface Counted {
  readonly tsMs: number
  readonly priority: Priority
  readonly n: number
}

interface LandingRows {
  readonly bytes: Uint8Array
  readonly rows: number
}

export interface CorrectionParts {
  readonly events: {
    get(id: number): Promise<EventRecord | null>
    counted(id: number): Promise<readonly Counted[]>
  }
  readonly withLock: <T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>
  readonly canonicalTemplate: (id: string) => string
  /** Makes the template's priority durable and known to the sequencer. */
  readonly setTemplatePriority: (correction: {
    readonly templateId: string
    readonly source: string
    readonly severity: Severity
    readonly priority: Priority
  }) => Promise<void>
  /** Repeats of the event count under this priority from here on; resolves when they do on all instances. */
  readonly correctRepeats: (id: number, priority: Priority) => Promise<void>
  /** Resolves when everything acknowledged so far is stored. */
  readonly settle: () => Promise<void>
  readonly encode: (
    event: {
      readonly id: number
      readonly receivedAtMs: number
      readonly source: string
      readonly type: EventType
      readonly severity: Severity
      readonly templateId: string
      readonly counted: readonly Counted[]
    },
    priority: Priority,
  ) => LandingRows | null
  readonly execute: (
    statement: {
      readonly kind: 'correct-event'
      readonly correction: {
        readonly id: number
        readonly tsMs: number
        readonly priority: Priority
        readonly reason: string
      }
    },
    rows: LandingRows | null,
  ) => Promise<unknown>
  /** Resolves when nobody is shown counts from before. */
  readonly onCorrected: () => Promise<void>
}

export interface Corrections {
  /**
   * Gives an event a person's priority. One at a time per event, so that two people's corrections both
   * move exactly what is counted.
   *
   * @throws AppError not_found, dependency_unavailable
   */
  correct(id: number, priority: Priority, reason: string): Promise<EventRecord>
}

export function createCorrections(parts: CorrectionParts): Corrections {
  const find = async (id: number): Promise<EventRecord> => {
    const event = await parts.events.get(id)
    if (event !== null) return event
    throw new AppError('not_found', 'there is no such event', { details: { event_id: id } })
  }

  const correctAlone = async (
    id: number,
    priority: Priority,
    reason: string,
  ): Promise<EventRecord> => {
    const event = await find(id)
    const templateId = parts.canonicalTemplate(event.templateId)
    const { source, severity } = event
    await parts.setTemplatePriority({ templateId, source, severity, priority })
    await parts.correctRepeats(id, priority)
    // what was sequenced under the old priority must be counted before it is moved
    await parts.settle()
    const rows = parts.encode({ ...event, counted: await parts.events.counted(id) }, priority)
    const correction = { id, tsMs: event.timestampMs, priority, reason: cut(reason) }
    await parts.execute({ kind: 'correct-event', correction }, rows)
    await parts.onCorrected()
    return await find(id)
  }

  return {
    correct: (id, priority, reason) =>
      parts.withLock(`correct:${id}`, 30_000, () => correctAlone(id, priority, reason)),
  }
}

/** By code point, so that no character is cut in half. */
const cut = (reason: string): string => Array.from(reason).slice(0, REASON_CHARACTERS).join('')
