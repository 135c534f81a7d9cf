import { Type, type Static } from '@sinclair/typebox'

import { decodeCursor, encodeCursor } from '../../records/cursor.js'
import { EVENT_PARAMETERS, answered, mayRead, readEventQuestion } from '../event-question.js'
import { shortened, toEventDetail, toEventItem } from '../event-views.js'
import { prefers } from '../../http/accept.js'
import { shorten } from '../../priority/corrections.js'
import { AppError } from '../../model/errors.js'
import { RouteReply, TypedText, route, type Caller } from '../route.js'
import type { Services } from '../services.js'
import {
  EventDetail,
  EventIdParams,
  EventItem,
  EventPart,
  LIST_FIELD_NAMES,
  MessageCut,
} from '../schemas/event.js'
import { ListParameter, NextCursor } from '../schemas/page.js'
import { PrioritySchema } from '../../model/schemas.js'

interface Position {
  readonly tsMs: number
  readonly id: number
}

const ListQuery = Type.Object({
  ...EVENT_PARAMETERS,
  order: Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
    default: 'desc',
    description: 'by time, then id; a cursor goes on from its event in either order',
  }),
  limit: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 50,
    description: 'a page above 100 ends earlier once its messages and tags have 16 MiB together',
  }),
  cursor: Type.Optional(Type.String({ maxLength: 2048 })),
  fields: ListParameter(Type.Union(LIST_FIELD_NAMES.map((name) => Type.Literal(name))), {
    description: 'the fields of each event; default all',
  }),
  message_cut: MessageCut,
})

const EventPage = Type.Object(
  {
    items: Type.Array(Type.Union([EventItem, EventPart])),
    next_cursor: NextCursor,
    has_more: Type.Boolean(),
    newest_event_at: Type.Optional(
      Type.String({
        description:
          'only when nothing is listed because all events of the sources are older than the default start_time: the time of the newest',
      }),
    ),
  },
  {
    title: 'EventPage',
    examples: [{ items: EventItem['examples'], next_cursor: null, has_more: false }],
  },
)

const Explanation = Type.Object(
  {
    event_id: Type.Integer(),
    priority: PrioritySchema,
    priority_source: Type.String(),
    template_priority: Type.Union([PrioritySchema, Type.Null()]),
    model: Type.Object({
      priority: PrioritySchema,
      confidence: Type.Number(),
      score: Type.Number(),
      model_version: Type.String(),
      chances: Type.Record(PrioritySchema, Type.Number()),
      contributions: Type.Array(Type.Object({ feature: Type.String(), points: Type.Number() })),
    }),
  },
  { title: 'PriorityExplanation' },
)

const isPosition = (value: unknown): value is Position =>
  typeof value === 'object' &&
  value !== null &&
  'tsMs' in value &&
  'id' in value &&
  Number.isSafeInteger(value.tsMs) &&
  Number.isSafeInteger(value.id)

interface Asking {
  readonly principal: Caller
  readonly signal: AbortSignal
}

async function listEvents(
  query: Static<typeof ListQuery>,
  services: Services,
  { principal, signal }: Asking,
): Promise<Static<typeof EventPage>> {
  const { cursor, limit, order, fields, message_cut: cut, ...filters } = query
  const bound = { list: 'logs', ...filters }
  const after =
    cursor === undefined ? null : decodeCursor(services.cursorKey, bound, cursor, isPosition)
  const question = readEventQuestion(filters, services.eventContext, principal.sources)
  const { events: found, isCut } = await answered(
    services.events.page({ ...question, after, order, limit: limit + 1 }, signal),
    { q: filters.q, events: services.events },
  )
  const { sources } = question.filter
  if (found.length === 0 && sources?.length !== 0 && mayBeOlder(query))
    return { ...EMPTY, ...(await newestBefore(question.fromMs, sources, services, signal)) }
  const items = found.slice(0, limit)
  const last = items.at(-1)
  const hasMore = (isCut || found.length > limit) && last !== undefined
  return {
    items: items.map((event) =>
      withFields(shortened(toEventItem(event, services.eventContext), cut), fields),
    ),
    next_cursor: hasMore
      ? encodeCursor(services.cursorKey, bound, { tsMs: last.timestampMs, id: last.id })
      : null,
    has_more: hasMore,
  }
}

type Item = Static<typeof EventItem>

const withFields = (
  item: Item,
  fields: readonly (keyof Item)[] | undefined,
): Item | Static<typeof EventPart> =>
  fields === undefined
    ? item
    : Object.fromEntries(fields.map((name) => [name, item[name]] as const))

const NDJSON = 'application/x-ndjson'

/** One event a line. A header has the address of the next page, if there is one. */
function inLines(
  { items, next_cursor: next }: Static<typeof EventPage>,
  queryText: string,
): RouteReply<TypedText> {
  const text = items.map((item) => `${JSON.stringify(item)}\n`).join('')
  if (next === null) return new RouteReply(new TypedText(NDJSON, text))
  const parameters = new URLSearchParams(queryText)
  parameters.set('cursor', next)
  const headers = { Link: `</api/logs?${String(parameters)}>; rel="next"` }
  return new RouteReply(new TypedText(NDJSON, text), { headers })
}

const EMPTY = { items: [], next_cursor: null, has_more: false }

/**
 * Whether an empty list may be due to the default time range. The totals of all sources are not
 * read for a search without matches.
 */
const mayBeOlder = (query: Static<typeof ListQuery>): boolean =>
  query.start_time === undefined &&
  query.cursor === undefined &&
  (query.source !== undefined || Object.keys(query).every((name) => FORM.has(name)))

/** The parameters that affect how events are shown, not which ones. */
const FORM: ReadonlySet<string> = new Set(['limit', 'order', 'fields', 'message_cut'])

/** Finds the newest event of the sources when all are older than the default time range. */
async function newestBefore(
  fromMs: number,
  sources: readonly string[] | null,
  { sourceStats }: Services,
  signal: AbortSignal,
): Promise<{ readonly newest_event_at?: string }> {
  const totals = await sourceStats.totals(sources, signal)
  const times = Array.from(totals.values(), ({ lastEventAtMs }) => lastEventAtMs)
  const newestMs = times.reduce((newest, ms) => Math.max(newest, ms), 0)
  return newestMs === 0 || newestMs >= fromMs
    ? {}
    : { newest_event_at: new Date(newestMs).toISOString() }
}

const missing = (id: number): AppError =>
  new AppError('not_found', 'there is no such event', { details: { event_id: id } })

export const logRoutes = [
  route({
    id: 'listEvents',
    method: 'get',
    path: '/api/logs',
    tag: 'logs',
    summary: 'Events of a query, newest first or oldest first',
    description:
      'An event is listed when one of its occurrences is in the time range, and `occurrence_count` is the number of those that ' +
      'are: one that began before `start_time` and was repeated later is listed with its own, earlier time. With `Accept: ' +
      'application/x-ndjson` the reply has an event a line, and the header `Link: <…>; rel="next"` the address of the next page.',
    role: 'viewer',
    question: 'search',
    query: ListQuery,
    reply: EventPage,
    alsoProduces: { type: NDJSON, description: 'an event a line' },
    errors: ['invalid_cursor', 'dependency_unavailable'],
    tokens: 'limited',
    handle: async ({ query, principal, signal, head }, services) => {
      const page = await listEvents(query, services, { principal, signal })
      const accept = head.headers.all('accept').join(',')
      return prefers(accept, NDJSON, 'application/json') ? inLines(page, head.queryText) : page
    },
  }),
  route({
    id: 'getEvent',
    method: 'get',
    path: '/api/logs/{event_id}',
    tag: 'logs',
    summary: 'One event with all fields',
    role: 'viewer',
    question: 'rollup',
    params: EventIdParams,
    query: Type.Object({ message_cut: MessageCut }),
    reply: EventDetail,
    errors: ['not_found', 'dependency_unavailable'],
    tokens: 'limited',
    handle: async ({ params, query, principal, signal }, { events, eventContext }) => {
      const event = await events.get(params.event_id, signal)
      if (event === null || !mayRead(event, principal.sources)) throw missing(params.event_id)
      return shortened(toEventDetail(event, eventContext), query.message_cut)
    },
  }),
  route({
    id: 'explainPriority',
    method: 'get',
    path: '/api/logs/{event_id}/explain',
    tag: 'logs',
    summary: 'Explains the priority of an event',
    description:
      '`model` is what the ordinal logistic model says of the event now. Its `score` is the sum of the `contributions`: ' +
      'severity, words of the template, rarity, burst, and what was learned from corrections. `template_priority` is the ' +
      'corrected priority of the template, which takes precedence over the model.',
    role: 'viewer',
    question: 'rollup',
    params: EventIdParams,
    reply: Explanation,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, signal }, { events, priorities }) => {
      const event = await events.get(params.event_id, signal)
      if (event === null) throw missing(params.event_id)
      const { override, contributions, modelVersion, chances, ...model } = priorities.explain(event)
      return {
        event_id: event.id,
        priority: event.priority,
        priority_source: event.prioritySource,
        template_priority: override,
        model: {
          ...model,
          model_version: modelVersion,
          chances: { ...chances },
          contributions: contributions.map((contribution) => ({ ...contribution })),
        },
      }
    },
  }),
  route({
    id: 'correctPriority',
    method: 'patch',
    path: '/api/logs/{event_id}/priority',
    tag: 'logs',
    summary: 'Corrects the priority of an event and of later events of its template',
    description:
      'Sets the priority with confidence 1.0 and model_version `manual`, stores the reason in ' +
      '`tags.correction_reason` (truncated at 200 characters), and moves every occurrence of the event to the ' +
      'new priority in all counters. Later events of the same template take the priority too.',
    role: 'manager',
    bodyBytes: 64 * 1024,
    params: EventIdParams,
    body: Type.Object(
      {
        priority: PrioritySchema,
        reason: Type.Optional(
          Type.String({ maxLength: 65_536, examples: ['retried by the client'] }),
        ),
      },
      { additionalProperties: false },
    ),
    reply: EventDetail,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { corrections, eventContext, templateNotes }) => {
      const event = await corrections.correct(params.event_id, body.priority, body.reason ?? '')
      const detail = toEventDetail(event, eventContext)
      const { id: eventId, template_id: id, source, priority } = detail
      const reason = shorten(body.reason ?? '')
      const correction = { eventId, priority, reason, actorId: principal.userId }
      if (id !== '') await templateNotes.corrected({ id, source }, correction)
      return detail
    },
  }),
]
