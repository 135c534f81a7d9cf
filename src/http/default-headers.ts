import { JSON_TYPE } from './reply.js'
import type { UwsResponse } from './uws.js'

/** Browsers must treat replies as data: not sniff, frame, run or cache them. */
const DEFAULTS = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Referrer-Policy', 'no-referrer'],
  ['Cache-Control', 'no-store'],
] as const

/** All of them as one string, which uWebSockets.js writes in one call. */
const ALL_IN_ONE = DEFAULTS.map(([name, value], i) => (i === 0 ? value : `${name}: ${value}`)).join(
  '\r\n',
)

const JSON_HEAD = [
  JSON_TYPE,
  ...DEFAULTS.map(([name, value]) => `${name}: ${value}`),
  'X-Request-Id: ',
].join('\r\n')

/** Writes all headers of a JSON reply without headers of its own, in one call. */
export function writeJsonHead(res: UwsResponse, requestId: string): void {
  res.writeHeader('Content-Type', JSON_HEAD + requestId)
}

/** Writes the default headers that the reply does not set itself. */
export function writeDefaultHeaders(
  res: UwsResponse,
  own: readonly (readonly [name: string, value: string])[],
): void {
  if (!DEFAULTS.some(([name]) => hasHeader(own, name))) {
    res.writeHeader(DEFAULTS[0][0], ALL_IN_ONE)
    return
  }
  for (const [name, value] of DEFAULTS) if (!hasHeader(own, name)) res.writeHeader(name, value)
}

function hasHeader(
  headers: readonly (readonly [name: string, value: string])[],
  name: string,
): boolean {
  for (const [own] of headers) {
    if (own.length === name.length && own.toLowerCase() === name.toLowerCase()) return true
  }
  return false
}
