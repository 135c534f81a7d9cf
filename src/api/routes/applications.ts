import { Type, type Static } from '@sinclair/typebox'
import { nameOf } from '../../model/schemas.js'

import type { Application } from '../../records/applications.js'
import { checkRetention } from '../retention.js'
import { route } from '../route.js'
import type { Services } from '../services.js'
import { ApplicationSchema, RetentionDays, Uuid } from '../schemas/source.js'

const IdParams = Type.Object({ app_id: Uuid })
const Name = nameOf(300)

/** The names of the sources of each application, in order. */
function sourcesByApplication(services: Services): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const { name, applicationId } of services.sources.list()) {
    if (applicationId === null) continue
    const names = found.get(applicationId)
    if (names === undefined) found.set(applicationId, [name])
    else names.push(name)
  }
  return found
}

type View = Static<typeof ApplicationSchema>

type Totals = Awaited<ReturnType<Services['sourceStats']['totals']>>

const toView = (
  { id, name, environment, hosts, retentionDays = null }: Application,
  sources: readonly string[],
  totals: Totals,
): View => ({
  id,
  name,
  environment,
  hosts: [...hosts],
  retention_days: retentionDays,
  sources: [...sources],
  unique_events: sources.reduce((sum, source) => sum + (totals.get(source)?.events ?? 0), 0),
})

async function views(applications: readonly Application[], services: Services): Promise<View[]> {
  const linked = sourcesByApplication(services)
  const sourcesOf = ({ id }: Application): readonly string[] => linked.get(id) ?? []
  const totals = await services.sourceStats.totals(applications.flatMap(sourcesOf))
  return applications.map((each) => toView(each, sourcesOf(each), totals))
}

async function view(application: Application, services: Services): Promise<View> {
  const sources = sourcesByApplication(services).get(application.id) ?? []
  return toView(application, sources, await services.sourceStats.totals(sources))
}

export const applicationRoutes = [
  route({
    id: 'listApplications',
    method: 'get',
    path: '/api/applications',
    summary: 'All applications, ordered by name',
    role: 'viewer',
    question: 'rollup',
    reply: Type.Array(ApplicationSchema),
    errors: ['dependency_unavailable'],
    handle: (_, services) => views(services.applications.list(), services),
  }),
  route({
    id: 'getApplication',
    method: 'get',
    path: '/api/applications/{app_id}',
    summary: 'One application',
    role: 'viewer',
    question: 'rollup',
    params: IdParams,
    reply: ApplicationSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, services) =>
      await view(services.applications.require(params.app_id), services),
  }),
  route({
    id: 'createApplication',
    method: 'post',
    path: '/api/applications',
    summary: 'Creates an application',
    role: 'admin',
    bodyBytes: 256 * 1024,
    body: Type.Object(
      {
        name: Name,
        environment: Type.Optional(
          Type.String({ maxLength: 64, examples: ['dev', 'staging', 'prod'] }),
        ),
        hosts: Type.Optional(
          Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 1000 }),
        ),
        retention_days: Type.Optional(RetentionDays),
      },
      { additionalProperties: false },
    ),
    reply: ApplicationSchema,
    status: 201,
    errors: ['application_name_conflict', 'overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, services) => {
      const { name, environment = '', hosts = [], retention_days: retentionDays = null } = body
      checkRetention(retentionDays, services)
      const fields = { name, environment, hosts, retentionDays, createdBy: principal.userId }
      return await view(await services.applications.create(fields), services)
    },
  }),
  route({
    id: 'changeApplication',
    method: 'patch',
    path: '/api/applications/{app_id}',
    summary: 'Changes the retention of an application',
    description: 'It holds for those of its sources that have none of their own.',
    role: 'admin',
    bodyBytes: 16 * 1024,
    params: IdParams,
    body: Type.Object({ retention_days: RetentionDays }, { additionalProperties: false }),
    reply: ApplicationSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, body: { retention_days: retentionDays } }, services) => {
      checkRetention(retentionDays, services)
      return await view(
        await services.applications.change(params.app_id, { retentionDays }),
        services,
      )
    },
  }),
  route({
    id: 'deleteApplication',
    method: 'delete',
    path: '/api/applications/{app_id}',
    summary: 'Deletes an application with its sources, their events and alerts',
    role: 'admin',
    params: IdParams,
    reply: Type.Object({
      id: Uuid,
      deleted: Type.Object({
        events: Type.Integer({ minimum: 0 }),
        alerts: Type.Integer({ minimum: 0 }),
        sources: Type.Integer({ minimum: 0 }),
      }),
    }),
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params: { app_id: id } }, services) => {
      services.applications.require(id)
      const sources = sourcesByApplication(services).get(id) ?? []
      const deleted = await services.deletions.deleteSources(sources)
      await services.applications.remove(id)
      return { id, deleted: { ...deleted, sources: sources.length } }
    },
  }),
]
