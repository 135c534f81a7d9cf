export interface Cookie {
  /** A token of RFC 6265. */
  readonly name: string
  readonly value: string
  /** Absent: for the browser session. 0 deletes the cookie. */
  readonly maxAgeS?: number
  /** Default: `/`. */
  readonly path?: string
  readonly httpOnly?: boolean
  readonly secure?: boolean
  readonly sameSite?: 'Strict' | 'Lax' | 'None'
}

/**
 * Parses a Cookie header. The first of equal names wins, because browsers send the most specific path first.
 *
 * @throws never; an invalid pair is left out
 */
export function parseCookies(header: string): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=')
    if (at === -1) continue
    const name = pair.slice(0, at).trim()
    if (name === '' || cookies.has(name)) continue
    cookies.set(name, decodeValue(pair.slice(at + 1).trim()))
  }
  return cookies
}

function decodeValue(raw: string): string {
  const text = raw.startsWith('"') && raw.endsWith('"') && raw.length > 1 ? raw.slice(1, -1) : raw
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const PATH = /^\/[\x20-\x3a\x3c-\x7e]*$/

/** @throws Error when the name or the path is not valid in a header */
export function formatCookie(cookie: Cookie): string {
  const path = cookie.path ?? '/'
  if (!TOKEN.test(cookie.name)) throw new Error(`bug: cookie name ${cookie.name} is not a token`)
  if (!PATH.test(path)) throw new Error(`bug: cookie path ${path} is not a path`)
  let text = `${cookie.name}=${encodeURIComponent(cookie.value)}; Path=${path}`
  if (cookie.maxAgeS !== undefined) text += `; Max-Age=${Math.trunc(cookie.maxAgeS)}`
  if (cookie.httpOnly === true) text += '; HttpOnly'
  if (cookie.secure === true) text += '; Secure'
  if (cookie.sameSite !== undefined) text += `; SameSite=${cookie.sameSite}`
  return text
}
