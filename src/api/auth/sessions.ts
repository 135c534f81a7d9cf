import { randomUUID } from 'node:crypto'
import { AppError } from '../../model/errors.js'
import { requiredActionOf, type RequiredAction } from './required-action.js'
import type { Client, Families, Family } from './families.js'
import type { Passwords } from './passwords.js'
import { isAtLeast, type Role } from '../../model/roles.js'
import type { SecondFactors } from './second-factor.js'
import type { RefreshClaims, Tokens } from './tokens.js'
import type { User } from './user.js'
import type { Users } from './users.js'

interface SessionDeps {
  readonly users: Pick<Users, 'get' | 'findByEmail' | 'noteLogin'>
  readonly families: Families
  readonly tokens: Tokens
  readonly passwords: Pick<Passwords, 'verify'>
  readonly secondFactors: Pick<SecondFactors, 'spend'>
  /** The longest duration of a session, however often it is refreshed. */
  readonly sessionSeconds: number
  /** The least role that needs a second factor; null for none. */
  readonly secondFactorFrom?: Role | null
  /** The only account that may log in with a password; '' for every local one. */
  readonly onlyPasswordOf?: string
  readonly nowMs?: () => number
}

export interface Grant {
  readonly userId: string
  readonly accessToken: string
  readonly refreshToken: string
}

/** The user of a request. */
export interface Principal {
  readonly userId: string
  /** The current role: that at login, but above manager no higher than the stored one. */
  readonly role: Role
  /** The role at login. */
  readonly tokenRole: Role
  readonly family: string
  /** The step that the user must take before anything else. */
  readonly requiredAction: RequiredAction | null
  /** Expiry of the access token. */
  readonly expiresAtMs: number
  /** Whether the caller is an API token instead of a user. */
  readonly isToken: boolean
  /** The sources that the caller may read; null for all. */
  readonly sources: readonly string[] | null
}

export interface Sessions {
  /** @throws AppError invalid_credentials, account_disabled, password_expired, second_factor_required, invalid_code, code_reused */
  readonly login: (email: string, password: string, how?: Login) => Promise<Grant>
  /** Begins a session of a user whom a provider has authenticated. */
  readonly begin: (user: User, how: Begin) => Promise<Grant>
  /** Exchanges a refresh token for new tokens; it becomes invalid.
   * @throws AppError invalid_refresh_token, invalid_user */
  readonly refresh: (refreshToken: string, how?: Refresh) => Promise<Grant>
  /** Ends the session of each valid token; other texts are ignored. */
  readonly logout: (tokens: readonly string[]) => Promise<void>
  /** @throws AppError unauthorized, token_expired */
  readonly authenticate: (accessToken: string) => Principal
  /** Whether the session is valid and no action is required of its user. */
  readonly isAlive: (session: Session) => boolean
  /** The valid sessions of a user. */
  readonly list: (userId: string) => readonly Family[]
  /** Ends one session. @throws AppError not_found */
  readonly end: (userId: string, id: string) => Promise<void>
  /** Ends all sessions of the user but this one. @returns their number */
  readonly endOthers: (session: Session) => Promise<number>
}

interface Login {
  readonly client?: Client
  /** The code of the second factor, for users who have one. */
  readonly code?: string | undefined
}

interface Begin {
  readonly client: Client
  /** The longest duration of the session. */
  readonly seconds: number
}

interface Refresh {
  readonly client?: Client
  /** Called with the user of a refresh token that was used before. */
  readonly onReuse?: (userId: string) => void
}

export interface Session {
  readonly userId: string
  readonly family: string
}

/**
 * Logins, and their families of tokens.
 * none ─login─▶ family with a current refresh token ─refresh─▶ the same with the next one
 * family ─logout, reuse of an older token, expiry, new session epoch of the user─▶ ended, access tokens too
 * family ─new token epoch of the user─▶ not refreshed any more
 */
export function createSessions(deps: SessionDeps): Sessions {
  const { users, families, tokens, secondFactors, sessionSeconds, nowMs = Date.now } = deps
  /** The ids of the refresh tokens that are being exchanged. */
  const trading = new Set<string>()

  const lifetimeMs = tokens.refreshSeconds * 1000
  const grant = (user: User, { id, jti, expiresAtMs, endsAtMs = expiresAtMs }: Family): Grant => {
    const grantee = { userId: user.id, role: user.role, family: id, endsAtMs }
    return {
      userId: user.id,
      accessToken: tokens.issueAccess(grantee),
      refreshToken: tokens.issueRefresh({ ...grantee, epoch: user.tokenEpoch, jti }),
    }
  }

  const begin = async (user: User, seconds: number, client?: Client): Promise<Grant> => {
    const createdAtMs = nowMs()
    const endsAtMs = createdAtMs + seconds * 1000
    const expiresAtMs = Math.min(createdAtMs + lifetimeMs, endsAtMs)
    const family = newFamily(user, { createdAtMs, expiresAtMs, endsAtMs }, client)
    // Written together, so that one insert can contain both.
    await Promise.all([families.begin(family), users.noteLogin(user.id)])
    return grant(user, family)
  }
  const trade = async (claims: RefreshClaims, user: User, how: Refresh): Promise<Grant> => {
    const [id, from, to] = [claims.family, claims.jti, randomUUID()]
    const family = await families.rotate({ id, from, to, lifetimeMs, client: how.client })
    if (family === 'reused') how.onReuse?.(user.id)
    if (typeof family === 'string') throw invalidRefreshToken()
    return grant(user, family)
  }
  return {
    login: async (email, password, { client, code } = {}) => {
      const user = await checkedUser(deps, email, password)
      await secondFactors.spend(user.id, code)
      return await begin(user, sessionSeconds, client)
    },
    begin: (user, { client, seconds }) => begin(user, seconds, client),
    refresh: async (refreshToken, how = {}) => {
      const claims = tokens.verifyRefresh(refreshToken)
      const user = users.get(claims.sub)
      if (user === null || !user.isActive)
        throw new AppError('invalid_user', 'the user is missing or inactive')
      if (user.tokenEpoch !== claims.epoch) throw invalidRefreshToken()
      // Two tabs that refresh at the same time are no theft: one succeeds, and the family continues.
      if (trading.has(claims.jti)) throw invalidRefreshToken()
      trading.add(claims.jti)
      try {
        return await trade(claims, user, how)
      } finally {
        trading.delete(claims.jti)
      }
    },
    logout: async (given) => {
      const ids = given.map((token) => familyOf(tokens, token)).filter((id) => id !== null)
      for (const id of new Set(ids)) await families.end(id)
    },
    ...createChecks(deps),
    ...createOwnSessions(deps),
  }
}

function createChecks(deps: SessionDeps): Pick<Sessions, 'authenticate' | 'isAlive'> {
  const { tokens, secondFactorFrom = null } = deps
  return {
    authenticate: (accessToken) => {
      const { sub: userId, role: tokenRole, family, exp } = tokens.verifyAccess(accessToken)
      const user = aliveUser(deps, { userId, family })
      if (user === null)
        throw new AppError('unauthorized', 'the session has ended, or the user is inactive')
      const role = heldRole(tokenRole, user.role)
      const requiredAction = requiredActionOf(user, secondFactorFrom)
      const unlimited = { isToken: false, sources: null }
      return {
        userId,
        role,
        tokenRole,
        family,
        requiredAction,
        expiresAtMs: exp * 1000,
        ...unlimited,
      }
    },
    isAlive: (session) => {
      const user = aliveUser(deps, session)
      return user !== null && requiredActionOf(user, secondFactorFrom) === null
    },
  }
}

function createOwnSessions(deps: SessionDeps): Pick<Sessions, 'list' | 'end' | 'endOthers'> {
  const { families } = deps
  const list = (userId: string): readonly Family[] =>
    families.listOf(userId).filter(({ id }) => aliveUser(deps, { userId, family: id }) !== null)
  return {
    list,
    end: async (userId, id) => {
      if (!list(userId).some((family) => family.id === id)) throw noSuchSession(id)
      await families.end(id)
    },
    endOthers: async ({ userId, family }) => {
      const others = list(userId).filter(({ id }) => id !== family)
      await Promise.all(others.map(({ id }) => families.end(id)))
      return others.length
    },
  }
}

/** @throws AppError invalid_credentials, password_login_off, account_disabled */
async function checkedUser(deps: SessionDeps, email: string, password: string): Promise<User> {
  const { users, passwords } = deps
  const found = users.findByEmail(email)
  if (!(await passwords.verify(found?.passwordHash ?? null, password)) || found === null)
    throw invalidCredentials()
  // The user may have changed during the check of the password.
  const user = users.get(found.id)
  if (user?.passwordHash !== found.passwordHash) throw invalidCredentials()
  refusePassword(user, deps)
  if (!user.isActive) throw new AppError('account_disabled', 'the account is disabled')
  if ((user.temporaryUntilMs ?? Infinity) <= (deps.nowMs ?? Date.now)())
    throw new AppError('password_expired', 'the temporary password has expired')
  return user
}

/** Only a caller who knows the password gets this error, so that nobody learns which accounts have one. */
function refusePassword({ email }: User, { onlyPasswordOf = '' }: SessionDeps): void {
  if (onlyPasswordOf !== '' && email !== onlyPasswordOf)
    throw new AppError('password_login_off', 'log in at the provider: passwords are turned off')
}

const newFamily = (
  user: User,
  times: Pick<Family, 'createdAtMs' | 'expiresAtMs' | 'endsAtMs'>,
  client?: Client,
): Family => ({
  id: randomUUID(),
  userId: user.id,
  jti: randomUUID(),
  ...times,
  epoch: user.sessionEpoch ?? 0,
  ...(client === undefined ? {} : { client }),
})

/** @returns the user of a valid session, else null */
function aliveUser({ users, families }: SessionDeps, session: Session): User | null {
  const [user, family] = [users.get(session.userId), families.get(session.family)]
  if (user?.isActive !== true || family === null) return null
  const isOfThisEpoch = (family.epoch ?? 0) === (user.sessionEpoch ?? 0)
  return isOfThisEpoch || family.id === user.keptSession ? user : null
}

/**
 * A change of role takes effect with the next login. Admin rights that were taken away end at once,
 * because their holder could restore them.
 */
function heldRole(atLogin: Role, stored: Role): Role {
  if (isAtLeast(stored, atLogin) || !isAtLeast(atLogin, 'admin')) return atLogin
  return isAtLeast(stored, 'manager') ? stored : 'manager'
}

function familyOf(tokens: Tokens, token: string): string | null {
  for (const verify of [tokens.verifyRefresh, tokens.verifyAccess]) {
    try {
      return verify(token).family
    } catch {
      // A token of the other type, expired or foreign: there is nothing to end.
    }
  }
  return null
}

const noSuchSession = (id: string): AppError =>
  new AppError('not_found', 'you have no such session', { details: { session_id: id } })

const invalidCredentials = (): AppError =>
  new AppError('invalid_credentials', 'wrong e-mail or password')

const invalidRefreshToken = (): AppError =>
  new AppError('invalid_refresh_token', 'the refresh token is not valid')
