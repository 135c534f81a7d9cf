import { ERRORS, toEnvelope } from '../model/errors.js'
import type { AppError } from '../model/errors.js'
import { formatCookie } from './cookies.js'
import type { Cookie } from './cookies.js'

/** What a handler answers with; nothing of the socket. At most one of `body` and `json`. */
export interface Reply {
  /** 200..599 */
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly cookies?: readonly Cookie[]
  readonly body?: string | Uint8Array
  /** sent as application/json */
  readonly json?: unknown
  /** ends the connection after the reply */
  readonly close?: boolean
}

/** A reply in the form in which it goes out. */
export interface WireReply {
  readonly status: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | Uint8Array
  readonly close: boolean
}

const JSON_TYPE = 'application/json; charset=utf-8'

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  301: 'Moved Permanently',
  302: 'Found',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// the library writes a value as it is: a line break in one would start a header of the attacker's
const UNSAFE = /[^\t\x20-\x7e]/g

/** @throws Error when a header name is not a token, or the JSON cannot be written */
export function toWire(reply: Reply): WireReply {
  const headers: [string, string][] = []
  const body = reply.json === undefined ? (reply.body ?? '') : JSON.stringify(reply.json)
  if (reply.json !== undefined) headers.push(['Content-Type', JSON_TYPE])
  for (const name in reply.headers) {
    if (!TOKEN.test(name)) throw new Error(`bug: header name ${JSON.stringify(name)}`)
    headers.push([name, toHeaderValue(reply.headers[name] ?? '')])
  }
  for (const cookie of reply.cookies ?? []) headers.push(['Set-Cookie', formatCookie(cookie)])
  const status = `${reply.status} ${REASONS[reply.status] ?? 'Status'}`
  return { status, headers, body, close: reply.close ?? false }
}

/** Line breaks and other control characters, and what is not ASCII, are taken out. */
export function toHeaderValue(text: string): string {
  return text.replace(UNSAFE, '')
}

/** Seconds after which a client may try again when the error does not say. */
const DEFAULT_RETRY_S = 1

export function toErrorReply(error: AppError): Reply {
  const { status, code } = error
  const headers: Record<string, string> = {}
  const isBusy = ERRORS[code].retry && status !== 408
  const retryAfterS = error.retryAfterS ?? (isBusy ? DEFAULT_RETRY_S : null)
  if (retryAfterS !== null) headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfterS)))
  if (code === 'unauthorized' || code === 'token_expired') headers['WWW-Authenticate'] = 'Bearer'
  return { status, json: toEnvelope(error), headers }
}
