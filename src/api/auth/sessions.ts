import { randomUUID } from 'node:crypto'
import { AppError } from '../../model/errors.js'
import type { Families } from './families.js'
import type { Passwords } from './passwords.js'
import type { Role } from '../../model/roles.js'
import type { RefreshClaims, Tokens } from './tokens.js'
import type { User } from './user.js'
import type { Users } from './users.js'

interface SessionDeps {
  readonly users: Pick<Users, 'get' | 'findByEmail' | 'noteLogin'>
  readonly families: Families
  readonly tokens: Tokens
  readonly passwords: Pick<Passwords, 'verify'>
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
  /** The role at login; a change takes effect with the next login. */
  readonly role: Role
  readonly family: string
  /** Expiry of the access token. */
  readonly expiresAtMs: number
}

export interface Sessions {
  /** @throws AppError invalid_credentials, account_disabled */
  readonly login: (email: string, password: string) => Promise<Grant>
  /** Exchanges a refresh token for new tokens; it becomes invalid.
   * @throws AppError invalid_refresh_token, invalid_user */
  readonly refresh: (refreshToken: string) => Promise<Grant>
  /** Ends the family of each valid token; other texts are ignored. */
  readonly logout: (tokens: readonly string[]) => Promise<void>
  /** @throws AppError unauthorized, token_expired */
  readonly authenticate: (accessToken: string) => Principal
}

/**
 * Logins, and their families of refresh tokens.
 * none ─login─▶ family with a current refresh token ─refresh─▶ the same with the next one
 * family ─logout, reuse of an older token, expiry, new epoch of the user─▶ ended
 */
export function createSessions(deps: SessionDeps): Sessions {
  const { users, families, tokens, passwords, nowMs = Date.now } = deps
  /** Ids of the refresh tokens that are being exchanged. */
  const trading = new Set<string>()

  const expiry = (): number => nowMs() + tokens.refreshSeconds * 1000
  const grant = (user: User, family: string, jti: string): Grant => {
    const grantee = { userId: user.id, role: user.role, family }
    return {
      userId: user.id,
      accessToken: tokens.issueAccess(grantee),
      refreshToken: tokens.issueRefresh({ ...grantee, epoch: user.tokenEpoch, jti }),
    }
  }

  const trade = async (claims: RefreshClaims, user: User): Promise<Grant> => {
    const [id, from, to] = [claims.family, claims.jti, randomUUID()]
    const outcome = await families.rotate({ id, from, to, expiresAtMs: expiry() })
    if (outcome !== 'rotated') throw invalidRefreshToken()
    return grant(user, id, to)
  }

  return {
    login: async (email, password) => {
      const found = users.findByEmail(email)
      if (!(await passwords.verify(found?.passwordHash ?? null, password)) || found === null) {
        throw invalidCredentials()
      }
      // The user may have changed during the check of the password.
      const user = users.get(found.id)
      if (user?.passwordHash !== found.passwordHash) throw invalidCredentials()
      if (!user.isActive) throw new AppError('account_disabled', 'the account is disabled')
      const [id, jti] = [randomUUID(), randomUUID()]
      const family = { id, userId: user.id, jti, expiresAtMs: expiry() }
      // Together, so that one insert can write both.
      await Promise.all([families.begin(family), users.noteLogin(user.id)])
      return grant(user, id, jti)
    },
    refresh: async (refreshToken) => {
      const claims = tokens.verifyRefresh(refreshToken)
      const user = users.get(claims.sub)
      if (user === null || !user.isActive) {
        throw new AppError('invalid_user', 'the user is missing or inactive')
      }
      if (user.tokenEpoch !== claims.epoch) throw invalidRefreshToken()
      // Two tabs that refresh at the same time are no theft: one wins, and the family continues.
      if (trading.has(claims.jti)) throw invalidRefreshToken()
      trading.add(claims.jti)
      try {
        return await trade(claims, user)
      } finally {
        trading.delete(claims.jti)
      }
    },
    logout: async (given) => {
      const ids = given.map((token) => familyOf(tokens, token)).filter((id) => id !== null)
      for (const id of new Set(ids)) await families.end(id)
    },
    authenticate: (accessToken) => {
      const { sub, role, family, exp } = tokens.verifyAccess(accessToken)
      const user = users.get(sub)
      if (user?.isActive !== true)
        throw new AppError('unauthorized', 'the user is missing or inactive')
      return { userId: sub, role, family, expiresAtMs: exp * 1000 }
    },
  }
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

const invalidCredentials = (): AppError =>
  new AppError('invalid_credentials', 'wrong e-mail or password')

const invalidRefreshToken = (): AppError =>
  new AppError('invalid_refresh_token', 'the refresh token is not valid')
