import { Type } from '@sinclair/typebox'

import { PRIORITY_SOURCES } from '../../model/event.js'
import { EventTypeSchema, PrioritySchema, SeveritySchema } from '../../model/schemas.js'

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'UTC with milliseconds',
  examples: ['2026-11-21T09:28:19.000Z'],
})

export const MessageCut = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: 'longer messages end after so many characters with `…`',
  }),
)

const LIST_FIELDS = {
  id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  timestamp: Timestamp,
  source: Type.String(),
  type: EventTypeSchema,
  severity: SeveritySchema,
  priority: PrioritySchema,
  message: Type.String(),
  template_id: Type.String({
    description: '16 hex digits; for a merged template the id of its target',
  }),
  host: Type.String(),
  tags: Type.Record(Type.String(), Type.Unknown()),
  occurrence_count: Type.Integer({ minimum: 1 }),
  trace_id: Type.String(),
  environment: Type.String(),
  last_seen: Timestamp,
}

const EXAMPLE = {
  id: 7890,
  timestamp: '2026-11-21T09:28:19.000Z',
  source: 'checkout',
  type: 'log',
  severity: 'ERROR',
  priority: 'P2',
  message: 'payment service timed out after 3000 ms',
  template_id: 'a8c48708073718c0',
  host: 'web-1',
  tags: { order: 1001 },
  occurrence_count: 2,
  trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
  environment: 'production',
  last_seen: '2026-11-21T09:28:22.000Z',
}

/** An event in a list. */
export const EventItem = Type.Object(LIST_FIELDS, { title: 'Event', examples: [EXAMPLE] })

export const LIST_FIELD_NAMES = Object.keys(LIST_FIELDS).filter(
  (name): name is keyof typeof LIST_FIELDS => Object.hasOwn(LIST_FIELDS, name),
)

/** An event in a list that contains only some fields. */
export const EventPart = Type.Partial(Type.Object(LIST_FIELDS), {
  title: 'EventPart',
  description: 'the fields that `fields` names',
})

/** An event with all fields. */
export const EventDetail = Type.Object(
  {
    ...LIST_FIELDS,
    span_id: Type.String(),
    summary: Type.String(),
    priority_confidence: Type.Number({ minimum: 0, maximum: 1 }),
    priority_source: Type.Union(PRIORITY_SOURCES.map((s) => Type.Literal(s))),
    model_version: Type.String({ description: '`manual` after a correction' }),
    dedup_key: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
    application: Type.Union([Type.String(), Type.Null()], {
      description: 'name of the application that the source is linked to',
    }),
  },
  {
    title: 'EventDetail',
    examples: [
      {
        ...EXAMPLE,
        span_id: '00f067aa0ba902b7',
        summary: '',
        priority_confidence: 0.84,
        priority_source: 'auto',
        model_version: 'ordinal-1.1',
        dedup_key: `sha256:${'0f'.repeat(32)}`,
        application: 'shop',
      },
    ],
  },
)

export const EventIdParams = Type.Object({
  event_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
})
