import { Type, type Static } from '@sinclair/typebox'

import { SavedViewFields } from '../../model/saved-view.js'
import { MAX_SAVED_VIEWS, type SavedView, type Viewer } from '../../records/saved-views.js'
import { isAtLeast, type Role } from '../../model/roles.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { toIso } from '../schemas/record.js'
import { Uuid } from '../schemas/source.js'

const IdParams = Type.Object({ id: Uuid })
const VIEW_BYTES = 64 * 1024

const SavedViewSchema = Type.Object(
  {
    id: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
    owner_id: Type.String({ description: 'id of a user' }),
    ...SavedViewFields.properties,
  },
  { title: 'SavedView' },
)

const toView = (view: SavedView): Static<typeof SavedViewSchema> => ({
  id: view.id,
  created_at: toIso(view.createdAtMs),
  updated_at: toIso(view.updatedAtMs),
  owner_id: view.ownerId,
  ...view.fields,
})

interface Asking {
  readonly userId: string
  readonly role: Role
}

const viewerOf = ({ userId, role }: Asking): Viewer => ({
  id: userId,
  maySetForAll: isAtLeast(role, 'manager'),
})

export const savedViewRoutes = [
  route({
    id: 'listSavedViews',
    method: 'get',
    path: '/api/saved-views',
    summary: 'Your saved views and those for all, oldest first',
    role: 'viewer',
    query: Type.Object(PageParameters),
    reply: PageSchema(SavedViewSchema),
    errors: ['invalid_cursor'],
    handle: ({ query: { limit, cursor }, principal }, { savedViews, cursorKey }) => {
      const filters = { list: 'saved-views', user: principal.userId }
      const query = { limit, cursor, filters, cursorKey }
      const page = savedViews.page(viewerOf(principal), query)
      return { ...page, items: page.items.map(toView) }
    },
  }),
  route({
    id: 'createSavedView',
    method: 'post',
    path: '/api/saved-views',
    summary: 'Saves a view of the page',
    description:
      `At most ${MAX_SAVED_VIEWS} for each user. A view for all needs the role manager. A new default takes the place of ` +
      'the one before.',
    role: 'viewer',
    bodyBytes: VIEW_BYTES,
    body: SavedViewFields,
    reply: SavedViewSchema,
    status: 201,
    errors: ['forbidden', 'overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, { savedViews }) =>
      toView(await savedViews.create(viewerOf(principal), body)),
  }),
  route({
    id: 'replaceSavedView',
    method: 'put',
    path: '/api/saved-views/{id}',
    summary: 'Replaces a saved view',
    description: 'One for all needs the role manager, and stays with the user who made it.',
    role: 'viewer',
    bodyBytes: VIEW_BYTES,
    params: IdParams,
    body: SavedViewFields,
    reply: SavedViewSchema,
    errors: ['forbidden', 'not_found', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { savedViews }) =>
      toView(await savedViews.replace(viewerOf(principal), params.id, body)),
  }),
  route({
    id: 'deleteSavedView',
    method: 'delete',
    path: '/api/saved-views/{id}',
    summary: 'Deletes a saved view',
    role: 'viewer',
    params: IdParams,
    reply: Type.Null(),
    status: 204,
    errors: ['forbidden', 'not_found', 'dependency_unavailable'],
    handle: async ({ params, principal }, { savedViews }) => {
      await savedViews.remove(viewerOf(principal), params.id)
      return null
    },
  }),
]
