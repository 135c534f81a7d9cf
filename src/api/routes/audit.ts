import { Type } from '@sinclair/typebox'
import type { AuditRecord } from '../../records/audit-record.js'
import { readPage } from '../../records/page.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'

interface Position {
  readonly seq: number
  readonly id: string
}

const Names = Type.Array(Type.String({ maxLength: 120 }), { maxItems: 100 })

const isPosition = (value: unknown): value is Position =>
  typeof value === 'object' &&
  value !== null &&
  'seq' in value &&
  'id' in value &&
  Number.isSafeInteger(value.seq) &&
  typeof value.id === 'string'

const toView = (record: AuditRecord) => ({
  id: record.id,
  at: new Date(record.atMs).toISOString(),
  actor_id: record.actorId === '' ? null : record.actorId,
  action: record.action,
  target: record.target,
  outcome: record.outcome,
  ip: record.ip,
  detail: record.detail,
})

export const auditRoutes = [
  route({
    id: 'listAudit',
    method: 'get',
    path: '/api/monitoring/audit',
    summary: 'Audit trail of changes, newest first',
    description:
      'Records logins and all changes through the API with their outcome, and refused requests of users without the ' +
      'required role (at most one a minute for each user and operation). Wrong ingest keys (`ingest`), wrong webhook ' +
      'signatures (`scmWebhook`) and reused refresh tokens (`refresh`) have an entry a minute for each address, 30 in ' +
      'all; `detail.left_out` counts those since the entry before. Who reads dead letters or this list is recorded with ' +
      'the first page, once a minute for each user. Kept for 400 days, also by clear-all.',
    role: 'admin',
    question: 'rollup',
    query: Type.Object({
      action: Type.Optional(Names),
      actor_id: Type.Optional(Names),
      ...PageParameters,
    }),
    reply: PageSchema(
      Type.Object({
        id: Type.String(),
        at: Timestamp,
        actor_id: Type.Union([Type.String(), Type.Null()], {
          description: 'null without a login',
        }),
        action: Type.String({ description: 'id of the operation', examples: ['deleteSource'] }),
        target: Type.String({ description: 'the changed object' }),
        outcome: Type.String({ description: '`ok`, or the code of the error' }),
        ip: Type.String(),
        detail: Type.Record(Type.String(), Type.Unknown()),
      }),
    ),
    errors: ['invalid_cursor', 'dependency_unavailable'],
    handle: async ({ query, signal }, { auditTrail, cursorKey }) => {
      const { limit, cursor, action: actions = [], actor_id: actors = [] } = query
      const filters = { list: 'audit', actions, actors }
      const page = await readPage(
        { limit, cursor, filters, cursorKey },
        {
          isPosition,
          read: async (after, most) =>
            await auditTrail.page({ actions, actors, after, limit: most }, signal),
          positionOf: ({ seq, id }) => ({ seq, id }),
        },
      )
      return { ...page, items: page.items.map(toView) }
    },
  }),
]
