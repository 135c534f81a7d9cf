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

interface AuthCookie {
  readonly name: string
  readonly value: string
  /** 0 deletes the cookie */
  readonly maxAgeS: number
  readonly path: string
  readonly httpOnly: true
  readonly secure: boolean
  readonly sameSite: 'Strict' | 'Lax' | 'None'
}

/** The cookies that carry a grant, or, with null, delete it. */
export function authCookies(
  grant: Pick<Grant, 'accessToken' | 'refreshToken'> | null,
  settings: CookieSettings,
): readonly AuthCookie[] {
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
      // sent to refresh and logout only
      path: '/api/auth',
      maxAgeS: grant === null ? 0 : refreshSeconds,
      ...flags,
    },
  ]
}

interface Credentials {
  /** the Authorization header, '' when there is none */
  readonly authorization: string
  /** value of the ACCESS_TOKEN cookie, '' when there is none; looked at only without a bearer token */
  readonly cookie: () => string
}

interface AccessToken {
  readonly token: string
  readonly via: 'bearer' | 'cookie'
}

/**
 * Picks the access token of a request, and says where it came from: a cookie is sent by browsers on
 * their own, so its origin matters. A bearer token wins over the cookie, so that what a client
 * says expressly counts; other schemes are a proxy's business.
 *
 * @throws AppError unauthorized when there is none, or the bearer header is malformed
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
