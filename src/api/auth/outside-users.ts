import { randomUUID } from 'node:crypto'
import type { WithLock } from '../../coordination/lock.js'
import { AppError } from '../../model/errors.js'
import type { Role } from '../../model/roles.js'
import type { Log } from '../../telemetry/log.js'
import type { Entities } from './entities.js'
import type { Identity } from './oidc.js'
import { checkEmail, endSessions, refuseLastSuperadmin, type User } from './user.js'
import { USERS_LOCK, USERS_LOCK_MS } from './users.js'

interface OutsideUserDeps {
  readonly entities: Entities<User>
  readonly withLock: WithLock
  /** The e-mail of the account that keeps its password even if a provider claims it; '' for none. */
  readonly keptEmail: string
  readonly log: Pick<Log, 'warn'>
  readonly nowMs?: () => number
}

/** Users who log in at a provider, which decides who they are and which role they have. */
export interface OutsideUsers {
  /**
   * Finds or creates the user of an identity, and updates role and e-mail. A change of role ends
   * earlier sessions.
   *
   * @throws AppError role_missing, which ends the user's sessions too, account_disabled,
   * email_conflict, overloaded, oidc_failed
   */
  readonly admit: (identity: Identity) => Promise<User>
}

export function createOutsideUsers(deps: OutsideUserDeps): OutsideUsers {
  const { entities, withLock, log } = deps
  const find = ({ issuer, subject }: Identity): User | null =>
    entities
      .list()
      .find(({ identity }) => identity?.issuer === issuer && identity.subject === subject) ?? null
  const change = async (id: string, how: (user: User) => User): Promise<User> => {
    const changed = await entities.update(id, (user) => (user === null ? null : how(user)))
    if (changed === null) throw new AppError('oidc_failed', 'the user was deleted meanwhile')
    return changed
  }
  const admit = async (identity: Identity): Promise<User> => {
    const { role } = identity
    const known = find(identity)
    if (role === null) {
      if (known !== null) await change(known.id, (user) => endSessions(user, ''))
      throw new AppError('role_missing', 'the provider gives no role here')
    }
    if (known !== null) {
      refuseDisabled(known)
      const email = freeEmail(deps, identity, known)
      return await change(known.id, (user) => ({ ...withRole(user, role), email }))
    }
    const email = emailOf(identity)
    const local = entities.list().find((user) => user.email === email)
    if (local === undefined && email === deps.keptEmail) throw conflict()
    if (local === undefined) return await insert(deps, { identity, role, email })
    refuseUnlinkable(deps, local, identity)
    return await change(local.id, (user) => linked(user, identity, role))
  }
  return {
    admit: async (identity) => {
      try {
        // E-mails are unique, so changes of users are serialised.
        return await withLock(USERS_LOCK, USERS_LOCK_MS, () => admit(identity))
      } catch (error) {
        if (error instanceof AppError)
          log.warn(toFacts(identity, error), 'a login at a provider was refused')
        throw error
      }
    },
  }
}

const MOST_GROUPS = 50

/** What an operator needs to find a wrong setting of the provider. */
const toFacts = ({ provider, subject, groups }: Identity, { code, message }: AppError) => ({
  provider: provider.name,
  subject,
  code,
  message,
  claim: provider.roleClaim,
  groups: groups.slice(0, MOST_GROUPS),
})

const withRole = (user: User, role: Role): User =>
  user.role === role ? user : { ...endSessions(user, ''), role }

const toStored = ({ provider, issuer, subject }: Identity): NonNullable<User['identity']> => ({
  provider: provider.name,
  issuer,
  subject,
})

/** Removes the password and second factor, because the provider is responsible for both. */
function linked(user: User, identity: Identity, role: Role): User {
  const { secondFactor: _, pendingFactor: __, ...kept } = endSessions(user, '')
  return { ...kept, identity: toStored(identity), role, passwordHash: '', temporaryUntilMs: null }
}

interface Insert {
  readonly identity: Identity
  readonly role: Role
  readonly email: string
}

async function insert(
  { entities, nowMs = Date.now }: OutsideUserDeps,
  { identity, role, email }: Insert,
): Promise<User> {
  const user: User = {
    id: randomUUID(),
    email,
    role,
    isActive: true,
    passwordHash: '',
    identity: toStored(identity),
    tokenEpoch: 0,
    createdAtMs: nowMs(),
    lastLoginAtMs: null,
  }
  await entities.put(user.id, user)
  return user
}

function emailOf({ email }: Identity): string {
  if (email === null)
    throw new AppError('oidc_failed', 'the provider tells no verified e-mail: check the scopes')
  return checkEmail(email)
}

/** The provider's e-mail, or the previous one if the provider has none or it belongs to another user. */
function freeEmail(
  { entities, keptEmail }: OutsideUserDeps,
  identity: Identity,
  known: User,
): string {
  if (identity.email === null) return known.email
  const email = checkEmail(identity.email)
  const isTaken = entities.list().some((user) => user.email === email && user.id !== known.id)
  return isTaken || email === keptEmail ? known.email : email
}

const conflict = (): AppError => new AppError('email_conflict', 'another user has the e-mail')

function refuseDisabled({ isActive }: User): void {
  if (!isActive) throw new AppError('account_disabled', 'the account is disabled')
}

/**
 * Refuses to link accounts that belong to another provider, and the last local superadmin: whoever
 * can set e-mails at a provider must not become such a user.
 */
function refuseUnlinkable(
  { entities, keptEmail }: OutsideUserDeps,
  local: User,
  { provider, isVerified }: Identity,
): void {
  const isFree = local.identity === undefined && local.email !== keptEmail
  if (!isFree || !provider.linkByEmail || !isVerified) throw conflict()
  refuseDisabled(local)
  refuseLastSuperadmin(entities.list(), local, keptEmail)
}
