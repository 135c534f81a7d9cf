import { createHash } from 'node:crypto'
import type { Static } from '@sinclair/typebox'

import type { EventRecord, ListedEvent } from '../model/event.js'
import type { EventContext } from './event-context.js'
import type { EventDetail, EventItem } from './schemas/event.js'

export function toEventItem(
  event: ListedEvent,
  context: Pick<EventContext, 'canonicalTemplate'>,
): Static<typeof EventItem> {
  return {
    id: event.id,
    timestamp: new Date(event.timestampMs).toISOString(),
    source: event.source,
    type: event.type,
    severity: event.severity,
    priority: event.priority,
    message: event.message,
    template_id: context.canonicalTemplate(event.templateId),
    host: event.host,
    tags: event.tags,
    occurrence_count: event.occurrenceCount,
    trace_id: event.traceId,
    environment: event.environment,
    last_seen: new Date(event.lastSeenMs).toISOString(),
  }
}

/** A message that was truncated is returned with one more character than the limit, which marks it as truncated. */
export function shortened<T extends { readonly message: string }>(
  item: T,
  cut: number | undefined,
): T {
  if (cut === undefined || item.message.length <= cut) return item
  // A character has at most two UTF-16 units, so the rest of a long message is not read.
  const characters = Array.from(item.message.slice(0, 2 * cut + 1))
  if (characters.length <= cut) return item
  return { ...item, message: `${characters.slice(0, cut).join('')}…` }
}

export function toEventDetail(
  event: EventRecord,
  context: Pick<EventContext, 'canonicalTemplate' | 'applicationOf'>,
): Static<typeof EventDetail> {
  return {
    ...toEventItem(event, context),
    span_id: event.spanId,
    summary: event.summary,
    priority_confidence: Math.round(event.confidence * 10_000) / 10_000,
    priority_source: event.prioritySource,
    model_version: event.modelVersion,
    dedup_key: dedupKeyOf(event),
    application: context.applicationOf(event.source),
  }
}

/**
 * The deduplication key: SHA-256 of the fields that identify an event; a producer's own key of the
 * same form is returned unchanged.
 */
function dedupKeyOf(event: EventRecord): string {
  if (/^sha256:[0-9a-f]{64}$/.test(event.dedupKey)) return event.dedupKey
  const { correction_reason: _, ...tags } = event.tags
  const identity =
    event.dedupKey !== ''
      ? [event.source, event.dedupKey]
      : [
          event.source,
          event.type,
          event.severity,
          event.host,
          event.environment,
          event.traceId,
          event.message,
          tags,
        ]
  return `sha256:${createHash('sha256').update(JSON.stringify(identity)).digest('hex')}`
}
