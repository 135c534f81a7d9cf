/* The five routes of records that users create and replace as a whole (`records/documents.ts`). */

import { Type, type Static, type TObject } from '@sinclair/typebox'

import type { Role } from '../model/roles.js'
import type { Document, Documents } from '../records/documents.js'
import { route, type ApiRoute } from './route.js'
import { Timestamp } from './schemas/event.js'
import { PageParameters, PageSchema } from './schemas/page.js'
import { RECORD_BYTES, toIso } from './schemas/record.js'
import { Uuid } from './schemas/source.js'
import type { Services } from './services.js'

export const IdParams = Type.Object({ id: Uuid })

/** The fields that replies have for every kind of document. */
export const DocumentFields = {
  id: Uuid,
  version: Type.Integer({ minimum: 1, description: 'grows with each change' }),
  created_at: Timestamp,
  updated_at: Timestamp,
  updated_by: Type.String({
    description: 'id of the user who wrote it; empty where the service did',
  }),
}

export const toDocumentFields = (document: Omit<Document<unknown>, 'fields'>) => ({
  id: document.id,
  version: document.version,
  created_at: toIso(document.createdAtMs),
  updated_at: toIso(document.updatedAtMs),
  updated_by: document.updatedBy,
})

interface Crud<F extends TObject, V extends TObject, Given, Stored> {
  /** The name in the ids of the routes. */
  readonly name: string
  readonly noun: string
  readonly path: string
  readonly readers: Role
  readonly fields: F
  readonly reply: V
  readonly example: Static<F>
  readonly texts?: Readonly<Partial<Record<'list' | 'create' | 'replace' | 'remove', string>>>
  readonly documents: (services: Services) => Documents<Given, Stored>
  /** @throws AppError validation_error */
  readonly toGiven: (body: Static<F>) => Given
  readonly toView: (
    document: Document<Stored>,
    services: Services,
  ) => Static<V> | Promise<Static<V>>
}

export const crudRoutes = <F extends TObject, V extends TObject, Given, Stored>(
  crud: Crud<F, V, Given, Stored>,
): readonly ApiRoute[] => [...readingRoutes(crud), ...writingRoutes(crud)]

const withArticle = (noun: string): string => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`

const described = (description: string | undefined) =>
  description === undefined ? {} : { description }

function readingRoutes<F extends TObject, V extends TObject, Given, Stored>(
  crud: Crud<F, V, Given, Stored>,
): readonly ApiRoute[] {
  const { name, noun, path, readers: role, reply, texts = {}, documents, toView } = crud
  return [
    route({
      id: `list${name}s`,
      method: 'get',
      path,
      summary: `Every ${noun}, newest first`,
      ...described(texts.list),
      role,
      query: Type.Object(PageParameters),
      reply: PageSchema(reply),
      errors: ['invalid_cursor'],
      handle: async ({ query: { limit, cursor } }, services) => {
        const { cursorKey } = services
        const page = documents(services).page({ limit, cursor, filters: { list: path }, cursorKey })
        const items = await Promise.all(page.items.map(async (one) => await toView(one, services)))
        return { ...page, items }
      },
    }),
    route({
      id: `get${name}`,
      method: 'get',
      path: `${path}/{id}`,
      summary: `One ${noun}`,
      role,
      params: IdParams,
      reply,
      errors: ['not_found'],
      handle: ({ params }, services) => toView(documents(services).get(params.id), services),
    }),
  ]
}

function writingRoutes<F extends TObject, V extends TObject, Given, Stored>(
  crud: Crud<F, V, Given, Stored>,
): readonly ApiRoute[] {
  const { name, noun, path, fields, reply, example, texts = {} } = crud
  const { documents, toGiven, toView } = crud
  const withBody = { role: 'manager', bodyBytes: RECORD_BYTES, body: fields, reply } as const
  return [
    route({
      ...withBody,
      id: `create${name}`,
      method: 'post',
      path,
      summary: `Creates ${withArticle(noun)}`,
      ...described(texts.create),
      status: 201,
      errors: ['overloaded', 'dependency_unavailable'],
      examples: { body: example },
      handle: async ({ body, principal }, services) => {
        const given = toGiven(body as Static<F>) // the schema is `fields`
        return toView(await documents(services).create(principal.userId, given), services)
      },
    }),
    route({
      ...withBody,
      id: `replace${name}`,
      method: 'put',
      path: `${path}/{id}`,
      summary: `Replaces ${withArticle(noun)}`,
      ...described(texts.replace),
      params: IdParams,
      errors: ['not_found', 'dependency_unavailable'],
      examples: { body: example },
      handle: async ({ params, body, principal }, services) => {
        const given = toGiven(body as Static<F>) // the schema is `fields`
        const { userId } = principal
        return toView(await documents(services).replace(userId, params.id, given), services)
      },
    }),
    route({
      id: `delete${name}`,
      method: 'delete',
      path: `${path}/{id}`,
      summary: `Deletes ${withArticle(noun)}`,
      ...described(texts.remove),
      role: 'manager',
      params: IdParams,
      reply: Type.Null(),
      status: 204,
      errors: ['not_found', 'dependency_unavailable'],
      handle: async ({ params }, services) => {
        await documents(services).remove(params.id)
        return null
      },
    }),
  ]
}
