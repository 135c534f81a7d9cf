/*
 * What was stored around an event: the events before it and those after it in the order of lists, by time and then id, so that two
 * of the same millisecond have an order too. Each side is a page of the list from the event on, nearest first, and goes on from
 * the last event of the page before.
 */

import type { ListedEvent } from '../model/event.js'
import { DAY_MS } from '../model/time.js'
import { allOf, ofSources, type BuiltinField, type Query } from '../query/ast.js'
import { toFilter } from './filter.js'
import type { EventPage, EventQuery } from './page.js'
import type { EventPosition } from './range-rows.js'

/** The fields that events around it may have to share with the event. */
export const SAME_FIELDS = ['source', 'host', 'environment', 'trace', 'severity', 'type'] as const
export type SameField = (typeof SAME_FIELDS)[number] & BuiltinField

export interface ContextQuery {
  readonly event: ListedEvent
  readonly same: readonly SameField[]
  readonly side: 'before' | 'after'
  /** Where the page begins; null for the event itself. */
  readonly from: EventPosition | null
  readonly limit: number
  /** The sources of the events; null for all. */
  readonly within: readonly string[] | null
}

/** How far a list reaches back by default. */
const CONTEXT_MS = 30 * DAY_MS

type ReadPage = (query: EventQuery, signal?: AbortSignal) => Promise<EventPage>

export const createContext =
  (page: ReadPage) =>
  (
    { event, same, side, from, limit, within }: ContextQuery,
    signal?: AbortSignal,
  ): Promise<EventPage> =>
    page(
      {
        filter: toFilter(ofSources(allOf(same.map((field) => equalTo(field, event))), within)),
        fromMs: Math.max(0, event.timestampMs - CONTEXT_MS),
        toMs: event.timestampMs + CONTEXT_MS,
        after: from ?? { tsMs: event.timestampMs, id: event.id },
        order: side === 'before' ? 'desc' : 'asc',
        limit,
      },
      signal,
    )

function equalTo(name: SameField, event: ListedEvent): Query {
  const text = name === 'trace' ? event.traceId : event[name]
  return { kind: 'field', field: { kind: 'builtin', name }, tests: [{ kind: 'equal', text }] }
}
