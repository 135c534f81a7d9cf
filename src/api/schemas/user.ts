import { Type, type Static } from '@sinclair/typebox'
import {
  MAX_GIVEN_CHARACTERS,
  MAX_PASSWORD_CHARACTERS,
  MIN_PASSWORD_CHARACTERS,
} from '../auth/passwords.js'
import { RoleSchema } from '../../model/schemas.js'
import { isTemporary } from '../auth/required-action.js'
import type { User } from '../auth/user.js'
import { Timestamp } from './event.js'
import { Uuid } from './source.js'

export const Email = Type.String({ minLength: 3, maxLength: 320, examples: ['ann@example.com'] })
export const NewPassword = Type.String({
  minLength: MIN_PASSWORD_CHARACTERS,
  maxLength: MAX_PASSWORD_CHARACTERS,
  examples: ['a new password of ann'],
})

/** A password to check; it need not meet the policy for new ones. */
export const GivenPassword = Type.String({
  minLength: 1,
  maxLength: MAX_GIVEN_CHARACTERS,
  examples: ['a password of ann'],
})

/** A code of a second factor. */
export const Code = Type.String({
  minLength: 6,
  maxLength: 64,
  description: 'six digits of the app, or a recovery code',
  examples: ['123456'],
})

export const UserSchema = Type.Object(
  {
    id: Uuid,
    email: Type.String(),
    role: RoleSchema,
    is_active: Type.Boolean(),
    created_at: Timestamp,
    last_login_at: Type.Union([Timestamp, Type.Null()]),
    has_second_factor: Type.Boolean(),
    must_change_password: Type.Boolean(),
    provider: Type.Union([Type.String(), Type.Null()], {
      description: 'where the user logs in; null for a local user',
    }),
  },
  { title: 'User' },
)

export const toUserView = (user: User): Static<typeof UserSchema> => ({
  id: user.id,
  email: user.email,
  role: user.role,
  is_active: user.isActive,
  created_at: new Date(user.createdAtMs).toISOString(),
  last_login_at: user.lastLoginAtMs === null ? null : new Date(user.lastLoginAtMs).toISOString(),
  has_second_factor: user.secondFactor !== undefined,
  must_change_password: isTemporary(user),
  provider: user.identity?.provider ?? null,
})
