import type { HeaderBag } from './request.js'

/** Origins whose pages may read replies and send cookies. */
export interface CorsOptions {
  /** Exact origins such as `https://dashboard.example`. CORS allows no wildcard with cookies. */
  readonly origins: readonly string[]
}

type HeaderList = readonly (readonly [name: string, value: string])[]

export interface Cors {
  /** Headers of every reply to this request. */
  replyHeaders(headers: HeaderBag): HeaderList
  /** Headers of the reply to a preflight; empty for other requests and other origins. */
  preflightHeaders(headers: HeaderBag, allow: string): HeaderList
}

const NONE: HeaderList = []
const VARY: HeaderList = [['Vary', 'Origin']]
const PREFLIGHT_SECONDS = '600'
const REQUEST_HEADERS = 'Authorization, Content-Type, X-Request-Id'
const EXPOSED_HEADERS = 'Link, Retry-After, X-Cold-Before, X-Missing-Shards, X-Request-Id'

/** Without origins no CORS header is sent. */
export function createCors(options: CorsOptions): Cors {
  const origins = new Set(options.origins)
  if (origins.size === 0) return { replyHeaders: () => NONE, preflightHeaders: () => NONE }

  const replyHeaders = (headers: HeaderBag): HeaderList => {
    const origin = headers.first('origin')
    if (origin === undefined || !origins.has(origin)) return VARY
    return [
      ...VARY,
      ['Access-Control-Allow-Origin', origin],
      ['Access-Control-Allow-Credentials', 'true'],
      ['Access-Control-Expose-Headers', EXPOSED_HEADERS],
    ]
  }

  const preflightHeaders = (headers: HeaderBag, allow: string): HeaderList => {
    const origin = headers.first('origin')
    const isPreflight = headers.first('access-control-request-method') !== undefined
    if (!isPreflight || origin === undefined || !origins.has(origin)) return NONE
    return [
      ['Access-Control-Allow-Methods', allow],
      ['Access-Control-Allow-Headers', REQUEST_HEADERS],
      ['Access-Control-Max-Age', PREFLIGHT_SECONDS],
    ]
  }

  return { replyHeaders, preflightHeaders }
}
