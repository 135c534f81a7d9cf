import type { HeaderBag } from '../../http/request.js'

/** Whether the page from which a browser sends a request may use the user's cookies. */
export type MayUseCookies = (headers: HeaderBag) => boolean

/**
 * Browsers send Origin with every request that changes something and with every WebSocket, and newer ones
 * Sec-Fetch-Site; pages can change neither. SameSite cookies alone do not suffice, because a page on another
 * port or a sibling host is of the same site.
 *
 * @param allowed origins in addition to the service's own
 */
export function createOriginCheck(allowed: readonly string[]): MayUseCookies {
  return (headers) => {
    const origin = headers.first('origin')
    const site = headers.first('sec-fetch-site')
    if (site === 'same-origin' || site === 'none') return true
    // A client that sends neither header is no browser, so no page can have caused the request.
    if (origin === undefined) return site === undefined
    return allowed.includes(origin) || isSame(origin, headers.first('host') ?? '')
  }
}

function isSame(origin: string, host: string): boolean {
  try {
    // URL.canParse of Node 20 is wrong about some texts once it was optimised.
    return new URL(origin).host === host.toLowerCase()
  } catch {
    return false
  }
}
