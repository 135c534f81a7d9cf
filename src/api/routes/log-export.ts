import { Type, type Static } from '@sinclair/typebox'

import { EVENT_FIELDS, toExportLines } from '../../events/export-columns.js'
import type { ExportQuery } from '../../events/export.js'
import { EXPORT_FORMATS, type LinePart } from '../../events/export-lines.js'
import type { EventPosition } from '../../events/range-rows.js'
import { AppError } from '../../model/errors.js'
import {
  EVENT_PARAMETERS,
  FieldName,
  answered,
  mayRead,
  readEventQuestion,
  readShown,
} from '../event-question.js'
import { ByteStream, RouteReply, route, startStream, type Caller } from '../route.js'
import { ListParameter } from '../schemas/page.js'
import type { Services } from '../services.js'

const ExportParameters = Type.Object({
  ...EVENT_PARAMETERS,
  format: Type.Union(
    EXPORT_FORMATS.map((format) => Type.Literal(format)),
    { default: 'ndjson', description: '`txt`: a line of text for each event' },
  ),
  fields: ListParameter(FieldName, {
    description: `of ${EVENT_FIELDS.join(', ')}, and attributes (\`user.id\`), in this order. Default: all but attributes; for txt timestamp, severity, source, host, message`,
  }),
  order: Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
    default: 'asc',
    description: 'by time, then id',
  }),
  resume: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'the id of the last event of an export that broke off: goes on after it',
    }),
  ),
})

const TYPES = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
  txt: 'text/plain; charset=utf-8',
} as const

const TRAILERS = {
  ndjson: (rows: number) => `{"complete":true,"rows":${rows}}\n`,
  csv: (rows: number) => `# {"complete":true,"rows":${rows}}\r\n`,
  txt: (rows: number) => `# {"complete":true,"rows":${rows}}\n`,
} as const

interface File {
  readonly head: string
  readonly parts: AsyncIterable<LinePart>
  readonly trailer: (rows: number) => string
  /** Whether the caller's session is still valid. */
  readonly isAlive: () => boolean
  readonly release: () => void
}

async function* writeFile({
  head,
  parts,
  trailer,
  isAlive,
  release,
}: File): AsyncGenerator<Uint8Array> {
  try {
    let rows = 0
    let isFirst = true
    for await (const part of parts) {
      if (!isAlive()) throw new AppError('unauthorized', 'the session has ended')
      if (isFirst) yield Buffer.from(head)
      isFirst = false
      rows += part.rows
      yield part.bytes
    }
    yield Buffer.from(`${isFirst ? head : ''}${trailer(rows)}`)
  } finally {
    release()
  }
}

interface Asking {
  readonly principal: Caller
  readonly signal: AbortSignal
}

/** @throws AppError invalid_cursor */
async function positionOf(
  id: number | undefined,
  { events }: Pick<Services, 'events'>,
  { principal, signal }: Asking,
): Promise<EventPosition | null> {
  if (id === undefined) return null
  const event = await events.get(id, signal)
  if (event !== null && mayRead(event, principal.sources)) return { tsMs: event.timestampMs, id }
  throw new AppError(
    'invalid_cursor',
    'there is no event with the id of resume: take the one before it',
  )
}

async function exportFile(
  { format, fields, order, resume, ...filters }: Static<typeof ExportParameters>,
  services: Services,
  { principal, signal }: Asking,
): Promise<RouteReply<ByteStream>> {
  const { userId, sources } = principal
  const question = readEventQuestion(filters, services.eventContext, sources)
  const shown = fields === undefined ? null : readShown(fields)
  const lines = toExportLines(format, shown, question.filter.redirects)
  const after = await positionOf(resume, services, { principal, signal })
  const query: ExportQuery = { ...question, order, after, lines }
  const release = services.exportSlots.begin(userId)
  const parts = services.events.exported(query, {
    ask: (work) => services.questions('search', userId, work),
    signal,
  })
  // The lines of a resumed export are appended to those before, so they get no head.
  const head = after === null ? lines.head : ''
  const isAlive = (): boolean => services.isAlive(principal)
  const file = writeFile({ head, parts, trailer: TRAILERS[format], isAlive, release })
  const stream = new ByteStream(
    TYPES[format],
    await answered(startStream(file), { q: filters.q, events: services.events }),
  )
  const headers = { 'Content-Disposition': `attachment; filename="events.${format}"` }
  return new RouteReply(stream, { headers })
}

export const logExportRoutes = [
  route({
    id: 'exportEvents',
    method: 'get',
    path: '/api/logs/export',
    tag: 'logs',
    summary: 'All events of a query as a file',
    description:
      'Takes the parameters of `GET /api/logs` and sends every event, as the client reads it. The last line is ' +
      '`{"complete":true,"rows":n}`, in CSV and text behind `# `; without it the file is not complete. It goes on with ' +
      '`resume`: the id of the last whole line, beside the same parameters. A cell of CSV that a program for tables would take ' +
      "for a formula begins with `'`. A user has at most 2 exports at once, an instance 8. " +
      'The guide [Live tail and export](/docs/tail-and-export#export) says more.',
    role: 'viewer',
    query: ExportParameters,
    reply: Type.String(),
    produces: [TYPES.ndjson, TYPES.csv, TYPES.txt],
    errors: ['invalid_cursor', 'overloaded', 'dependency_unavailable'],
    examples: {
      reply:
        '{"id":7,"timestamp":"2026-11-21T09:28:19.000Z","message":"order 1 was paid"}\n{"complete":true,"rows":1}\n',
    },
    tokens: 'limited',
    handle: ({ query, principal, signal }, services) =>
      exportFile(query, services, { principal, signal }),
  }),
]
