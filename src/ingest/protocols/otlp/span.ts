import type { JsonRecord } from '../../formats/json-value.js'
import { filled, idOf } from './log-record.js'
import type { Common } from './origin.js'
import { attributesOf } from './request.js'

const KINDS = ['', 'internal', 'server', 'client', 'producer', 'consumer'] as const
const ERROR = 2

/**
 * Maps a span to a record of `/ingest` of the type `trace`. Spans are deduplicated by their ids,
 * because two of one name in a trace may have the same duration.
 */
export function toSpan(item: JsonRecord, { fields, tags: common }: Common): JsonRecord {
  const { name, startTimeUnixNano: startMs } = item
  const status = (item['status'] ?? {}) as JsonRecord // of the form of a status
  const [traceId, spanId] = [idOf(item['traceId']), idOf(item['spanId'])]
  const own = tagsOf(item, status)
  return {
    ...fields,
    type: 'trace',
    timestamp: typeof startMs === 'number' && startMs > 0 ? Math.floor(startMs) : undefined,
    severity: Number(status['code'] ?? 0) === ERROR ? 'ERROR' : 'INFO',
    message: typeof name === 'string' && name !== '' ? name : 'span without a name',
    trace_id: traceId,
    span_id: spanId,
    dedup_key: spanId === '' ? undefined : `${traceId}${spanId}`.slice(0, 256),
    // The span's own members come last, because an attribute of the same name would break the tree of the trace.
    tags: { ...own, ...attributesOf(item), ...common, ...own },
  }
}

function tagsOf(item: JsonRecord, status: JsonRecord): JsonRecord {
  const { startTimeUnixNano: startMs, endTimeUnixNano: endMs } = item
  return filled({
    duration_ms: durationOf(startMs, endMs),
    kind: KINDS[Number(item['kind'] ?? 0)],
    parent_span_id: idOf(item['parentSpanId']),
    status_message: status['message'],
    events: eventsOf(item['events'], startMs),
    links: linksOf(item['links']),
  })
}

/** A double holds a time since 1970 only to the microsecond. */
const durationOf = (startMs: unknown, endMs: unknown): number | undefined =>
  typeof startMs === 'number' && typeof endMs === 'number' && startMs > 0 && endMs >= startMs
    ? Math.round((endMs - startMs) * 1000) / 1000
    : undefined

const listOf = (value: unknown): readonly JsonRecord[] =>
  Array.isArray(value) ? (value as JsonRecord[]) : [] // of the form of the message

function eventsOf(value: unknown, startMs: unknown): readonly JsonRecord[] | undefined {
  const events = listOf(value).map(({ name, timeUnixNano, attributes }) =>
    filled({ name, offset_ms: durationOf(startMs, timeUnixNano), attributes }),
  )
  return events.length === 0 ? undefined : events
}

function linksOf(value: unknown): readonly JsonRecord[] | undefined {
  const links = listOf(value).map(({ traceId, spanId, attributes }) =>
    filled({ trace_id: traceId, span_id: spanId, attributes }),
  )
  return links.length === 0 ? undefined : links
}
