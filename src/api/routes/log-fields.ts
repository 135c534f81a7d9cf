import { Type, type Static } from '@sinclair/typebox'

import type { AttributeField } from '../../events/fields.js'
import { BUILTIN_FIELDS, type BuiltinField } from '../../query/ast.js'
import { nameOf, typeOf } from '../../query/fields.js'
import { EVENT_PARAMETERS, answered, readEventQuestion } from '../event-question.js'
import { route, type Caller } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { Count } from '../schemas/series.js'
import type { Services } from '../services.js'

const FieldsQuery = Type.Object(EVENT_PARAMETERS)

const FieldItem = Type.Object(
  {
    field: Type.String({ description: 'as a query names it' }),
    kind: Type.Union([Type.Literal('builtin'), Type.Literal('attribute')]),
    type: Type.Union(
      ['text', 'number', 'boolean', 'mixed', 'name', 'id', 'duration'].map((name) =>
        Type.Literal(name),
      ),
      { description: 'of an attribute: that of the values seen; `name`: one of a few' },
    ),
    share: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
      description: 'of the occurrences that have the attribute; null for a built-in field',
    }),
    examples: Type.Array(Type.Unknown(), {
      description: 'some values; texts are cut at 100 characters',
    }),
  },
  { title: 'Field' },
)

const FieldsReply = Type.Object(
  {
    items: Type.Array(FieldItem),
    total: Count,
    capped: Type.Boolean({ description: 'there are further attributes, or shares are too low' }),
    answered_from: Type.Union([Type.Literal('catalogue'), Type.Literal('events')]),
    complete_from: Type.Unsafe<Static<typeof Timestamp>>({
      ...Timestamp,
      description:
        'the fields are of the time from here on, by the catalogue from the start of a day; see the histogram',
    }),
  },
  { title: 'Fields' },
)

const BUILTIN_TYPES: Readonly<Partial<Record<BuiltinField, Static<typeof FieldItem>['type']>>> = {
  severity: 'name',
  priority: 'name',
  type: 'name',
  template: 'id',
  trace: 'id',
  span: 'id',
  id: 'number',
  count: 'number',
  new: 'duration',
}

const builtins = (): Static<typeof FieldItem>[] =>
  BUILTIN_FIELDS.filter((name) => name !== 'has').map((name) => ({
    field: name,
    kind: 'builtin',
    type: BUILTIN_TYPES[name] ?? 'text',
    share: null,
    examples: [...typeOf({ kind: 'builtin', name }).names],
  }))

const toItem = ({ name, type, share, examples }: AttributeField): Static<typeof FieldItem> => ({
  field: nameOf({ kind: 'attribute', name }),
  kind: 'attribute',
  type,
  share: Math.round(share * 10_000) / 10_000,
  examples: examples.map(readExample),
})

/** @param json may be truncated within a text, and within an escape */
export function readExample(json: string): unknown {
  const cuts = Array.from({ length: MAX_ESCAPE }, (_, i) => `${json.slice(0, json.length - i)}"`)
  for (const text of [json, ...cuts]) {
    const value = parsed(text)
    if (value !== undefined) return value
  }
  return ''
}

/** The most characters of an escape. */
const MAX_ESCAPE = 6

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

async function listFields(
  query: Static<typeof FieldsQuery>,
  { events, eventContext }: Services,
  { principal, signal }: { readonly principal: Caller; readonly signal: AbortSignal },
): Promise<Static<typeof FieldsReply>> {
  const question = readEventQuestion(query, eventContext, principal.sources)
  const { answer, completeFromMs } = await answered(events.fields.of(question, signal), {
    q: query.q,
    events,
  })
  return {
    items: [...builtins(), ...answer.attributes.map(toItem)],
    total: answer.total,
    capped: answer.isCapped,
    answered_from: answer.answeredFrom,
    complete_from: new Date(completeFromMs).toISOString(),
  }
}

export const logFieldRoutes = [
  route({
    id: 'fields',
    method: 'get',
    path: '/api/logs/fields',
    tag: 'logs',
    summary: 'The fields that events have, for queries, facets and completion',
    description:
      'Built-in fields, then at most 1,000 attributes, most frequent first. Without anything but sources and a time range the ' +
      'answer is of the whole days (UTC) that the range touches, from the catalogue of attributes; otherwise it is of the events that ' +
      'match. Shares are exact, unless `capped` says that there were too many different sets of attributes.',
    role: 'viewer',
    question: 'search',
    query: FieldsQuery,
    reply: FieldsReply,
    errors: ['dependency_unavailable'],
    examples: {
      reply: {
        items: [
          { field: 'severity', kind: 'builtin', type: 'name', share: null, examples: ['error'] },
          { field: 'http.status', kind: 'attribute', type: 'number', share: 0.62, examples: [200] },
        ],
        total: 4200,
        capped: false,
        answered_from: 'catalogue',
        complete_from: '2026-11-21T09:00:00.000Z',
      },
    },
    tokens: 'limited',
    handle: ({ query, principal, signal }, services) =>
      listFields(query, services, { principal, signal }),
  }),
]
