import type { WithLock } from '../../coordination/lock.js'
import { randomUUID } from 'node:crypto'
import { DAY_MS } from '../../model/time.js'
import { AppError } from '../../model/errors.js'
import type { Entities } from './entities.js'
import { checkPassword, generatePassword, type Passwords } from './passwords.js'
import { isAtLeast, type Role } from '../../model/roles.js'
import {
  checkEmail,
  endRefreshing,
  endSessions,
  forbidden,
  normalizeEmail,
  refuseLastSuperadmin,
  refuseMissing,
  refuseOutside,
  refuseUnlessRules,
  refuseWrongPassword,
  wrongPassword,
  type Actor,
  type User,
} from './user.js'

export interface UserInput {
  readonly email: string
  readonly password: string
  readonly role?: Role
  /** Whether the user must change the password at the next login. */
  readonly isTemporary?: boolean
}

export interface UserPatch {
  readonly email?: string
  readonly isActive?: boolean
}

interface PasswordChange {
  readonly password: string
  /** Required when users change their own password. */
  readonly currentPassword?: string
  /** Whether the user must change the password at the next login; not for one's own. */
  readonly isTemporary?: boolean
}

interface PasswordReset {
  readonly email: string
  /** The password, shown once. */
  readonly password: string
  /** A disabled user can't log in with it. */
  readonly isActive: boolean
}

interface UserDeps {
  readonly entities: Entities<User>
  readonly passwords: Passwords
  readonly withLock: WithLock
  /**
   * The e-mail of the account that no other can replace, because it is the only one that may log in
   * with a password; '' for none.
   */
  readonly keptEmail?: string
  /** How long a temporary password is good. Default: a week. */
  readonly temporaryMs?: number
  readonly nowMs?: () => number
}

/** Every change checks its actor: an admin may change users below admin, a superadmin all. */
export interface Users {
  readonly get: (id: string) => User | null
  readonly findByEmail: (email: string) => User | null
  readonly list: () => readonly User[]
  /** Users read their own record, admins every one. @throws AppError forbidden, not_found */
  readonly read: (actor: Actor, id: string) => User
  /** @throws AppError forbidden, email_conflict, overloaded, validation_error */
  readonly create: (actor: Actor, input: UserInput) => Promise<User>
  /** @throws AppError forbidden, not_found, email_conflict, last_superadmin, validation_error */
  readonly patch: (actor: Actor, id: string, patch: UserPatch) => Promise<User>
  /** Ends the user's refresh tokens. @throws AppError forbidden, not_found, last_superadmin */
  readonly setRole: (actor: Actor, id: string, role: Role) => Promise<User>
  /** Ends the user's sessions. Users who change their own password stay logged in until their access token expires.
   * @throws AppError forbidden, not_found, validation_error, invalid_credentials */
  readonly setPassword: (actor: Actor, id: string, change: PasswordChange) => Promise<User>
  /**
   * Sets a temporary password for the operator of the machine, and ends the user's sessions.
   *
   * @throws AppError not_found
   */
  readonly resetPassword: (email: string) => Promise<PasswordReset>
  /** @throws AppError forbidden, not_found, last_superadmin */
  readonly remove: (actor: Actor, id: string) => Promise<void>
  readonly noteLogin: (id: string) => Promise<void>
  /** Creates a superadmin when there is no user.
   * @returns null when there is one; `generated` is the password to show once */
  readonly ensureFirstAdmin: (
    admin: Pick<UserInput, 'email' | 'isTemporary'> & { readonly password: string | null },
  ) => Promise<{ readonly user: User; readonly generated: string | null } | null>
}

const WEEK_MS = 7 * DAY_MS
export const USERS_LOCK = 'users'
export const USERS_LOCK_MS = 10_000

export function createUsers(deps: UserDeps): Users {
  const { entities, passwords, nowMs = Date.now } = deps
  const roster = createRoster(entities, nowMs)
  const untilMs = temporaryEnd(deps)
  // Unique e-mails and the last superadmin concern all users, so changes are serialised.
  const alone: Alone = (work) => deps.withLock(USERS_LOCK, USERS_LOCK_MS, work)
  return {
    ...createReads(entities, roster),
    ...createChanges(deps, roster, alone),
    resetPassword: async (text) => {
      const found = roster.findByEmail(text) ?? refuseMissing(text)
      refuseOutside(found, 'password')
      const { id } = found
      const password = generatePassword()
      const passwordHash = await passwords.hash(password)
      const { email, isActive } = await alone(() =>
        roster.change(id, (user) => ({
          ...endSessions(user, ''),
          passwordHash,
          temporaryUntilMs: untilMs(true),
        })),
      )
      return { email, password, isActive }
    },
    noteLogin: async (id) => {
      const lastLoginAtMs = nowMs()
      await entities.update(id, (user) => (user === null ? null : { ...user, lastLoginAtMs }))
    },
    ensureFirstAdmin: async ({ email, password, isTemporary }) => {
      if (entities.list().length > 0) return null
      const generated = password === null ? generatePassword() : null
      const passwordHash = await passwords.hash(password ?? generated ?? '')
      return alone(async () => {
        if (entities.list().length > 0) return null
        const credentials = { passwordHash, temporaryUntilMs: untilMs(isTemporary) }
        return { user: await roster.insert(email, 'superadmin', credentials), generated }
      })
    },
  }
}

/** When a password that is set now expires; null for a permanent one. */
const temporaryEnd =
  ({ temporaryMs = WEEK_MS, nowMs = Date.now }: UserDeps) =>
  (isTemporary = false): number | null =>
    isTemporary ? nowMs() + temporaryMs : null

type Alone = <T>(work: () => Promise<T>) => Promise<T>

interface Credentials {
  readonly passwordHash: string
  readonly temporaryUntilMs: number | null
  readonly createdBy?: string
}

interface Roster {
  readonly findByEmail: (email: string) => User | null
  /** @throws AppError email_conflict, validation_error */
  readonly insert: (email: string, role: Role, credentials: Credentials) => Promise<User>
  /** @throws AppError email_conflict */
  readonly refuseTaken: (email: string) => void
  /** @throws AppError not_found */
  readonly change: (id: string, how: (user: User) => User) => Promise<User>
}

function createRoster(entities: Entities<User>, nowMs: () => number): Roster {
  const findByEmail = (text: string): User | null => {
    const email = normalizeEmail(text)
    return entities.list().find((user) => user.email === email) ?? null
  }
  const refuseTaken = (email: string): void => {
    if (findByEmail(email) !== null) throw new AppError('email_conflict', 'the e-mail is taken')
  }
  return {
    findByEmail,
    refuseTaken,
    insert: async (text, role, credentials) => {
      const email = checkEmail(text)
      refuseTaken(email)
      const user: User = {
        id: randomUUID(),
        email,
        role,
        isActive: true,
        ...credentials,
        tokenEpoch: 0,
        createdAtMs: nowMs(),
        lastLoginAtMs: null,
      }
      await entities.put(user.id, user)
      return user
    },
    change: async (id, how) => {
      const changed = await entities.update(id, (user) => (user === null ? null : how(user)))
      return changed ?? refuseMissing(id)
    },
  }
}

const createReads = (
  entities: Entities<User>,
  { findByEmail }: Roster,
): Pick<Users, 'get' | 'findByEmail' | 'list' | 'read'> => ({
  get: (id) => entities.get(id),
  findByEmail,
  list: () => entities.list(),
  read: (actor, id) => {
    if (actor.userId !== id && !isAtLeast(actor.role, 'admin')) throw forbidden()
    return entities.get(id) ?? refuseMissing(id)
  },
})

type Changes = Pick<Users, 'create' | 'patch' | 'setRole' | 'setPassword' | 'remove'>

const ruledIn =
  (entities: Entities<User>) =>
  (actor: Actor, id: string): User => {
    const user = entities.get(id) ?? refuseMissing(id)
    refuseUnlessRules(actor, user.role)
    return user
  }

/** @returns the new e-mail, or the present one when none is given */
function newEmail(
  { refuseTaken }: Roster,
  { user, keptEmail }: { readonly user: User; readonly keptEmail: string },
  text = user.email,
): string {
  const email = checkEmail(text)
  if (email === user.email) return email
  if (user.email === keptEmail)
    throw new AppError('forbidden', 'PASSWORD_LOGIN_ONLY names the account by its e-mail')
  refuseOutside(user, 'e-mail')
  refuseTaken(email)
  return email
}

function createChanges(deps: UserDeps, roster: Roster, alone: Alone): Changes {
  const untilMs = temporaryEnd(deps)
  const { entities, passwords, keptEmail = '' } = deps
  const ruled = ruledIn(entities)
  return {
    create: async (actor, { email, password, role = 'viewer', isTemporary }) => {
      refuseUnlessRules(actor, role)
      checkEmail(email)
      await checkPassword(password, email)
      const passwordHash = await passwords.hash(password)
      const temporaryUntilMs = untilMs(isTemporary)
      const credentials = { passwordHash, temporaryUntilMs, createdBy: actor.userId }
      return alone(() => roster.insert(email, role, credentials))
    },
    patch: (actor, id, { email: text, isActive }) =>
      alone(async () => {
        const user = ruled(actor, id)
        const email = newEmail(roster, { user, keptEmail }, text)
        if (isActive === false) refuseLastSuperadmin(entities.list(), user, keptEmail)
        const ends = isActive === false && user.isActive
        return roster.change(id, (u) => ({
          ...(ends ? endSessions(u, '') : u),
          email,
          isActive: isActive ?? u.isActive,
        }))
      }),
    setRole: (actor, id, role) =>
      alone(async () => {
        if (actor.role !== 'superadmin') throw forbidden()
        const user = ruled(actor, id)
        if (user.role === role) return user
        refuseOutside(user, 'role')
        refuseLastSuperadmin(entities.list(), user, keptEmail)
        return roster.change(id, (u) => ({ ...endRefreshing(u), role }))
      }),
    setPassword: async (actor, id, { password, currentPassword, isTemporary }) => {
      const isOwn = actor.userId === id
      if (!isOwn && !isAtLeast(actor.role, 'admin')) throw forbidden()
      const user = isOwn ? (entities.get(id) ?? refuseMissing(id)) : ruled(actor, id)
      refuseOutside(user, 'password')
      await checkPassword(password, user.email)
      if (isOwn) await refuseWrongPassword(passwords, user, currentPassword)
      const passwordHash = await passwords.hash(password)
      return alone(async () => {
        if (!isOwn) ruled(actor, id)
        // Of two concurrent changes of a password, the second knows only the old one and is refused.
        else if (entities.get(id)?.passwordHash !== user.passwordHash) throw wrongPassword()
        const kept = isOwn ? (actor.family ?? '') : ''
        const given = { passwordHash, temporaryUntilMs: isOwn ? null : untilMs(isTemporary) }
        return roster.change(id, (u) => ({ ...endSessions(u, kept), ...given }))
      })
    },
    remove: (actor, id) =>
      alone(async () => {
        refuseLastSuperadmin(entities.list(), ruled(actor, id), keptEmail)
        await entities.remove(id)
      }),
  }
}
