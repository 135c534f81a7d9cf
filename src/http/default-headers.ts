import { JSON_TYPE } from './reply.js'
import type { UwsResponse } from './uws.js'

/** Browsers are told to take replies as data: nothing is sniffed, framed, run or cached. */
const DEFAULTS = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Referrer-Policy', 'no-referrer'],
  ['Cache-Control', 'no-store'],
] as const

/** The same as the value of the first: the library writes it as it is, in one call. */
const ALL_IN_ONE = DEFAULTS.map(([name, value], i) => (i === 0 ? value : `${name}: ${value}`)).join(
  '\r\n',
)

const JSON_HEAD = [
  JSON_TYPE,
  ...DEFAULTS.map(([name, value]) => `${name}: ${value}`),
  'X-Request-Id: ',
].join('\r\n')

/** All headers of a reply of JSON that brings none itself, in one call. @param requestId our own */
export function writeJsonHead(res: UwsResponse, requestId: string): void {
  res.writeHeader('Content-Type', JSON_HEAD + requestId)
}

/** Writes those that the reply does not bring itself. */
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
