import type { Cookie } from '../../http/cookies.js'
import { AppError } from '../../model/errors.js'
import type { Grant } from './sessions.js'

export const ACCESS_COOKIE = 'ACCESS_TOKEN'
export const REFRESH_COOKIE = 'REFRESH_TOKEN'

export interface CookieSettings {
  readonly secure: boolean
  readonly sameSite: 'Strict' | 'Lax' | 'None'
  readonly accessSeconds: number
  readonly refreshSeconds: number
}

/** @returns the cookies that carry a grant; for null, those that delete it */
export function authCookies(
  grant: Pick<Grant, 'accessToken' | 'refreshToken'> | null,
  settings: CookieSettings,
): readonly Cookie[] {
  const { secure, sameSite, accessSeconds, refreshSeconds } = settings
  const flags = { httpOnly: true, secure, sameSite } as const
  return [
    {
      name: ACCESS_COOKIE,
      value: grant?.accessToken ?? '',
      path: '/',
      maxAgeS: grant === null ? 0 : accessSeconds,
      ...flags,
    },
    {
      name: REFRESH_COOKIE,
      value: grant?.refreshToken ?? '',
      // Browsers send it to refresh and logout only.
      path: '/api/auth',
      maxAgeS: grant === null ? 0 : refreshSeconds,
      ...flags,
    },
  ]
}

interface Credentials {
  /** The Authorization header, '' without one. */
  readonly authorization: string
  /** The cookie ACCESS_TOKEN, '' without one; read only without a bearer token. */
  readonly cookie: () => string
}

interface AccessToken {
  readonly token: string
  readonly via: 'bearer' | 'cookie'
}

/**
 * Finds the access token of a request. Browsers send cookies by themselves, so `via` tells whether the
 * origin must be checked. A bearer token wins over the cookie; other schemes are ignored.
 *
 * @throws AppError unauthorized without a token and for a malformed bearer header
 */
export function accessTokenOf({ authorization, cookie }: Credentials): AccessToken {
  const token = BEARER.exec(authorization)?.[1]
  if (token !== undefined) return { token, via: 'bearer' }
  if (/^bearer(?:\s|$)/i.test(authorization))
    throw new AppError('unauthorized', 'the Authorization header is not `Bearer <token>`')
  const sent = cookie()
  if (sent !== '') return { token: sent, via: 'cookie' }
  throw new AppError('unauthorized', 'an access token is required')
}

const BEARER = /^bearer +([\w.~+/=-]+) *$/i
