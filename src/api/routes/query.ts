import { Type, type Static } from '@sinclair/typebox'

import { ofSources, type Query } from '../../query/ast.js'
import { completeQuery, type Completion } from '../../query/completion.js'
import { TAG } from '../../query/fields.js'
import { findExcess, findLoneRegex, type Excess } from '../../query/limits.js'
import { MAX_LINE, parseQuery } from '../../query/parser.js'
import { printName, printQuery, printValue } from '../../query/printer.js'
import { REFUSED_PATTERN, type ReadableSources } from '../event-question.js'
import { route } from '../route.js'
import type { Services } from '../services.js'
import { readExample } from './log-fields.js'

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
    attributes: Type.Array(Type.String(), {
      description:
        'attributes of the last days, most frequent first, or values of an attribute, that begin with what is typed; as a query ' +
        'writes them',
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
        'what may have been meant otherwise: attributes and words that look like a built-in field, a `!` that excludes nothing, ' +
        'a range without values, and a regular expression that only a time range of at most an hour allows',
    }),
    completion: Type.Union([QueryCompletion, Type.Null()], {
      description: 'what can be typed at `position`; null without it',
    }),
  },
  { title: 'ParsedQuery' },
)

/** The most attributes that are suggested. */
const MAX_OFFERED = 20

type Fields = Pick<Services['events']['fields'], 'starting'>

async function complete(
  line: string,
  at: number,
  fields: Fields | null,
  signal: AbortSignal,
): Promise<Static<typeof QueryCompletion>> {
  const found = completeQuery(line, at)
  const typed = line.slice(found.position, at)
  const completion = { ...found, expected: [...found.expected], names: [...found.names] }
  // The language itself is suggested even when ClickHouse does not answer.
  const attributes =
    fields === null ? [] : await offered(found, typed, fields, signal).catch(() => [])
  return { ...completion, attributes: [...attributes] }
}

async function offered(
  { expected, field }: Completion,
  typed: string,
  fields: Fields,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (expected.includes('clause')) {
    const start = typed.startsWith(TAG) ? typed.slice(TAG.length) : typed
    const found = await fields.starting({ start, limit: MAX_OFFERED }, signal)
    return found.map(({ name }) => printName({ kind: 'attribute', name }))
  }
  if (!expected.includes('value') || field?.kind !== 'attribute') return []
  const found = await fields.starting({ start: field.name, limit: MAX_OFFERED }, signal)
  const examples = found.find(({ name }) => name === field.name)?.examples ?? []
  return examples
    .map((json) => String(readExample(json)))
    .filter((text) => text.startsWith(typed))
    .map((text) => printValue({ kind: 'equal', text }, field))
}

interface Asking {
  readonly sources: ReadableSources
  readonly events: Pick<Services['events'], 'fields' | 'refusedPattern'>
  readonly signal: AbortSignal
}

async function describe(
  { q: line, position }: { readonly q: string; readonly position?: number | undefined },
  { sources, events, signal }: Asking,
): Promise<Static<typeof ParsedQuery>> {
  const parsed = parseQuery(line)
  // Attributes are suggested from all sources, so a caller who is limited to some gets none.
  const known = sources === null ? events.fields : null
  const completion =
    position === undefined
      ? null
      : await complete(line, Math.min(position, line.length), known, signal)
  if (parsed.fault !== null)
    return { query: null, canonical: null, error: parsed.fault, hints: [], completion }
  const { query, hints, faultOf } = parsed
  const asked = ofSources(query, sources)
  const mark = (excess: Excess | null) =>
    excess === null ? null : faultOf(excess.clause, excess.message)
  // The syntax is checked even when ClickHouse does not answer.
  const refused = await events.refusedPattern(query, signal).catch(() => null)
  const error =
    mark(findExcess(asked)) ?? (refused === null ? null : faultOf(refused, REFUSED_PATTERN))
  if (error !== null) return { query: null, canonical: null, error, hints: [], completion }
  const loneRegex = mark(findLoneRegex(asked))
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
      'A faulty line, or one that asks for too much, is answered with 200 too: `error` says what is wrong, and where. `completion` says what can be typed ' +
      'at `position`, in whatever state the line is. The guide to the language is at `/docs/query-language`.',
    role: 'viewer',
    bodyBytes: 64 * 1024,
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
    errors: [],
    examples: {
      body: { q: 'severity>=warning source:checkout', position: 3 },
      reply: {
        query: {
          kind: 'and',
          nodes: [
            {
              kind: 'compare',
              field: { kind: 'builtin', name: 'severity' },
              operator: '>=',
              value: 'warning',
            },
            {
              kind: 'field',
              field: { kind: 'builtin', name: 'source' },
              tests: [{ kind: 'equal', text: 'checkout' }],
            },
          ],
        },
        canonical: 'severity>=warning source:checkout',
        error: null,
        hints: [],
        completion: {
          position: 0,
          length: 8,
          expected: ['clause'],
          field: null,
          names: ['severity'],
          attributes: ['severity_text'],
        },
      },
    },
    tokens: 'limited',
    handle: ({ body, principal, signal }, { events }) =>
      describe(body, { sources: principal.sources, events, signal }),
  }),
]
