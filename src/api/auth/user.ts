import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../../model/errors.js'
import type { Passwords } from './passwords.js'
import { RoleSchema } from '../../model/schemas.js'
import { isAtLeast, type Role } from '../../model/roles.js'

/** A stored user. */
export const UserDoc = Type.Object({
  id: Type.String(),
  /** Normalised and unique. */
  email: Type.String(),
  role: RoleSchema,
  isActive: Type.Boolean(),
  passwordHash: Type.String(),
  /** When a temporary password expires; null or absent for a password that the user chose. */
  temporaryUntilMs: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
  /** Incremented to end the user's refresh tokens. */
  tokenEpoch: Type.Number(),
  /** Incremented to end the user's sessions, access tokens included; absent for 0. */
  sessionEpoch: Type.Optional(Type.Number()),
  /** The session that stayed valid at the last increment, '' for none: that of a user who changed their own password. */
  keptSession: Type.Optional(Type.String()),
  /** The user's identity at a provider, for users who log in there and have no password. */
  identity: Type.Optional(
    Type.Object({ provider: Type.String(), issuer: Type.String(), subject: Type.String() }),
  ),
  createdAtMs: Type.Number(),
  /** Id of the user who created it; absent for the first one and for users of a provider. */
  createdBy: Type.Optional(Type.String()),
  lastLoginAtMs: Type.Union([Type.Number(), Type.Null()]),
  secondFactor: Type.Optional(
    Type.Object({
      /** The encrypted key of the app. */
      sealed: Type.String(),
      /** The time step of the last code that was used. */
      lastStep: Type.Number(),
      /** Hashes of the recovery codes that are left. */
      recovery: Type.Array(Type.String()),
      sinceMs: Type.Number(),
    }),
  ),
  /** A second factor that is not confirmed yet. */
  pendingFactor: Type.Optional(Type.Object({ sealed: Type.String(), expiresAtMs: Type.Number() })),
})
export type User = Readonly<Static<typeof UserDoc>>

/** The user who makes a change. */
export interface Actor {
  readonly userId: string
  readonly role: Role
  /** The session from which the change is made. */
  readonly family?: string
}

/** A new epoch makes the refresh tokens of the previous one invalid. */
export const endRefreshing = (user: User): User => ({ ...user, tokenEpoch: user.tokenEpoch + 1 })

/** Ends all sessions but `kept`, access tokens included. */
export const endSessions = (user: User, kept: string): User => ({
  ...endRefreshing(user),
  sessionEpoch: (user.sessionEpoch ?? 0) + 1,
  keptSession: kept,
})

const noSuchUser = (id: string): AppError =>
  new AppError('not_found', 'there is no such user', { details: { user_id: id } })

export function refuseMissing(id: string): never {
  throw noSuchUser(id)
}

export const forbidden = (): AppError => new AppError('forbidden', 'the role does not permit this')

export function refuseUnlessRules(actor: Actor, role: Role): void {
  if (actor.role === 'superadmin') return
  if (actor.role === 'admin' && !isAtLeast(role, 'admin')) return
  throw forbidden()
}

/** Refuses to change what the provider decides about a user. @throws AppError forbidden */
export function refuseOutside({ identity }: User, what: string): void {
  if (identity === undefined) return
  throw new AppError('forbidden', `the user logs in at a provider, which has the ${what}`, {
    details: { provider: identity.provider },
  })
}

/** Superadmins of a provider do not count as local, because the provider may take their role away or not answer. */
export const isLocalSuperadmin = ({ role, isActive, identity }: User): boolean =>
  role === 'superadmin' && isActive && identity === undefined

/**
 * @param keptEmail of the only account that may log in with a password, which no other account can
 * replace; '' for none
 */
export function refuseLastSuperadmin(users: readonly User[], user: User, keptEmail: string): void {
  if (!isLocalSuperadmin(user)) return
  const others =
    user.email !== keptEmail && users.some((u) => u.id !== user.id && isLocalSuperadmin(u))
  if (!others) {
    throw new AppError('last_superadmin', 'the last active superadmin has to stay one', {
      details: { user_id: user.id },
    })
  }
}

export async function refuseWrongPassword(
  passwords: Passwords,
  user: User,
  currentPassword: string | undefined,
): Promise<void> {
  if (currentPassword === undefined) {
    throw new AppError('validation_error', 'the current password is required', {
      details: { errors: [{ in: 'body', path: 'current_password', message: 'is required' }] },
    })
  }
  if (await passwords.verify(user.passwordHash, currentPassword)) return
  throw wrongPassword()
}

export const wrongPassword = (): AppError =>
  new AppError('invalid_credentials', 'the current password is wrong')

/** The form in which e-mails are stored and compared. */
export const normalizeEmail = (text: string): string => text.trim().normalize('NFC').toLowerCase()

/** @returns the normalised e-mail
 * @throws AppError validation_error */
export function checkEmail(text: string): string {
  const email = normalizeEmail(text)
  if (email.length <= 254 && /^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,190}$/u.test(email)) return email
  throw new AppError('validation_error', 'the e-mail is not valid', {
    details: { errors: [{ in: 'body', path: 'email', message: 'must be an e-mail address' }] },
  })
}
