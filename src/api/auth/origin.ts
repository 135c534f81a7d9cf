import type { HeaderBag } from '../../http/request.js'

/** Whether the page that makes a browser send a request may use the cookies of the user. */
export type MayUseCookies = (headers: HeaderBag) => boolean

/**
 * A browser names the page's origin with everything that changes something and with every WebSocket, and
 * newer ones say whether it is the service's own; a page can change neither. SameSite cookies alone are
 * not enough: a page of another port or of a sibling host is of the same site.
 *
 * @param allowed origins besides the service's own
 */
export function createOriginCheck(allowed: readonly string[]): MayUseCookies {
  return (headers) => {
    const origin = headers.first('origin')
    const site = headers.first('sec-fetch-site')
    if (site === 'same-origin' || site === 'none') return true
    // no browser: it has no user who could be led to a foreign page
    if (origin === undefined) return site === undefined
    return allowed.includes(origin) || isSame(origin, headers.first('host') ?? '')
  }
}

const isSame = (origin: string, host: string): boolean =>
  URL.canParse(origin) && new URL(origin).host === host.toLowerCase()
