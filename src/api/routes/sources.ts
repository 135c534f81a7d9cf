import { Type, type Static } from '@sinclair/typebox'

import type { BodyResult } from '../../ingest/block.js'
import type { RetentionClass } from '../../model/retention.js'
import { isTimeZone } from '../../model/time.js'
import { throwOnErrors } from '../validation.js'
import { AppError } from '../../model/errors.js'
import { Timestamp } from '../schemas/event.js'
import type { SourceTotals } from '../../events/source-stats.js'
import type { Source } from '../../records/sources.js'
import { decodeCursor, encodeCursor } from '../../records/cursor.js'
import { checkRetention } from '../retention.js'
import { multipart, route, RouteReply } from '../route.js'
import type { Services } from '../services.js'
import {
  Connector,
  NewSourceName,
  RetentionDays,
  SourceName,
  SourceSchema,
  SourceTypeSchema,
  Uuid,
} from '../schemas/source.js'
import { PageParameters } from '../schemas/page.js'
import { DAY_MS } from '../../model/time.js'

const FILE_BYTES = 10 * 1024 * 1024
const NameParams = Type.Object({ name: SourceName })

function statusOf(
  source: Source,
  totals: SourceTotals | undefined,
): Static<typeof SourceSchema>['status'] {
  if (!source.enabled) return 'disabled'
  if (totals === undefined || totals.events === 0) return 'pending'
  return totals.lastEventAtMs > Date.now() - DAY_MS ? 'active' : 'stale'
}

function toSource(
  source: Source,
  totals: SourceTotals | undefined,
  deadLetters: number,
): Static<typeof SourceSchema> {
  const seen = totals !== undefined && totals.events > 0
  return {
    name: source.name,
    type: source.type,
    connector: source.connector,
    status: statusOf(source, totals),
    enabled: source.enabled,
    application_id: source.applicationId,
    retention_days: source.retentionDays ?? null,
    last_event_at: seen ? new Date(totals.lastEventAtMs).toISOString() : null,
    dead_letters_24h: deadLetters,
  }
}

/** The view of sources, with their counts. */
async function viewOf(
  sources: readonly Source[],
  { sourceStats }: Services,
  signal?: AbortSignal,
): Promise<(source: Source) => Static<typeof SourceSchema>> {
  const names = sources.map(({ name }) => name)
  const nowMs = Date.now()
  const [totals, dead] = await Promise.all([
    sourceStats.totals(names, signal),
    sourceStats.deadLetters(names, { fromMs: nowMs - DAY_MS, toMs: nowMs }, signal),
  ])
  return (source) => toSource(source, totals.get(source.name), dead.get(source.name) ?? 0)
}

const view = async (source: Source, services: Services): Promise<Static<typeof SourceSchema>> =>
  (await viewOf([source], services))(source)

async function create(
  body: {
    readonly name: string
    readonly type?: Source['type']
    readonly connector?: string
    readonly application_id?: string | null
    readonly retention_days?: RetentionClass | null
  },
  services: Services,
): Promise<Static<typeof SourceSchema>> {
  const applicationId = body.application_id ?? null
  if (applicationId !== null) services.applications.require(applicationId)
  checkRetention(body.retention_days, services)
  const source = await services.sources.create({
    name: body.name,
    type: body.type ?? 'push',
    connector: body.connector ?? 'custom',
    applicationId,
    retentionDays: body.retention_days ?? null,
  })
  if (applicationId !== null) await services.applications.link(applicationId, source.name)
  services.announce()
  return await view(source, services)
}

/** @throws AppError `not_found` when the source or application does not exist */
async function change(
  name: string,
  {
    retention_days: retentionDays,
    application_id: applicationId,
  }: {
    readonly retention_days?: RetentionClass | null
    readonly application_id?: string | null
  },
  services: Services,
): Promise<Static<typeof SourceSchema>> {
  const { applications, sources } = services
  if (applicationId != null) applications.require(applicationId)
  checkRetention(retentionDays, services)
  const source = await sources.change(name, {
    ...(retentionDays !== undefined && { retentionDays }),
    ...(applicationId !== undefined && { applicationId }),
  })
  if (applicationId != null) await applications.link(applicationId, name)
  services.announce()
  return await view(source, services)
}

const disabled = (name: string): AppError =>
  new AppError('source_disabled', 'ingestion of this source is off', { details: { name } })

const UPLOAD_ERRORS = ['file_parse_error', 'empty_file', 'validation_error'] as const

/** @throws AppError for a file that was refused as a whole, or of which no row could be stored */
function requireRows({ refusal, accepted, rejected, dropped, errors }: BodyResult): void {
  if (refusal !== null) {
    const code = UPLOAD_ERRORS.find((c) => c === refusal.code) ?? 'file_parse_error'
    throw new AppError(code, refusal.message)
  }
  if (rejected === 0 || accepted + dropped > 0) return
  const rows = errors.map(({ line, code, message }) => ({ line, code, message }))
  throw new AppError('file_parse_error', 'no row of the file could be stored', {
    details: { errors: rows },
  })
}

/** @throws AppError `validation_error` for an unknown time zone */
function checkedZone(name: string | undefined): string | undefined {
  if (name === undefined || name === '') return undefined
  if (!isTimeZone(name))
    throwOnErrors([{ in: 'body', path: 'time_zone', message: 'must be an IANA time zone' }])
  return name
}

async function upload(
  form: {
    readonly file_type: 'csv' | 'json' | 'txt'
    readonly source_name: string
    readonly application_id?: string
    readonly time_zone?: string
  },
  data: Uint8Array | undefined,
  services: Services,
): Promise<Static<typeof UploadReply>> {
  const { file_type: format, source_name: name, application_id: applicationId = null } = form
  const timeZone = checkedZone(form.time_zone)
  if (applicationId !== null) services.applications.require(applicationId)
  const known = services.sources.get(name)
  if (known?.enabled === false) throw disabled(name)
  if (data === undefined || data.length === 0)
    throw new AppError('empty_file', 'the file holds no rows')
  const result = await services.upload({
    format,
    bytes: data,
    source: name,
    applicationId,
    timeZone,
  })
  requireRows(result)
  if (known === undefined && applicationId !== null && services.sources.get(name) !== undefined)
    await services.applications.link(applicationId, name)
  const { accepted: sent, rejected: errors } = result
  return {
    status: 'accepted',
    events_processed: sent,
    source_name: name,
    detail: { sent, errors },
    ...shownBy(name, result.span),
  }
}

/** The address of a list that shows the events of a file, which may be older than the default time range. */
function shownBy(source: string, span: BodyResult['span']) {
  if (span === null) return {}
  const from = new Date(span.fromMs).toISOString()
  const to = new Date(span.toMs).toISOString()
  const query = new URLSearchParams({ source, start_time: from, end_time: to })
  return { time_span: { from, to }, events_url: `/api/logs?${query.toString()}` }
}

const UploadReply = Type.Object(
  {
    status: Type.String({ examples: ['accepted'] }),
    events_processed: Type.Integer({ minimum: 0 }),
    source_name: Type.String(),
    detail: Type.Object({
      sent: Type.Integer({ minimum: 0, description: 'rows that became events' }),
      errors: Type.Integer({ minimum: 0, description: 'rows that did not' }),
    }),
    time_span: Type.Optional(
      Type.Object(
        { from: Timestamp, to: Timestamp },
        { description: 'the times of the first and the last event' },
      ),
    ),
    events_url: Type.Optional(
      Type.String({ description: 'lists the events, which may be older than the default window' }),
    ),
  },
  { title: 'UploadResult' },
)

/** The list that a cursor belongs to. */
const SOURCE_LIST = { list: 'sources' }

const isName = (value: unknown): value is string => typeof value === 'string'

/** The registered sources of these names, by name. */
const ofNames = (names: readonly string[], { sources }: Pick<Services, 'sources'>) =>
  names
    .toSorted()
    .map((name) => sources.get(name))
    .filter((source) => source !== undefined)

export const sourceRoutes = [
  route({
    id: 'listSources',
    method: 'get',
    path: '/api/sources',
    summary: 'Sources, ordered by name',
    description: `At most \`limit\` sources. When there are more, the header \`Link: <…>; rel="next"\` has the address of the next page.`,
    role: 'viewer',
    question: 'rollup',
    query: Type.Object({
      limit: Type.Integer({ minimum: 1, maximum: 10_000, default: 1_000 }),
      cursor: PageParameters.cursor,
    }),
    reply: Type.Array(SourceSchema),
    errors: ['invalid_cursor', 'dependency_unavailable'],
    tokens: 'limited',
    handle: async ({ query: { limit, cursor }, principal, signal }, services) => {
      const { sources, cursorKey } = services
      const after = cursor === undefined ? '' : decodeCursor(cursorKey, SOURCE_LIST, cursor, isName)
      const found =
        principal.sources === null
          ? sources.list(after, limit + 1)
          : ofNames(principal.sources, services)
              .filter(({ name }) => name > after)
              .slice(0, limit + 1)
      const page = found.slice(0, limit)
      const items = page.map(await viewOf(page, services, signal))
      const last = page.at(-1)?.name
      if (found.length === page.length || last === undefined) return new RouteReply(items)
      const next = encodeCursor(cursorKey, SOURCE_LIST, last)
      const link = `</api/sources?limit=${limit}&cursor=${next}>; rel="next"`
      return new RouteReply(items, { headers: { Link: link } })
    },
  }),
  route({
    id: 'createSource',
    method: 'post',
    path: '/api/sources',
    summary: 'Registers a source',
    description:
      'With `application_id` the source is linked to the application, and its name is appended to the `hosts` of it.',
    role: 'admin',
    limit: 'source_create_limit',
    bodyBytes: 16 * 1024,
    body: Type.Object(
      {
        name: NewSourceName,
        type: Type.Optional(SourceTypeSchema),
        connector: Type.Optional(Connector),
        application_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
        retention_days: Type.Optional(RetentionDays),
      },
      { additionalProperties: false },
    ),
    reply: SourceSchema,
    status: 201,
    errors: ['source_already_exists', 'not_found', 'overloaded', 'dependency_unavailable'],
    handle: ({ body }, services) => create(body, services),
  }),
  route({
    id: 'uploadEphemeral',
    method: 'post',
    path: '/api/sources/ephemeral',
    summary: 'Ingests a CSV, JSON or TXT file',
    description:
      'The rows become events; the file itself is not stored. At most 10 MB and 200,000 rows. An unregistered source ' +
      'is registered with type `file`. `detail.errors` counts the rows that could not be parsed. When no row could be stored, the reply is 422 ' +
      '`file_parse_error`; `details.errors` has the line and the reason of the first 20.',
    role: 'manager',
    limit: 'source_create_limit',
    bodyBytes: FILE_BYTES + 64 * 1024,
    body: multipart({
      fields: Type.Object(
        {
          file_type: Type.Union([Type.Literal('csv'), Type.Literal('json'), Type.Literal('txt')]),
          source_name: NewSourceName,
          application_id: Type.Optional(Uuid),
          time_zone: Type.Optional(
            Type.String({
              maxLength: 64,
              description:
                'of times without one: an IANA name; default: the setting DEFAULT_TIME_ZONE',
              examples: ['Europe/Vienna'],
            }),
          ),
        },
        { additionalProperties: false },
      ),
      files: ['file'],
      fileBytes: FILE_BYTES,
    }),
    reply: UploadReply,
    status: 202,
    errors: [
      'file_too_large',
      'file_parse_error',
      'empty_file',
      'source_disabled',
      'not_found',
      'overloaded',
      'dependency_unavailable',
    ],
    handle: ({ body }, services) => upload(body.fields, body.files['file']?.data, services),
  }),
  route({
    id: 'changeSource',
    method: 'patch',
    path: '/api/sources/{name}',
    summary: 'Changes the retention of a source, or its application',
    description:
      'What is absent stays. With `application_id` the source is linked to the application, and its name is appended to ' +
      'the `hosts` of it; null ends the link, and leaves the `hosts`.',
    role: 'admin',
    bodyBytes: 16 * 1024,
    params: NameParams,
    body: Type.Object(
      {
        retention_days: Type.Optional(RetentionDays),
        application_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
      },
      { additionalProperties: false, minProperties: 1 },
    ),
    reply: SourceSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: ({ params, body }, services) => change(params.name, body, services),
  }),
  route({
    id: 'toggleSource',
    method: 'post',
    path: '/api/sources/{name}/toggle',
    summary: 'Turns ingestion of a source on or off',
    role: 'manager',
    query: Type.Object({
      enabled: Type.Boolean({
        description: 'whether its messages are taken; those of a disabled source are dropped',
      }),
    }),
    params: NameParams,
    reply: SourceSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, query }, services) => {
      const source = await services.sources.change(params.name, { enabled: query.enabled })
      services.announce()
      return await view(source, services)
    },
  }),
  route({
    id: 'deleteSource',
    method: 'delete',
    path: '/api/sources/{name}',
    summary: 'Deletes a source with all its events and alerts',
    role: 'admin',
    params: NameParams,
    reply: Type.Object({
      name: Type.String(),
      deleted: Type.Object({
        events: Type.Integer({ minimum: 0 }),
        alerts: Type.Integer({ minimum: 0 }),
      }),
    }),
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params: { name } }, services) => {
      if (services.sources.get(name) === undefined)
        throw new AppError('not_found', 'there is no such source', { details: { name } })
      const deleted = await services.deletions.deleteSources([name])
      services.announce()
      return { name, deleted }
    },
  }),
]
