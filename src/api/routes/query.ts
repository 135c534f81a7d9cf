import { Type, type Static } from '@sinclair/typebox'

import type { Query } from '../../query/ast.js'
import { completeQuery } from '../../query/completion.js'
import { MAX_LINE, parseQuery } from '../../query/parser.js'
import { printQuery } from '../../query/printer.js'
import { route } from '../route.js'

/** Longer lines are refused before they are parsed. */
const MAX_BODY_LINE = 4 * MAX_LINE

const NODE_KINDS = [
  'and',
  'or',
  'not',
  'text',
  'field',
  'compare',
  'has',
] as const satisfies readonly Query['kind'][]

const QueryNode = Type.Object(
  { kind: Type.Union(NODE_KINDS.map((kind) => Type.Literal(kind))) },
  {
    title: 'QueryNode',
    additionalProperties: true,
    description:
      '`and`, `or`: `nodes`; `not`: `node`; `text`: `test`, searched in message, host and trace id; `field`: `field` ' +
      'and `tests`, one of which must hold; `compare`: `field`, `operator`, `value`; `has`: `field`. A field has `kind` ' +
      '(`builtin` or `attribute`) and `name`. A test has `kind` (`word`, `prefix`, `phrase`, `equal` with `text`; ' +
      '`regex` with `pattern`; `range` with `from` and `to`).',
  },
)

const Offset = Type.Integer({ minimum: 0, description: 'in UTF-16 code units' })

const QueryFault = Type.Object(
  {
    position: Offset,
    length: Offset,
    message: Type.String(),
    suggestion: Type.Union([Type.String(), Type.Null()], {
      description: 'what the marked text could be replaced with',
    }),
  },
  { title: 'QueryFault' },
)

const QueryField = Type.Object({
  kind: Type.Union([Type.Literal('builtin'), Type.Literal('attribute')]),
  name: Type.String(),
})

const QueryCompletion = Type.Object(
  {
    position: Offset,
    length: Offset,
    expected: Type.Array(
      Type.Union([Type.Literal('clause'), Type.Literal('operator'), Type.Literal('value')]),
    ),
    field: Type.Union([QueryField, Type.Null()], {
      description: 'the field whose value is expected',
    }),
    names: Type.Array(Type.String(), {
      description:
        'built-in fields, or values of a field that has few, that begin with what is typed',
    }),
  },
  { title: 'QueryCompletion' },
)

const ParsedQuery = Type.Object(
  {
    query: Type.Union([QueryNode, Type.Null()], { description: 'null for a faulty line' }),
    canonical: Type.Union([Type.String(), Type.Null()], {
      description: 'the line as this service writes it; null for a faulty one',
    }),
    error: Type.Union([QueryFault, Type.Null()]),
    hints: Type.Array(QueryFault, {
      description:
        'attributes that are called like a built-in field, and a regular expression for short time ranges only',
    }),
    completion: Type.Union([QueryCompletion, Type.Null()], {
      description: 'what can be typed at `position`; null without it',
    }),
  },
  { title: 'ParsedQuery' },
)

function describe(line: string, position: number | undefined): Static<typeof ParsedQuery> {
  const parsed = parseQuery(line)
  const at = position === undefined ? null : Math.min(position, line.length)
  const found = at === null ? null : completeQuery(line, at)
  const completion =
    found === null ? null : { ...found, expected: [...found.expected], names: [...found.names] }
  if (parsed.fault !== null)
    return { query: null, canonical: null, error: parsed.fault, hints: [], completion }
  const { query, hints, loneRegex } = parsed
  return {
    query,
    canonical: printQuery(query),
    error: null,
    hints: loneRegex === null ? [...hints] : [...hints, loneRegex],
    completion,
  }
}

export const queryRoutes = [
  route({
    id: 'parseQuery',
    method: 'post',
    path: '/api/logs/query/parse',
    tag: 'logs',
    summary: 'Parses a line of the query language',
    description:
      'A faulty line is answered with 200 too: `error` says what is wrong, and where. `completion` says what can be typed ' +
      'at `position`, in whatever state the line is. The guide to the language is at `/docs/query-language`.',
    role: 'viewer',
    limit: 'none',
    bodyBytes: 64 * 1024,
    query: Type.Object({}),
    body: Type.Object(
      {
        q: Type.String({ maxLength: MAX_BODY_LINE, description: 'the line' }),
        position: Type.Optional(
          Type.Integer({ minimum: 0, maximum: MAX_BODY_LINE, description: 'of the cursor' }),
        ),
      },
      { additionalProperties: false },
    ),
    reply: ParsedQuery,
    status: 200,
    errors: [],
    examples: {
      body: { q: 'severity>=warning source:checkout "connection refused"', position: 3 },
    },
    handle: ({ body }) => describe(body.q, body.position),
  }),
]
