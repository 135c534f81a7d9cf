import { JSON_TYPE } from './reply.js'
import type { UwsResponse } from './uws.js'

type Header = readonly [name: string, value: string]

/** Tell browsers to treat replies as data: not to sniff, frame, run or cache them. */
const DEFAULTS: readonly Header[] = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Referrer-Policy', 'no-referrer'],
  ['Cache-Control', 'no-store'],
]

/** Tells browsers that used HTTPS once to use only HTTPS for a year. */
const HTTPS_ONLY: Header = ['Strict-Transport-Security', 'max-age=31536000; includeSubDomains']

/** The headers that every reply has. */
export interface DefaultHeaders {
  /** Writes all headers of a JSON reply without headers of its own, in one call. */
  readonly writeJsonHead: (res: UwsResponse, requestId: string) => void
  /** Writes the default headers that the reply does not set itself. */
  readonly write: (res: UwsResponse, own: readonly Header[]) => void
}

/** @param https whether browsers use HTTPS, by way of a proxy */
export function createDefaultHeaders(https: boolean): DefaultHeaders {
  const defaults = https ? [...DEFAULTS, HTTPS_ONLY] : DEFAULTS
  const lines = defaults.map(([name, value]) => `${name}: ${value}`)
  // One string, which uWebSockets.js writes in one call, as the value of the first header.
  const [firstName, ...others] = lines.join('\r\n').split(': ')
  const firstValue = others.join(': ')
  const jsonHead = [JSON_TYPE, ...lines, 'X-Request-Id: '].join('\r\n')
  return {
    writeJsonHead: (res, requestId) => {
      res.writeHeader('Content-Type', jsonHead + requestId)
    },
    write: (res, own) => {
      if (!defaults.some(([name]) => hasHeader(own, name))) {
        res.writeHeader(firstName ?? '', firstValue)
        return
      }
      for (const [name, value] of defaults) if (!hasHeader(own, name)) res.writeHeader(name, value)
    },
  }
}

function hasHeader(headers: readonly Header[], name: string): boolean {
  for (const [own] of headers) {
    if (own.length === name.length && own.toLowerCase() === name.toLowerCase()) return true
  }
  return false
}
