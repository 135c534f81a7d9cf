import { AppError } from '../model/errors.js'
import { whileAny, type WhileAny } from '../lib/while-any.js'
import type { RequestBody } from './body.js'
import type { DefaultHeaders } from './default-headers.js'
import { JSON_ONLY, toErrorReply, toWire } from './reply.js'
import type { Reply, WireReply } from './reply.js'
import type { ServerLog } from './request.js'
import { endSource, StreamedBody } from './streamed-body.js'
import type { UwsResponse } from './uws.js'
import type { RequestOutcome } from '../telemetry/metrics.js'
import type { UnreadReplies } from './unread-replies.js'

export interface ExchangeHost {
  readonly log: ServerLog
  readonly inFlight: ExchangeList
  readonly headers: DefaultHeaders
  readonly bodyTimeoutMs: number
  readonly handlerTimeoutMs: number
  readonly stallTimeoutMs: number
  readonly unread: UnreadReplies
  readonly observe: ((outcome: RequestOutcome) => void) | null
  /** While the server stops, every reply closes its connection. */
  isDraining: boolean
  readonly turn: TurnRequests
}

/** The most requests that are answered synchronously in one iteration of the event loop. */
const PROMPT_REQUESTS = 100

/** Counts the requests of one iteration of the event loop. */
export class TurnRequests {
  #count = 0

  /** @returns the number of the next request, from 1 on */
  next(): number {
    if (this.#count === 0) setImmediate(() => (this.#count = 0))
    this.#count++
    return this.#count
  }
}

/** The open exchanges, unordered. Each stores its index, because a Set takes 3 % of a small request (bench/NOTES.md). */
export class ExchangeList {
  readonly #all: Exchange[] = []
  /** One timer for all requests; a timer for each costs more than the rest of a small request. */
  readonly #expiry: WhileAny

  /** @param everyMs how often deadlines are checked */
  constructor(everyMs: number) {
    this.#expiry = whileAny({
      everyMs,
      any: () => this.size > 0,
      work: () => this.#expire(performance.now()),
    })
  }

  get size(): number {
    return this.#all.length
  }

  add(exchange: Exchange): void {
    exchange.place = this.#all.length
    this.#all.push(exchange)
    this.#expiry.begin()
  }

  delete(exchange: Exchange): void {
    const last = this.#all.pop()
    if (last === undefined || last === exchange) return
    this.#all[exchange.place] = last
    last.place = exchange.place
  }

  /** Iterates from the end, because an exchange that ends is replaced by the last one. */
  #expire(nowMs: number): void {
    for (let place = this.#all.length - 1; place >= 0; place--) this.#all[place]?.expire(nowMs)
  }

  close(): void {
    this.#expiry.end()
  }
}

/** A larger reply is sent in chunks as the client reads it; a client that stalls is disconnected. */
const SINGLE_WRITE_BYTES = 65_536

const asBytes = (body: string | Uint8Array): Uint8Array =>
  typeof body === 'string' ? Buffer.from(body) : body

type Phase = 'reading' | 'handling' | 'sending' | 'done'

/**
 * One request and its reply. It always ends: with the reply, when the client disconnects, or at a deadline.
 * Nothing here throws into uWebSockets.js, which would end the process.
 *
 * reading ─body complete─▶ handling ─reply─▶ sending ─flushed─▶ done;  any ─abort or deadline─▶ done
 */
export class Exchange {
  readonly requestId: string
  method = ''
  routeId: string | null = null
  /** Headers of this reply only, for example CORS. */
  extraHeaders: readonly (readonly [name: string, value: string])[] = []
  /** Replaces the server's deadline for this route. */
  handlerTimeoutMs: number
  /** Replaces the form of errors for this request. */
  toErrorReply: (error: AppError) => Reply = toErrorReply
  reader: RequestBody | null = null
  /** Index in the list of open exchanges. */
  place = 0
  readonly #res: UwsResponse
  readonly #host: ExchangeHost
  readonly #startedMs = performance.now()
  #mustWait: boolean
  #phase: Phase = 'reading'
  #dueMs: number
  #controller: AbortController | null = null
  /** The body that is streamed. */
  #body: StreamedBody | null = null

  constructor(res: UwsResponse, host: ExchangeHost, requestId: string) {
    this.#res = res
    this.#host = host
    this.requestId = requestId
    this.handlerTimeoutMs = host.handlerTimeoutMs
    this.#mustWait = host.turn.next() > PROMPT_REQUESTS
    this.#dueMs = this.#startedMs + host.bodyTimeoutMs
    // This must be set before anything throws: a handler that returns without it ends the process.
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

  /** Starts the deadline of the handler, when the request is complete. */
  startHandling(): void {
    if (this.#phase !== 'reading') return
    this.#phase = 'handling'
    this.#dueMs = (this.reader?.completeAtMs ?? this.#startedMs) + this.handlerTimeoutMs
  }

  /** Called when a part of a streamed body has arrived, or reading is paused. */
  progressed(): void {
    if (this.#phase !== 'reading') return
    const { bodyTimeoutMs } = this.#host
    const isWaiting = this.reader?.isPaused === true
    this.#dueMs = performance.now() + (isWaiting ? this.handlerTimeoutMs : bodyTimeoutMs)
  }

  handled(): void {
    this.reader?.reuse()
  }

  /**
   * Sends the reply; does nothing when the exchange has ended. After many requests in one iteration
   * of the event loop the reply waits until the current read is processed: if that read contains
   * another request, uWebSockets.js drops the connection. Otherwise a client that sends requests
   * without a pause would be served for ever, and nobody else.
   */
  reply(reply: Reply): void {
    if (this.isOpen && this.#mustWait) {
      this.#mustWait = false
      setImmediate(() => this.reply(reply))
      return
    }
    if (!this.isOpen) {
      if (reply.stream !== undefined) endSource(reply.stream)
      return
    }
    let wire: WireReply
    try {
      wire = toWire(reply)
    } catch (error) {
      this.fail(error)
      return
    }
    this.#send(wire, reply.status)
  }

  /** Replies with the error. An error that is no AppError is logged and becomes internal_error. */
  fail(error: unknown): void {
    if (!this.isOpen) {
      this.#logLate(error)
      return
    }
    const known = error instanceof AppError ? error : this.#toInternal(error)
    if (known === error && known.status >= 500) {
      this.#host.log.warn({ err: error, ...this.#names() }, 'request failed')
    }
    this.reply(this.toErrorReply(known))
  }

  /**
   * Refuses a request with ambiguous framing. The reply waits until the current read is processed:
   * if that read contains more bytes, uWebSockets.js drops the connection and parses none of them
   * as a request.
   */
  refuse(error: AppError): void {
    this.#mustWait = true
    this.reply({ ...toErrorReply(error), close: true })
  }

  /** Ends the exchange after its deadline. */
  expire(nowMs: number): void {
    // The body may be complete while the head is still being checked.
    if (this.reader?.isComplete === true) this.startHandling()
    if (nowMs < this.#dueMs) return
    switch (this.#phase) {
      case 'reading': {
        const isWaiting = this.reader?.isPaused === true
        const error = isWaiting ? this.#handlerTimeout() : this.#bodyTimeout()
        this.reply({ ...this.toErrorReply(error), close: true })
        return
      }
      case 'handling':
        this.#host.log.warn(this.#names(), 'no reply before the deadline')
        this.reply(this.toErrorReply(this.#handlerTimeout()))
        this.#controller?.abort()
        return
      case 'sending':
        this.disconnect()
        return
      case 'done':
    }
  }

  #send(wire: WireReply, status: number): void {
    const mustClose = wire.close || this.reader?.mustClose === true
    // A large reply is sent in chunks even while stopping, because closing loses what is only buffered.
    const large = wire.body.length > SINGLE_WRITE_BYTES && !mustClose && this.method !== 'HEAD'
    const close = mustClose || this.#host.isDraining
    this.#phase = 'sending'
    if (wire.stream !== null) {
      this.#sendStream(wire, wire.stream, status)
      return
    }
    this.#res.cork(() => {
      this.#writeHead(wire)
      if (large) this.#sendLarge(wire.body, status)
      else this.#sendSmall(wire.body, status, close)
    })
  }

  #writeHead(wire: WireReply): void {
    const res = this.#res
    res.writeStatus(wire.status)
    if (wire.headers === JSON_ONLY) {
      this.#host.headers.writeJsonHead(res, this.requestId)
      for (const [name, value] of this.extraHeaders) res.writeHeader(name, value)
      return
    }
    this.#host.headers.write(res, wire.headers)
    res.writeHeader('X-Request-Id', this.requestId)
    for (const [name, value] of this.extraHeaders) res.writeHeader(name, value)
    for (const [name, value] of wire.headers) res.writeHeader(name, value)
  }

  #sendSmall(body: string | Uint8Array, status: number, close: boolean): void {
    const isBodiless = status === 204 || status === 304
    if (this.method !== 'HEAD' && !isBodiless) {
      this.#res.end(body, close)
    } else {
      // In some builds endWithoutBody(n) ends the process on HEAD; without n it is safe.
      if (!isBodiless) this.#res.writeHeader('Content-Length', String(Buffer.byteLength(body)))
      this.#res.endWithoutBody()
    }
    this.#finish(status)
  }

  #sendLarge(text: string | Uint8Array, status: number): void {
    const res = this.#res
    const { stallTimeoutMs, unread } = this.#host
    const body = asBytes(text)
    // Bytes are those of a file, which all its readers share, so only the bytes of texts are counted.
    const own = typeof text === 'string' ? body.byteLength : 0
    const wait = (): void => {
      this.#dueMs = performance.now() + stallTimeoutMs
      if (own > 0) unread.wait(this, own)
    }
    const [, isDone] = res.tryEnd(body, body.byteLength)
    if (isDone) {
      this.#finish(status)
      return
    }
    res.onWritable((offset) => {
      const [ok, ended] = res.tryEnd(body.subarray(offset), body.byteLength)
      if (ended) this.#finish(status)
      else wait()
      return ok
    })
    wait()
  }

  /** Disconnects a client that no longer reads. */
  disconnect(): void {
    this.#host.log.info(this.#names(), 'a client reads no more of a reply')
    this.#res.close()
  }

  #sendStream(wire: WireReply, source: AsyncIterator<Uint8Array>, status: number): void {
    if (this.method === 'HEAD') {
      endSource(source)
      this.#res.cork(() => {
        this.#writeHead(wire)
        this.#res.endWithoutBody()
      })
      this.#finish(status)
      return
    }
    const body = new StreamedBody(this.#res, source, (isWaiting) => {
      const { stallTimeoutMs } = this.#host
      this.#dueMs = isWaiting ? performance.now() + stallTimeoutMs : Number.POSITIVE_INFINITY
    })
    this.#body = body
    this.#res.cork(() => this.#writeHead(wire))
    void this.#streamed(body, status)
  }

  async #streamed(body: StreamedBody, status: number): Promise<void> {
    try {
      if (await body.send()) this.#finish(status)
    } catch (error) {
      if (this.#phase === 'done') {
        this.#logLate(error)
        return
      }
      this.#host.log.warn({ err: error, ...this.#names() }, 'a reply broke off')
      this.#res.close()
    }
  }

  #finish(status: number): void {
    if (this.#phase === 'done') return
    const mayWork = this.isOpen || this.#body !== null
    this.#phase = 'done'
    this.#body?.end()
    this.#host.inFlight.delete(this)
    this.#host.unread.end(this)
    this.reader?.release()
    if (mayWork) this.#controller?.abort()
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
