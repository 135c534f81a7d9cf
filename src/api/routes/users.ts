import { Type } from '@sinclair/typebox'
import { unfulfilled } from '../auth/required-action.js'
import type { UserPatch } from '../auth/users.js'
import { pageOldestFirst } from '../../records/page.js'
import { PageParameters, PageSchema } from '../schemas/page.js'
import { RoleSchema } from '../../model/schemas.js'
import { withinGuesses } from '../guessing.js'
import { route } from '../route.js'
import { Uuid } from '../schemas/source.js'
import { Email, GivenPassword, NewPassword, UserSchema, toUserView } from '../schemas/user.js'

const IdParams = Type.Object({ id: Uuid })
const BODY_BYTES = 16 * 1024

const Temporary = Type.Optional(
  Type.Boolean({
    description:
      'whether the user has to change the password after the first login, within `TEMPORARY_PASSWORD_HOURS`; default false',
  }),
)

export const userRoutes = [
  route({
    id: 'listUsers',
    method: 'get',
    path: '/api/users',
    summary: 'Users, oldest first',
    role: 'admin',
    query: Type.Object(PageParameters),
    reply: PageSchema(UserSchema),
    errors: ['invalid_cursor'],
    handle: ({ query: { limit, cursor } }, { users, cursorKey }) => {
      const filters = { list: 'users' }
      const page = pageOldestFirst(users.list(), { limit, cursor, filters, cursorKey })
      return { ...page, items: page.items.map(toUserView) }
    },
  }),
  route({
    id: 'createUser',
    method: 'post',
    path: '/api/users',
    summary: 'Creates a user',
    description: 'An admin creates viewers and managers, a superadmin any role. Default: viewer.',
    role: 'admin',
    tokens: 'none',
    bodyBytes: BODY_BYTES,
    body: Type.Object({
      email: Email,
      password: NewPassword,
      role: Type.Optional(RoleSchema),
      temporary: Temporary,
    }),
    reply: UserSchema,
    status: 201,
    errors: ['email_conflict', 'overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, { users }) => {
      const { temporary: isTemporary = false, ...input } = body
      return toUserView(await users.create(principal, { ...input, isTemporary }))
    },
  }),
  route({
    id: 'getUser',
    method: 'get',
    path: '/api/users/{id}',
    summary: 'One user',
    description: 'Users may read their own record, admins every record.',
    role: 'viewer',
    params: IdParams,
    reply: UserSchema,
    errors: ['not_found'],
    handle: ({ params, principal }, { users }) => toUserView(users.read(principal, params.id)),
  }),
  route({
    id: 'changeUser',
    method: 'patch',
    path: '/api/users/{id}',
    summary: 'Changes the e-mail, enables or disables a user',
    description: 'A disabled user loses access at once, and all their tokens become invalid.',
    role: 'admin',
    tokens: 'none',
    bodyBytes: BODY_BYTES,
    params: IdParams,
    body: Type.Object({ email: Type.Optional(Email), is_active: Type.Optional(Type.Boolean()) }),
    reply: UserSchema,
    errors: ['not_found', 'email_conflict', 'last_superadmin', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { users }) => {
      const { email, is_active: isActive } = body
      const patch: UserPatch = {
        ...(email === undefined ? {} : { email }),
        ...(isActive === undefined ? {} : { isActive }),
      }
      return toUserView(await users.patch(principal, params.id, patch))
    },
  }),
  route({
    id: 'deleteUser',
    method: 'delete',
    path: '/api/users/{id}',
    summary: 'Deletes a user',
    role: 'admin',
    tokens: 'none',
    params: IdParams,
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'last_superadmin', 'dependency_unavailable'],
    handle: async ({ params, principal }, { users, savedViews }) => {
      await users.remove(principal, params.id)
      await savedViews.removeOf(params.id)
      return null
    },
  }),
  route({
    id: 'setUserRole',
    method: 'put',
    path: '/api/users/{id}/role',
    summary: 'Changes the role of a user',
    description:
      'Takes effect with the next login: access tokens keep their role until they expire, refresh tokens become invalid. ' +
      'What needs the role admin or superadmin is refused at once to a user who has lost it.',
    role: 'superadmin',
    tokens: 'none',
    bodyBytes: BODY_BYTES,
    params: IdParams,
    body: Type.Object({ role: RoleSchema }),
    reply: UserSchema,
    errors: ['not_found', 'last_superadmin', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { users }) =>
      toUserView(await users.setRole(principal, params.id, body.role)),
  }),
  route({
    id: 'removeSecondFactor',
    method: 'delete',
    path: '/api/users/{id}/second-factor',
    summary: 'Removes the second factor of a user who has lost it',
    description:
      'Ends the sessions of the user, who then logs in with the password alone. Make sure who asks for it. Your own is ' +
      'disabled with `POST /api/auth/second-factor/disable`.',
    role: 'admin',
    tokens: 'none',
    params: IdParams,
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, principal }, { secondFactors }) => {
      await secondFactors.remove(principal, params.id)
      return null
    },
  }),
  route({
    id: 'setUserPassword',
    method: 'put',
    path: '/api/users/{id}/password',
    summary: 'Sets a password and ends the sessions of the user',
    description:
      'All access and refresh tokens of the user become invalid, but for the access token with which users change their ' +
      'own password. A new password is not a common one, a repetition or made of the e-mail. Users need `current_password` to change their own password; each attempt counts as a login attempt.',
    role: 'viewer',
    tokens: 'none',
    isOpenBeforeRequiredAction: true,
    bodyBytes: BODY_BYTES,
    params: IdParams,
    body: Type.Object({
      password: NewPassword,
      current_password: Type.Optional(GivenPassword),
      temporary: Temporary,
    }),
    reply: UserSchema,
    errors: [
      'not_found',
      'invalid_credentials',
      'rate_limited',
      'overloaded',
      'dependency_unavailable',
    ],
    handle: async ({ params: { id }, body, principal, head }, services) => {
      const { password, current_password: currentPassword, temporary: isTemporary = false } = body
      if (principal.requiredAction !== null && principal.userId !== id)
        throw unfulfilled(principal.requiredAction)
      const given = {
        password,
        isTemporary,
        ...(currentPassword === undefined ? {} : { currentPassword }),
      }
      const work = () => services.users.setPassword(principal, id, given)
      const email = principal.userId === id ? services.users.get(id)?.email : undefined
      if (email === undefined) return toUserView(await work())
      return toUserView(await withinGuesses(services, head, { email, work }))
    },
  }),
]
