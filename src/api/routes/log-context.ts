import { Type, type Static } from '@sinclair/typebox'

import { SAME_FIELDS, type SameField } from '../../events/context.js'
import type { EventPosition } from '../../events/range-rows.js'
import { MAX_LOGS, MAX_SPANS, type Span, type Trace } from '../../events/trace.js'
import { AppError } from '../../model/errors.js'
import type { EventRecord } from '../../model/event.js'
import { decodeCursor, encodeCursor } from '../../records/cursor.js'
import { mayRead, readRange, type ReadableSources } from '../event-question.js'
import { shortened, toEventDetail, toEventItem } from '../event-views.js'
import { route, type Caller } from '../route.js'
import { EventDetail, EventIdParams, EventItem, MessageCut, Timestamp } from '../schemas/event.js'
import { ListParameter, PageSchema, QueryTime } from '../schemas/page.js'
import { Count } from '../schemas/series.js'
import type { Services } from '../services.js'

const SIDES = ['before', 'after'] as const
type Side = (typeof SIDES)[number]

const ContextQuery = Type.Object({
  before: Type.Integer({ minimum: 0, maximum: 200, default: 20, description: 'events before it' }),
  after: Type.Integer({ minimum: 0, maximum: 200, default: 20, description: 'events after it' }),
  same: ListParameter(Type.Union(SAME_FIELDS.map((name) => Type.Literal(name))), {
    description: 'fields that the others share with the event',
    examples: [['source', 'host']],
  }),
  cursor: Type.Optional(
    Type.String({
      maxLength: 2_048,
      description: '`next_cursor` of a side, which goes on; the other side is then empty',
    }),
  ),
  message_cut: MessageCut,
})

const ContextReply = Type.Object(
  { event: EventDetail, before: PageSchema(EventItem), after: PageSchema(EventItem) },
  { title: 'EventContext' },
)

interface ContextPosition extends EventPosition {
  readonly side: Side
}

const isPosition = (value: unknown): value is ContextPosition =>
  typeof value === 'object' &&
  value !== null &&
  'tsMs' in value &&
  'id' in value &&
  'side' in value &&
  Number.isSafeInteger(value.tsMs) &&
  Number.isSafeInteger(value.id) &&
  SIDES.some((side) => side === value.side)

interface SideQuery {
  readonly event: EventRecord
  readonly same: readonly SameField[]
  readonly limit: number
  readonly position: ContextPosition | null
  readonly within: ReadableSources
  readonly cut: number | undefined
}

const EMPTY = { items: [], next_cursor: null, has_more: false }

async function readSide(
  side: Side,
  { event, same, limit, position, within, cut }: SideQuery,
  services: Services,
  signal: AbortSignal,
): Promise<Static<typeof ContextReply>['before']> {
  if (limit === 0 || (position !== null && position.side !== side)) return EMPTY
  const asked = { event, same, within, side, from: position, limit: limit + 1 }
  const { events, isCut } = await services.events.context(asked, signal)
  const items = events.slice(0, limit)
  const last = isCut || events.length > limit ? items.at(-1) : undefined
  const next = last && { tsMs: last.timestampMs, id: last.id, side }
  return {
    items: items.map((one) => shortened(toEventItem(one, services.eventContext), cut)),
    next_cursor:
      next === undefined ? null : encodeCursor(services.cursorKey, boundTo(event.id, same), next),
    has_more: next !== undefined,
  }
}

const boundTo = (eventId: number, same: readonly SameField[]) => ({
  list: 'context',
  event: eventId,
  same: [...same].toSorted(),
})

async function readContext(
  eventId: number,
  query: Static<typeof ContextQuery>,
  services: Services,
  { principal, signal }: { readonly principal: Caller; readonly signal: AbortSignal },
): Promise<Static<typeof ContextReply>> {
  const { cursor, same = [], message_cut: cut } = query
  const filters = boundTo(eventId, same)
  const position =
    cursor === undefined ? null : decodeCursor(services.cursorKey, filters, cursor, isPosition)
  const event = await services.events.get(eventId, signal)
  const within = principal.sources
  if (event === null || !mayRead(event, within))
    throw new AppError('not_found', 'there is no such event', { details: { event_id: eventId } })
  const [before, after] = await Promise.all(
    SIDES.map((side) =>
      readSide(side, { event, same, limit: query[side], position, within, cut }, services, signal),
    ),
  )
  return {
    event: shortened(toEventDetail(event, services.eventContext), cut),
    before: before ?? EMPTY,
    after: after ?? EMPTY,
  }
}

const SpanSchema = Type.Object(
  {
    span_id: Type.String(),
    parent_span_id: Type.Union([Type.String(), Type.Null()]),
    has_parent: Type.Boolean({ description: 'whether the parent is in the trace' }),
    depth: Type.Integer({ minimum: 0, description: '0 for a root' }),
    name: Type.String(),
    source: Type.String({ description: 'the service' }),
    host: Type.String(),
    kind: Type.Union([Type.String(), Type.Null()]),
    status: Type.Union([Type.Literal('ok'), Type.Literal('error')]),
    status_message: Type.Union([Type.String(), Type.Null()]),
    start: Timestamp,
    offset_ms: Type.Number({ minimum: 0, description: 'from the start of the trace' }),
    duration_ms: Type.Union([Type.Number({ minimum: 0 }), Type.Null()]),
    event_id: Type.Integer({ minimum: 1 }),
    tags: Type.Record(Type.String(), Type.Unknown()),
  },
  { title: 'Span' },
)

const TraceReply = Type.Object(
  {
    trace_id: Type.String(),
    start: Timestamp,
    end: Type.Unsafe<Static<typeof Timestamp>>({
      ...Timestamp,
      description: 'of the last span or log',
    }),
    duration_ms: Type.Number({ minimum: 0 }),
    sources: Type.Array(Type.String(), { description: 'of its spans and logs, by name' }),
    error_count: Type.Integer({ minimum: 0, description: 'spans that failed' }),
    span_count: Count,
    spans: Type.Array(SpanSchema, {
      description: `the tree: each span is followed by its children; the ${MAX_SPANS} oldest`,
    }),
    has_more_spans: Type.Boolean(),
    logs: Type.Array(EventItem, {
      description: `the other events, the oldest first, at most ${MAX_LOGS}`,
    }),
    has_more_logs: Type.Boolean(),
  },
  { title: 'Trace' },
)

const toTime = (ms: number): string => new Date(ms).toISOString()
const orNull = (text: string): string | null => (text === '' ? null : text)

const toSpanView = (span: Span, startMs: number): Static<typeof SpanSchema> => ({
  span_id: span.event.spanId,
  parent_span_id: orNull(span.parentSpanId),
  has_parent: span.hasParent,
  depth: span.depth,
  name: span.event.message,
  source: span.event.source,
  host: span.event.host,
  kind: orNull(span.kind),
  status: span.isError ? 'error' : 'ok',
  status_message: orNull(span.statusMessage),
  start: toTime(span.event.timestampMs),
  offset_ms: span.event.timestampMs - startMs,
  duration_ms: span.durationMs,
  event_id: span.event.id,
  tags: span.event.tags,
})

function toTraceView(
  traceId: string,
  { spans, hasMoreSpans, logs, hasMoreLogs }: Trace,
  { eventContext }: Services,
): Static<typeof TraceReply> {
  const events = [...spans.map(({ event }) => event), ...logs]
  const startMs = events.reduce((ms, event) => Math.min(ms, event.timestampMs), Infinity)
  const ends = [
    ...spans.map(({ event, durationMs }) => event.timestampMs + (durationMs ?? 0)),
    ...logs.map(({ timestampMs }) => timestampMs),
  ]
  const endMs = ends.reduce((ms, end) => Math.max(ms, end), startMs)
  return {
    trace_id: traceId,
    start: toTime(startMs),
    end: toTime(endMs),
    duration_ms: endMs - startMs,
    sources: [...new Set(events.map(({ source }) => source))].toSorted(),
    error_count: spans.filter(({ isError }) => isError).length,
    span_count: spans.length,
    spans: spans.map((span) => toSpanView(span, startMs)),
    has_more_spans: hasMoreSpans,
    logs: logs.map((event) => toEventItem(event, eventContext)),
    has_more_logs: hasMoreLogs,
  }
}

export const logContextRoutes = [
  route({
    id: 'eventContext',
    method: 'get',
    path: '/api/logs/{event_id}/context',
    tag: 'logs',
    summary: 'What was stored around an event',
    description:
      'The events before and after it by time, then id, at most 30 days away; each side begins with the nearest one. `same` leaves ' +
      'those that share fields with the event.',
    role: 'viewer',
    question: 'search',
    query: ContextQuery,
    params: EventIdParams,
    reply: ContextReply,
    errors: ['not_found', 'invalid_cursor', 'dependency_unavailable'],
    tokens: 'limited',
    handle: ({ params, query, ...asking }, services) =>
      readContext(params.event_id, query, services, asking),
  }),
  route({
    id: 'getTrace',
    method: 'get',
    path: '/api/traces/{trace_id}',
    tag: 'logs',
    summary: 'The spans of a trace as a tree, and its logs',
    description:
      'Spans are events of type `trace`, whose message is the name, whose timestamp the start, and whose tags `duration_ms`, ' +
      '`parent_span_id`, `kind` and `status_message`. The trace id is compared in any case. `has_more_spans` and `has_more_logs` ' +
      'say that there are more than the reply has.',
    role: 'viewer',
    question: 'search',
    query: Type.Object({
      start_time: QueryTime('inclusive; default 30 days ago'),
      end_time: QueryTime('inclusive'),
    }),
    params: Type.Object({ trace_id: Type.String({ minLength: 1, maxLength: 256 }) }),
    reply: TraceReply,
    examples: {
      reply: {
        trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
        start: '2026-11-21T09:28:16.000Z',
        end: '2026-11-21T09:28:19.012Z',
        duration_ms: 3012,
        sources: ['checkout'],
        error_count: 1,
        span_count: 1,
        spans: [
          {
            span_id: '00f067aa0ba902b7',
            parent_span_id: null,
            has_parent: false,
            depth: 0,
            name: 'POST /pay',
            source: 'checkout',
            host: 'web-1',
            kind: 'server',
            status: 'error',
            status_message: 'timed out',
            start: '2026-11-21T09:28:16.000Z',
            offset_ms: 0,
            duration_ms: 3012,
            event_id: 7889,
            tags: { duration_ms: 3012, kind: 'server', status_message: 'timed out' },
          },
        ],
        has_more_spans: false,
        logs: EventItem['examples'],
        has_more_logs: false,
      },
    },
    errors: ['not_found', 'dependency_unavailable'],
    tokens: 'limited',
    handle: async ({ params, query, principal, signal }, services) => {
      const traceId = params.trace_id
      const asked = { traceId, within: principal.sources, ...readRange(query) }
      const trace = await services.events.trace(asked, signal)
      if (trace.spans.length + trace.logs.length === 0)
        throw new AppError('not_found', 'there is no such trace', {
          details: { trace_id: traceId },
        })
      return toTraceView(traceId, trace, services)
    },
  }),
]
