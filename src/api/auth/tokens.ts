import { randomUUID } from 'node:crypto'
import { createSigner, createVerifier } from 'fast-jwt'
import { LRUCache } from 'lru-cache'
import { AppError } from '../../model/errors.js'
import { isRole, type Role } from '../../model/roles.js'

interface Claims {
  /** Id of the user. */
  readonly sub: string
  readonly role: Role
  /** Id of the token. */
  readonly jti: string
  /** Id of the login that the token belongs to. */
  readonly family: string
  /** Seconds since 1970. */
  readonly iat: number
  readonly exp: number
}

interface AccessClaims extends Claims {
  readonly type: 'access'
}

export interface RefreshClaims extends Claims {
  readonly type: 'refresh'
  /** The user's token epoch at login; a later epoch ends the family. */
  readonly epoch: number
}

interface TokenOptions {
  /** At least 32 characters. */
  readonly secret: string
  readonly accessSeconds: number
  readonly refreshSeconds: number
  readonly nowMs?: () => number
}

interface Grantee {
  readonly userId: string
  readonly role: Role
  readonly family: string
  /** The end of the session, after which no token is valid. */
  readonly endsAtMs?: number
}

export interface Tokens {
  readonly issueAccess: (grantee: Grantee) => string
  readonly issueRefresh: (
    grantee: Grantee & { readonly epoch: number; readonly jti: string },
  ) => string
  /** @throws AppError token_expired, or unauthorized for any other fault */
  readonly verifyAccess: (token: string) => AccessClaims
  /** @throws AppError invalid_refresh_token */
  readonly verifyRefresh: (token: string) => RefreshClaims
  readonly accessSeconds: number
  readonly refreshSeconds: number
}

/** Three parts in base64url. The last one is the canonical form of 32 bytes, because the decoder also accepts
 * signatures whose unused last bits differ. */
const COMPACT_JWT = /^[\w-]+\.[\w-]+\.[\w-]{42}[AEIMQUYcgkosw048]$/
/** The tokens issued here have about 400 characters. */
const MAX_TOKEN_CHARACTERS = 2_048
/**
 * Verified tokens are cached, because checking a signature costs as much as the rest of a cheap
 * request; an entry takes about 2 KB.
 */
const REMEMBERED_TOKENS = 4_096

/**
 * Signs and verifies HS256 tokens, synchronously, because a WebSocket upgrade must be decided synchronously.
 *
 * @throws RangeError when the secret is too short or a PEM file, which may be public
 */
export function createTokens(options: TokenOptions): Tokens {
  const { secret, accessSeconds, refreshSeconds, nowMs = Date.now } = options
  if (secret.length < 32) throw new RangeError('the token secret has fewer than 32 characters')
  if (secret.includes('-----BEGIN ')) throw new RangeError('the token secret is a PEM file')
  const key = Buffer.from(secret)
  const sign = createSigner<Record<string, unknown>>({ key, algorithm: 'HS256' })
  const decode = createDecode(key)

  const issue = (grantee: Grantee, lifetimeS: number, own: Record<string, unknown>): string => {
    const iat = Math.floor(nowMs() / 1000)
    const { userId: sub, role, family, endsAtMs = Infinity } = grantee
    const exp = Math.min(iat + lifetimeS, Math.floor(endsAtMs / 1000))
    return sign({ sub, role, family, jti: randomUUID(), ...own, iat, exp })
  }
  const isExpired = (claims: Claims): boolean => claims.exp * 1000 <= nowMs()
  // The cache holds verified signatures only; expiry and user are checked each time.
  const remembered = new LRUCache<string, AccessClaims>({ max: REMEMBERED_TOKENS })
  const decodeAccess = (token: string): AccessClaims => {
    const claims = decode(token)
    if (!isAccess(claims)) throw new AppError('unauthorized', 'the access token is not valid')
    remembered.set(token, claims)
    return claims
  }

  return {
    accessSeconds,
    refreshSeconds,
    issueAccess: (grantee) => issue(grantee, accessSeconds, { type: 'access' }),
    issueRefresh: (grantee) => {
      const { epoch, jti } = grantee
      return issue(grantee, refreshSeconds, { type: 'refresh', epoch, jti })
    },
    verifyAccess: (token) => {
      const claims = remembered.get(token) ?? decodeAccess(token)
      if (isExpired(claims)) throw new AppError('token_expired', 'the access token has expired')
      return claims
    },
    verifyRefresh: (token) => {
      const claims = decode(token)
      if (isRefresh(claims) && !isExpired(claims)) return claims
      throw new AppError('invalid_refresh_token', 'the refresh token is not valid')
    },
  }
}

/** @returns a function that decodes a token with a valid signature, and returns null for any other text */
function createDecode(key: Buffer): (token: string) => unknown {
  // The caller checks the expiry, which has an error of its own and an injected clock.
  const verify = createVerifier({ key, algorithms: ['HS256'], ignoreExpiration: true })
  return (token) => {
    if (token.length > MAX_TOKEN_CHARACTERS || !COMPACT_JWT.test(token)) return null
    try {
      const claims: unknown = verify(token)
      return claims
    } catch {
      return null
    }
  }
}

type Unchecked = { readonly [Name in keyof RefreshClaims]?: unknown }

const hasClaims = (claims: unknown): claims is Unchecked => {
  if (typeof claims !== 'object' || claims === null) return false
  const { sub, role, jti, family, iat, exp }: Unchecked = claims
  return (
    [sub, jti, family].every((text) => typeof text === 'string' && text !== '') &&
    [iat, exp].every(Number.isSafeInteger) &&
    isRole(role)
  )
}

const isAccess = (claims: unknown): claims is AccessClaims =>
  hasClaims(claims) && claims.type === 'access'

const isRefresh = (claims: unknown): claims is RefreshClaims =>
  hasClaims(claims) && claims.type === 'refresh' && Number.isSafeInteger(claims.epoch)
