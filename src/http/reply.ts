import { ERRORS, toEnvelope } from '../model/errors.js'
import type { AppError } from '../model/errors.js'
import { formatCookie } from './cookies.js'
import type { Cookie } from './cookies.js'

/** The reply of a handler; at most one of `body`, `json`, `jsonText` and `stream` is set. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly cookies?: readonly Cookie[]
  readonly body?: string | Uint8Array
  /** Serialised and sent as application/json. */
  readonly json?: unknown
  /** Sent unchanged as application/json. */
  readonly jsonText?: string
  /**
   * Streamed as the client reads it. When the source fails or the client stalls, the connection is
   * closed before the end of the body, so that the client notices. `return` of the iterator is
   * called at the end in any case.
   */
  readonly stream?: AsyncIterator<Uint8Array>
  /** Closes the connection after the reply. */
  readonly close?: boolean
}

type HeaderList = readonly (readonly [name: string, value: string])[]

/** A serialised reply. */
export interface WireReply {
  readonly status: string
  readonly headers: HeaderList
  readonly body: string | Uint8Array
  readonly stream: AsyncIterator<Uint8Array> | null
  readonly close: boolean
}

export const JSON_TYPE = 'application/json; charset=utf-8'

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
// A line break in a value would start another header, and uWebSockets.js does not check values.
const UNSAFE = /[^\t\x20-\x7e]/g

const STATUS_LINES: ReadonlyMap<number, string> = new Map(
  Object.entries(REASONS).map(([status, reason]) => [Number(status), `${status} ${reason}`]),
)
export const JSON_ONLY: HeaderList = [['Content-Type', JSON_TYPE]]
const NO_HEADERS: HeaderList = []

/** @throws Error when a header name is not a token or the JSON cannot be serialised */
export function toWire(reply: Reply): WireReply {
  const text = reply.json === undefined ? reply.jsonText : JSON.stringify(reply.json)
  return {
    status: STATUS_LINES.get(reply.status) ?? `${reply.status} Status`,
    headers: toHeaders(reply, text === undefined ? NO_HEADERS : JSON_ONLY),
    body: text ?? reply.body ?? '',
    stream: reply.stream ?? null,
    close: reply.close ?? false,
  }
}

function toHeaders({ headers, cookies }: Reply, first: HeaderList): HeaderList {
  let all: [string, string][] | null = null
  for (const name in headers) {
    if (!TOKEN.test(name)) throw new Error(`bug: header name ${JSON.stringify(name)}`)
    all ??= first.map(([known, value]) => [known, value])
    all.push([name, toHeaderValue(headers[name] ?? '')])
  }
  if (cookies === undefined || cookies.length === 0) return all ?? first
  all ??= first.map(([known, value]) => [known, value])
  for (const cookie of cookies) all.push(['Set-Cookie', formatCookie(cookie)])
  return all
}

/** Removes control characters, line breaks among them, and everything that is not ASCII. */
export function toHeaderValue(text: string): string {
  return text.replace(UNSAFE, '')
}

/** Retry-After of errors that name none. */
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
