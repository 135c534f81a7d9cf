import { AppError } from '../model/errors.js'
import type { BodyReader } from './body.js'
import { writeDefaultHeaders, writeJsonHead } from './default-headers.js'
import { JSON_ONLY, toErrorReply, toWire } from './reply.js'
import type { Reply, WireReply } from './reply.js'
import type { ServerLog } from './request.js'
import type { UwsResponse } from './uws.js'

/** What a finished request is reported as. */
export interface RequestOutcome {
  /** null when no route was found */
  readonly routeId: string | null
  readonly method: string
  /** 0 when the client left before a reply */
  readonly status: number
  readonly durationMs: number
}

/** What all exchanges of one server share. */
export interface ExchangeHost {
  readonly log: ServerLog
  readonly inFlight: ExchangeList
  readonly bodyTimeoutMs: number
  readonly handlerTimeoutMs: number
  readonly stallTimeoutMs: number
  readonly observe: ((outcome: RequestOutcome) => void) | null
  /** while stopping, every reply ends its connection */
  isDraining: boolean
}

/** Open exchanges in no order. Each knows its place: a Set's hashes cost 3 % of a small request. */
export class ExchangeList {
  readonly #all: Exchange[] = []

  get size(): number {
    return this.#all.length
  }

  add(exchange: Exchange): void {
    exchange.place = this.#all.length
    this.#all.push(exchange)
  }

  delete(exchange: Exchange): void {
    const last = this.#all.pop()
    if (last === undefined || last === exchange) return
    this.#all[exchange.place] = last
    last.place = exchange.place
  }

  /** From the end on: the last one takes the place of one that ends. */
  expire(nowMs: number): void {
    for (let place = this.#all.length - 1; place >= 0; place--) this.#all[place]?.expire(nowMs)
  }
}

/** Above this a reply is sent in pieces as the client reads it, and a client that stalls is cut off. */
const SINGLE_WRITE_BYTES = 65_536

type Phase = 'reading' | 'handling' | 'sending' | 'done'

/**
 * One request and its reply. Whatever happens, it ends: by the reply, the client's leaving, or a
 * deadline. Nothing here throws into the library, which would end the process.
 *
 * reading ─body complete─▶ handling ─reply─▶ sending ─flushed─▶ done;  any ─abort or deadline─▶ done
 */
export class Exchange {
  readonly requestId: string
  method = ''
  routeId: string | null = null
  /** for this request only, e.g. CORS */
  extraHeaders: readonly (readonly [name: string, value: string])[] = []
  /** overrides the server's for this route; ms */
  handlerTimeoutMs: number
  reader: BodyReader | null = null
  /** in the list of open exchanges */
  place = 0
  readonly #res: UwsResponse
  readonly #host: ExchangeHost
  readonly #startedMs = performance.now()
  #phase: Phase = 'reading'
  #dueMs: number
  #controller: AbortController | null = null

  constructor(res: UwsResponse, host: ExchangeHost, requestId: string) {
    this.#res = res
    this.#host = host
    this.requestId = requestId
    this.handlerTimeoutMs = host.handlerTimeoutMs
    this.#dueMs = this.#startedMs + host.bodyTimeoutMs
    // before anything that could throw: a handler that returns without it ends the process
    res.onAborted(() => this.#finish(0))
    host.inFlight.add(this)
  }

  get isOpen(): boolean {
    return this.#phase === 'reading' || this.#phase === 'handling'
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (!this.isOpen) this.#controller.abort()
    }
    return this.#controller.signal
  }

  /** All of the request is there: since then the deadline for an answer counts, whoever is still asked. */
  startHandling(): void {
    if (this.#phase !== 'reading') return
    this.#phase = 'handling'
    this.#dueMs = (this.reader?.completeAtMs ?? this.#startedMs) + this.handlerTimeoutMs
  }

  /** The handler is done with the request. */
  handled(): void {
    this.reader?.reuse()
  }

  /** Sends the reply; ignored when the exchange is over. */
  reply(reply: Reply): void {
    if (!this.isOpen) return
    let wire: WireReply
    try {
      wire = toWire(reply)
    } catch (error) {
      this.fail(error)
      return
    }
    this.#send(wire, reply.status)
  }

  /** Answers with the error's envelope; what is no AppError is logged and becomes internal_error. */
  fail(error: unknown): void {
    if (!this.isOpen) {
      this.#logLate(error)
      return
    }
    const known = error instanceof AppError ? error : this.#toInternal(error)
    if (known === error && known.status >= 500) {
      this.#host.log.warn({ err: error, ...this.#names() }, 'request failed')
    }
    this.reply(toErrorReply(known))
  }

  /**
   * Refuses a request whose framing cannot be trusted. The reply waits until the read that brought
   * the request is over: if more came in that read, the library drops the connection, and none of
   * it is taken for another request.
   */
  refuse(error: AppError): void {
    setImmediate(() => this.reply({ ...toErrorReply(error), close: true }))
  }

  /** Ends the exchange when its deadline has passed. */
  expire(nowMs: number): void {
    // the body may be there while the head is still being looked at
    if (this.reader?.isComplete === true) this.startHandling()
    if (nowMs < this.#dueMs) return
    switch (this.#phase) {
      case 'reading':
        this.reply({ ...toErrorReply(this.#bodyTimeout()), close: true })
        return
      case 'handling':
        this.#host.log.warn(this.#names(), 'no reply before the deadline')
        this.reply(toErrorReply(this.#handlerTimeout()))
        this.#controller?.abort()
        return
      case 'sending':
        this.#res.close()
        return
      case 'done':
    }
  }

  #send(wire: WireReply, status: number): void {
    const mustClose = wire.close || this.reader?.mustClose === true
    // while stopping, a large reply still goes out in pieces: what is merely buffered would be lost
    const large = wire.body.length > SINGLE_WRITE_BYTES && !mustClose && this.method !== 'HEAD'
    const close = mustClose || this.#host.isDraining
    this.#phase = 'sending'
    this.#res.cork(() => {
      this.#writeHead(wire)
      if (large) this.#sendLarge(Buffer.from(wire.body), status)
      else this.#sendSmall(wire.body, status, close)
    })
  }

  #writeHead(wire: WireReply): void {
    const res = this.#res
    res.writeStatus(wire.status)
    if (wire.headers === JSON_ONLY) {
      writeJsonHead(res, this.requestId)
      for (const [name, value] of this.extraHeaders) res.writeHeader(name, value)
      return
    }
    writeDefaultHeaders(res, wire.headers)
    res.writeHeader('X-Request-Id', this.requestId)
    for (const [name, value] of this.extraHeaders) res.writeHeader(name, value)
    for (const [name, value] of wire.headers) res.writeHeader(name, value)
  }

  #sendSmall(body: string | Uint8Array, status: number, close: boolean): void {
    const isBodiless = status === 204 || status === 304
    if (this.method !== 'HEAD' && !isBodiless) {
      this.#res.end(body, close)
    } else {
      // endWithoutBody(n) ends the process on HEAD in some builds; without n it is safe
      if (!isBodiless) this.#res.writeHeader('Content-Length', String(Buffer.byteLength(body)))
      this.#res.endWithoutBody()
    }
    this.#finish(status)
  }

  #sendLarge(body: Uint8Array, status: number): void {
    const res = this.#res
    const [, isDone] = res.tryEnd(body, body.byteLength)
    if (isDone) {
      this.#finish(status)
      return
    }
    this.#dueMs = performance.now() + this.#host.stallTimeoutMs
    res.onWritable((offset) => {
      this.#dueMs = performance.now() + this.#host.stallTimeoutMs
      const [ok, ended] = res.tryEnd(body.subarray(offset), body.byteLength)
      if (ended) this.#finish(status)
      return ok
    })
  }

  #finish(status: number): void {
    if (this.#phase === 'done') return
    const wasOpen = this.isOpen
    this.#phase = 'done'
    this.#host.inFlight.delete(this)
    this.reader?.release()
    if (wasOpen) this.#controller?.abort()
    this.#observe(status)
  }

  #observe(status: number): void {
    const { observe, log } = this.#host
    if (observe === null) return
    const { routeId, method } = this
    try {
      observe({ routeId, method, status, durationMs: performance.now() - this.#startedMs })
    } catch (error) {
      log.error({ err: error }, 'the request observer failed')
    }
  }

  #toInternal(error: unknown): AppError {
    this.#host.log.error({ err: error, ...this.#names() }, 'request failed unexpectedly')
    const details = { request_id: this.requestId }
    return new AppError('internal_error', 'internal error', { details, cause: error })
  }

  #logLate(error: unknown): void {
    const isExpected = error instanceof AppError
    const isAbort = error instanceof Error && error.name === 'AbortError'
    if (isExpected || isAbort) return
    this.#host.log.warn({ err: error, ...this.#names() }, 'request failed after its end')
  }

  #bodyTimeout(): AppError {
    const details = { timeout_ms: this.#host.bodyTimeoutMs }
    return new AppError('request_timeout', 'the request body did not arrive in time', { details })
  }

  #handlerTimeout(): AppError {
    const details = { dependency: 'service', timeout_ms: this.handlerTimeoutMs }
    return new AppError('dependency_unavailable', 'no answer before the deadline', { details })
  }

  #names(): object {
    return { request_id: this.requestId, route: this.routeId }
  }
}
