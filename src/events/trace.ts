/*
 * A trace: its spans as a tree, and its other events in the order of time.
 *
 * A span is an event of type `trace`: its name is the message, its start the timestamp, its service the source; the tags have
 * `duration_ms`, `parent_span_id`, `kind` and `status_message`, and a span that failed is an ERROR. A span whose parent is not
 * stored is a root. Both lists are bounded, and the reply says when there are more.
 */

import { isErrorOrWorse, type ListedEvent } from '../model/event.js'
import { allOf, ofSources, type Query } from '../query/ast.js'
import { toFilter } from './filter.js'
import type { EventPage, EventQuery } from './page.js'
import { END_MS } from './range-rows.js'

export interface Span {
  readonly event: ListedEvent
  readonly parentSpanId: string
  /** Whether the parent is in the trace. */
  readonly hasParent: boolean
  /** The depth in the tree; 0 for a root. */
  readonly depth: number
  /** Null when the span has none. */
  readonly durationMs: number | null
  readonly kind: string
  readonly isError: boolean
  readonly statusMessage: string
}

export interface Trace {
  /** Each is followed by its children, which are in the order of time. */
  readonly spans: readonly Span[]
  readonly hasMoreSpans: boolean
  /** The events that are no spans, oldest first. */
  readonly logs: readonly ListedEvent[]
  readonly hasMoreLogs: boolean
}

export interface TraceQuery {
  readonly traceId: string
  readonly fromMs: number
  /** Exclusive; null for no bound. */
  readonly toMs: number | null
  /** The sources of the events; null for all. */
  readonly within: readonly string[] | null
}

export const MAX_SPANS = 2_000
export const MAX_LOGS = 1_000
/** The longest duration. A longer one, such as one in nanoseconds, would end beyond the range of dates. */
const MAX_DURATION_MS = END_MS

type ReadPage = (query: EventQuery, signal?: AbortSignal) => Promise<EventPage>

const IS_SPAN: Query = {
  kind: 'field',
  field: { kind: 'builtin', name: 'type' },
  tests: [{ kind: 'equal', text: 'trace' }],
}

export function createTraceReader(page: ReadPage) {
  return async (
    { traceId, fromMs, toMs, within }: TraceQuery,
    signal?: AbortSignal,
  ): Promise<Trace> => {
    const ofTrace: Query = {
      kind: 'field',
      field: { kind: 'builtin', name: 'trace' },
      tests: [{ kind: 'equal', text: traceId }],
    }
    const oldest = (query: Query, most: number) => {
      const filter = toFilter(ofSources(allOf([ofTrace, query]), within))
      return page({ filter, fromMs, toMs, after: null, order: 'asc', limit: most + 1 }, signal)
    }
    const [spans, logs] = await Promise.all([
      oldest(IS_SPAN, MAX_SPANS),
      oldest({ kind: 'not', node: IS_SPAN }, MAX_LOGS),
    ])
    return {
      spans: toTree(spans.events.slice(0, MAX_SPANS)),
      hasMoreSpans: spans.isCut || spans.events.length > MAX_SPANS,
      logs: logs.events.slice(0, MAX_LOGS),
      hasMoreLogs: logs.isCut || logs.events.length > MAX_LOGS,
    }
  }
}

/** @param events in the order of time */
function toTree(events: readonly ListedEvent[]): readonly Span[] {
  const bySpanId = new Map<string, ListedEvent>()
  for (const event of events) {
    const id = event.spanId.toLowerCase()
    if (id !== '' && !bySpanId.has(id)) bySpanId.set(id, event)
  }
  const parentOf = (event: ListedEvent): ListedEvent | null => {
    const parent = bySpanId.get(parentIdOf(event).toLowerCase()) ?? null
    return parent === event ? null : parent
  }
  const children = new Map<ListedEvent | null, ListedEvent[]>()
  for (const event of events) {
    const parent = parentOf(event)
    const known = children.get(parent)
    if (known === undefined) children.set(parent, [event])
    else known.push(event)
  }
  const spans: Span[] = []
  const placed = new Set<ListedEvent>()
  const place = (root: ListedEvent): void => {
    const left = [{ event: root, depth: 0 }]
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { event, depth } = next
      if (placed.has(event)) continue
      placed.add(event)
      spans.push(toSpan(event, depth, bySpanId))
      const below = children.get(event) ?? []
      left.push(...below.toReversed().map((child) => ({ event: child, depth: depth + 1 })))
    }
  }
  for (const root of children.get(null) ?? []) place(root)
  for (const event of events) if (!placed.has(event)) place(inCycleAbove(event, parentOf))
  return spans
}

/** Finds a span in a cycle of parents, which becomes a root. */
function inCycleAbove(
  event: ListedEvent,
  parentOf: (event: ListedEvent) => ListedEvent | null,
): ListedEvent {
  const passed = new Set<ListedEvent>()
  let at = event
  while (!passed.has(at)) {
    passed.add(at)
    at = parentOf(at) ?? at
  }
  return at
}

function toSpan(
  event: ListedEvent,
  depth: number,
  bySpanId: ReadonlyMap<string, ListedEvent>,
): Span {
  const parentSpanId = parentIdOf(event)
  const duration = textTag(event, 'duration_ms')
  const durationMs = duration === '' ? Number.NaN : Number(duration)
  return {
    event,
    parentSpanId,
    hasParent: bySpanId.has(parentSpanId.toLowerCase()),
    depth,
    durationMs: durationMs >= 0 && durationMs <= MAX_DURATION_MS ? durationMs : null,
    kind: textTag(event, 'kind'),
    isError: isErrorOrWorse(event.severity),
    statusMessage: textTag(event, 'status_message'),
  }
}

/** Span ids are compared in any case, as in the query language. */
const parentIdOf = (event: ListedEvent): string => textTag(event, 'parent_span_id')

function textTag({ tags }: ListedEvent, name: string): string {
  const value = tags[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
