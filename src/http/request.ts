import { AppError } from '../model/errors.js'
import { parseCookies } from './cookies.js'
import type { UwsRequest } from './uws.js'

/** The log levels that the server uses; a pino logger has them. */
export interface ServerLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** A request without its body. Everything is copied, so it stays valid after an await. */
export interface RequestHead {
  /** Upper case. HEAD stays HEAD although the GET route serves it. */
  readonly method: string
  /** As sent: not decoded, without the query. */
  readonly path: string
  /** Decoded path parameters by name. */
  readonly params: Readonly<Record<string, string>>
  /** As sent, without the `?`. */
  readonly queryText: string
  readonly query: URLSearchParams
  readonly headers: HeaderBag
  readonly cookies: ReadonlyMap<string, string>
  /** The client's address: that of the socket, or the one that a trusted proxy reports. */
  readonly ip: string
  readonly requestId: string
  /** Aborted when the client disconnects or the deadline passes. */
  readonly signal: AbortSignal
  /** Whether the client has disconnected or got its reply. Costs less than the signal. */
  readonly isOver: boolean
  readonly log: ServerLog
}

/** `body` is valid until the handler has finished. */
export interface HttpRequest extends RequestHead {
  readonly body: Uint8Array
}

/** Headers in arrival order. A request has few, so a linear scan is faster than a Map. */
export class HeaderBag {
  readonly #names: string[] = []
  readonly #values: string[] = []
  #bytes = 0

  static from(req: UwsRequest): HeaderBag {
    const bag = new HeaderBag()
    req.forEach((name, value) => bag.add(name, value))
    return bag
  }

  add(name: string, value: string): void {
    this.#names.push(name)
    this.#values.push(value)
    this.#bytes += name.length + value.length + 4
  }

  /** Length of all names and values with their separators. */
  get bytes(): number {
    return this.#bytes
  }

  /** @param name lower case */
  first(name: string): string | undefined {
    const at = this.#names.indexOf(name)
    return at === -1 ? undefined : this.#values[at]
  }

  /** @param name lower case */
  all(name: string): readonly string[] {
    if (!this.#names.includes(name)) return NONE
    return this.#values.filter((_, i) => this.#names[i] === name)
  }

  /** @param name lower case */
  count(name: string): number {
    let n = 0
    for (const known of this.#names) if (known === name) n++
    return n
  }
}

const NONE: readonly string[] = []

interface HeadFields {
  readonly method: string
  readonly path: string
  readonly queryText: string
  readonly headers: HeaderBag
  readonly params: Readonly<Record<string, string>>
  readonly ip: () => string
  readonly requestId: string
  readonly log: ServerLog
  readonly signal: () => AbortSignal
  readonly isOver: () => boolean
}

/** Address, query, cookies and signal are computed on first use; most ingest requests need none of them. */
export class Request implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly queryText: string
  readonly headers: HeaderBag
  readonly requestId: string
  readonly log: ServerLog
  body: Uint8Array
  readonly #findIp: () => string
  readonly #signal: () => AbortSignal
  readonly #isOver: () => boolean
  #ip: string | null = null
  #query: URLSearchParams | null = null
  #cookies: ReadonlyMap<string, string> | null = null

  constructor(parts: HeadFields) {
    this.method = parts.method
    this.path = parts.path
    this.params = parts.params
    this.queryText = parts.queryText
    this.headers = parts.headers
    this.requestId = parts.requestId
    this.log = parts.log
    this.body = NO_BODY
    this.#findIp = parts.ip
    this.#signal = parts.signal
    this.#isOver = parts.isOver
  }

  get ip(): string {
    return (this.#ip ??= this.#findIp())
  }

  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this.queryText))
  }

  get cookies(): ReadonlyMap<string, string> {
    // HTTP/2 proxies split Cookie into several headers.
    return (this.#cookies ??= parseCookies(this.headers.all('cookie').join('; ')))
  }

  get signal(): AbortSignal {
    return this.#signal()
  }

  get isOver(): boolean {
    return this.#isOver()
  }
}

const NO_BODY = new Uint8Array(0)

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'invalid'; readonly reason: string }

const LENGTH = /^\d{1,15}$/

/**
 * Determines how the body is delimited, and refuses every head that another HTTP implementation
 * could interpret differently. uWebSockets.js takes the first of two lengths and accepts
 * `xchunked`, which allows request smuggling past a proxy (RFC 9112, section 6.3).
 */
export function readFraming(headers: HeaderBag): Framing {
  if (headers.count('host') !== 1) return invalid('a request has exactly one Host header')
  const length = headers.first('content-length')
  const coding = headers.first('transfer-encoding')
  if (coding !== undefined) {
    if (length !== undefined) return invalid('both Content-Length and Transfer-Encoding')
    if (headers.count('transfer-encoding') > 1) return invalid('more than one Transfer-Encoding')
    if (coding.toLowerCase() !== 'chunked') return invalid('Transfer-Encoding is not chunked')
    return { kind: 'chunked' }
  }
  if (length === undefined) return { kind: 'none' }
  if (headers.count('content-length') > 1) return invalid('more than one Content-Length')
  if (!LENGTH.test(length)) return invalid('Content-Length is not a number')
  const bytes = Number(length)
  return bytes === 0 ? { kind: 'none' } : { kind: 'length', bytes }
}

const invalid = (reason: string): Framing => ({ kind: 'invalid', reason })

/**
 * Decodes one path segment.
 *
 * @throws AppError bad_request on broken percent-encoding, NUL, or bytes that are not UTF-8
 */
export function decodeSegment(raw: string): string {
  const text = raw.includes('%') ? decodePercent(raw) : raw
  if (text.includes('\0') || text.includes('\ufffd')) {
    throw new AppError('bad_request', 'the path holds a NUL or invalid UTF-8')
  }
  return text
}

function decodePercent(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch (cause) {
    throw new AppError('bad_request', 'the path holds broken percent-encoding', { cause })
  }
}
