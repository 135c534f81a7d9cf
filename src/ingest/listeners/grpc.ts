import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { Duplex } from 'node:stream'
import { createServer } from 'node:tls'

import { areTinyChunks, tinyChunks } from '../../http/body.js'
import { HeaderBag } from '../../http/request.js'
import { ByteBuffer } from '../../lib/byte-buffer.js'
import { AppError } from '../../model/errors.js'
import type { Log } from '../../telemetry/log.js'
import type { ProtocolFormat } from '../block.js'
import {
  namedSource,
  takeBody,
  withKey,
  type IngestServices,
  type SenderHead,
} from '../protocols/ingest-route.js'
import {
  GRPC_BYTES,
  GRPC_METHODS,
  grpcError,
  readGrpcMessage,
  writeGrpcMessage,
} from '../protocols/otlp/grpc.js'
import { exportResponse } from '../protocols/otlp/response.js'
import { overloaded } from '../refusals.js'
import type { SenderKey } from '../submission.js'
import type { Certificate } from './certificate.js'
import type { Peer, Session } from './session.js'

/** The longest time until a request is complete. */
const REQUEST_MS = 60_000
/** The most concurrent requests of a connection. */
const MAX_STREAMS = 100
/**
 * The flow-control window: the bytes that a client may send of a request, or of all requests of a
 * connection, before they are read.
 */
const STREAM_WINDOW = 256 * 1024
const CONNECTION_WINDOW = 1024 * 1024
const HEADER_BYTES = 16 * 1024
const HANDSHAKE_MS = 10_000
const STEP_MS = 25
const SETTINGS = {
  maxConcurrentStreams: MAX_STREAMS,
  initialWindowSize: STREAM_WINDOW,
  maxHeaderListSize: HEADER_BYTES,
}
/** The first byte of a TLS connection; one of HTTP/2 is a letter. */
const TLS_HANDSHAKE = 0x16

export interface GrpcDeps {
  readonly services: IngestServices
  readonly log: Log
  /** Null when the port has no TLS. */
  readonly certificate: Pick<Certificate, 'current'> | null
}

/** OTLP over gRPC: unary requests over HTTP/2, with or without TLS on the same port. */
export class GrpcServer {
  readonly #deps: GrpcDeps
  #open = 0

  constructor(deps: GrpcDeps) {
    this.#deps = deps
  }

  openSession(peer: Peer): Session {
    return new GrpcSession(peer, (pipe, isTls) => this.#start(pipe, isTls))
  }

  /** Waits until the requests in flight are answered. */
  async settle(deadlineMs: number): Promise<void> {
    for (const untilMs = Date.now() + deadlineMs; this.#open > 0 && Date.now() < untilMs;)
      await sleep(STEP_MS)
  }

  #start(pipe: Pipe, isTls: boolean): void {
    if (!isTls) return this.#serve(pipe, pipe)
    const { certificate } = this.#deps
    if (certificate === null) return void pipe.destroy()
    // Sessions get a TLS server of their own, because only a server reports the end of a handshake over a stream.
    const options = {
      ...certificate.current(),
      ALPNProtocols: ['h2'],
      handshakeTimeout: HANDSHAKE_MS,
    }
    const server = createServer(options, (socket) => this.#serve(pipe, socket))
    server.on('tlsClientError', (error) => this.#fail(pipe, error))
    server.emit('connection', pipe)
  }

  #serve(pipe: Pipe, socket: Duplex): void {
    const session = performServerHandshake(socket, { settings: SETTINGS })
    pipe.session = session
    session.on('error', (error) => this.#fail(pipe, error))
    session.once('close', () => pipe.destroy())
    session.once('connect', () => {
      // A connection that does not speak HTTP/2 has been closed by now.
      if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW)
    })
    session.on('stream', (stream, headers) => {
      this.#open += 1
      stream.on('error', (error) => this.#note(error))
      stream.once('close', () => (this.#open -= 1))
      void this.#answer(stream, headers, pipe)
    })
  }

  #fail(pipe: Pipe, error: unknown): void {
    this.#note(error)
    pipe.destroy()
  }

  #note(error: unknown): void {
    this.#deps.log.debug({ err: error }, 'a connection to OTLP_GRPC_PORT failed')
  }

  async #answer(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    pipe: Pipe,
  ): Promise<void> {
    try {
      respond(stream, writeGrpcMessage(await this.#take(stream, headers, pipe)))
    } catch (error) {
      if (!(error instanceof AppError))
        this.#deps.log.error({ err: error }, 'a request of gRPC failed')
      refuse(stream, error instanceof AppError ? error : failed())
    }
  }

  /** @returns the response to a request, whose records are durable by then */
  async #take(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    pipe: Pipe,
  ): Promise<Uint8Array> {
    const format = GRPC_METHODS.get(String(headers[':path']))
    if (format === undefined || headers[':method'] !== 'POST')
      throw new AppError('route_not_found', 'no such method; there are those of OTLP')
    const head = headOf(headers, pipe.address)
    const { services } = this.#deps
    const key = await withKey(head, services, (found) => found)
    const source = namedSource(head)
    if (!services.hasRoom(0, key.id)) throw overloaded()
    const body = await readBody(stream, pipe)
    if (!services.hasRoom(body.length, key.id)) throw overloaded()
    return await this.#store({ stream, head, key, source, body, format })
  }

  async #store({ stream, head, key, source, body, format }: Received): Promise<Uint8Array> {
    const encoding = head.headers.first('grpc-encoding') ?? ''
    const { bytes, coding } = readGrpcMessage(body, encoding)
    const request = {
      headers: head.headers,
      body: bytes,
      get isOver() {
        return stream.closed
      },
    }
    const of = { protocol: 'otlp', format, deniesRecords: true }
    return exportResponse(await takeBody({ request, key, coding, source }, of, this.#deps.services))
  }
}

interface Received {
  readonly stream: ServerHttp2Stream
  readonly head: SenderHead
  readonly key: SenderKey
  readonly source: string
  readonly body: Buffer
  readonly format: ProtocolFormat
}

const failed = (): AppError => new AppError('internal_error', 'the request failed')

function headOf(headers: IncomingHttpHeaders, ip: string): SenderHead {
  const bag = new HeaderBag()
  for (const [name, value] of Object.entries(headers))
    for (const each of [value ?? []].flat()) bag.add(name, each)
  return { headers: bag, params: {}, queryText: '', query: new URLSearchParams(), ip }
}

/** @throws AppError `body_too_large`, `request_timeout`, `bad_request` when the client leaves */
function readBody(stream: ServerHttp2Stream, pipe: Pipe): Promise<Buffer> {
  // A body may come in frames of one byte each.
  const body = new ByteBuffer()
  let frames = 0
  let bytes = 0
  const hold = (change: number): void => {
    bytes += change
    pipe.heldBytes += change
  }
  return new Promise<Buffer>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new AppError('request_timeout', 'the request did not come in time')),
      REQUEST_MS,
    )
    stream.once('close', () => {
      clearTimeout(timer)
      reject(new AppError('bad_request', 'the client left'))
    })
    stream.on('data', (chunk: Buffer) => {
      if (bytes + chunk.length > GRPC_BYTES) {
        stream.pause()
        const details = { limit_bytes: GRPC_BYTES }
        reject(
          new AppError('body_too_large', `the message exceeds ${GRPC_BYTES} bytes`, { details }),
        )
        return
      }
      frames++
      if (areTinyChunks(frames, bytes + chunk.length)) {
        stream.pause()
        reject(tinyChunks())
        return
      }
      body.append(chunk)
      hold(chunk.length)
    })
    const end = (): void => {
      clearTimeout(timer)
      resolve(Buffer.from(body.bytes.buffer, 0, body.length))
    }
    // A request without a body may have ended before a listener was added.
    if (stream.readableEnded) end()
    else stream.once('end', end)
  }).finally(() => hold(-bytes))
}

const HEADERS = { ':status': 200, 'content-type': 'application/grpc' } as const

function respond(stream: ServerHttp2Stream, message: Buffer): void {
  if (stream.closed || stream.destroyed) return
  stream.respond(HEADERS, { waitForTrailers: true })
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(message)
}

/** Rejects a request that may not have arrived completely; the rest of it is not read. */
function refuse(stream: ServerHttp2Stream, error: AppError): void {
  if (stream.closed || stream.destroyed) return
  stream.respond({ ...HEADERS, ...grpcError(error) }, { endStream: true })
  if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR)
}

/** The bytes of a connection as a stream for HTTP/2. */
class Pipe extends Duplex {
  readonly #peer: Peer
  /** The bytes of requests that are not complete. */
  heldBytes = 0
  session: ServerHttp2Session | null = null

  constructor(peer: Peer) {
    super()
    this.#peer = peer
    this.on('error', () => undefined)
    this.once('close', () => peer.close('HTTP/2 has ended'))
  }

  get address(): string {
    return this.#peer.address
  }

  /** Accepts no further requests, and closes the connection when the others are answered. */
  finish(): void {
    if (this.session === null || this.session.destroyed) this.destroy()
    else this.session.close()
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#peer.write(chunk, done)
  }
}

/** A connection of gRPC. HTTP/2 itself limits what a client may send ahead. */
class GrpcSession implements Session {
  readonly #pipe: Pipe
  readonly #start: (pipe: Pipe, isTls: boolean) => void
  #isStarted = false

  constructor(peer: Peer, start: (pipe: Pipe, isTls: boolean) => void) {
    this.#pipe = new Pipe(peer)
    this.#start = start
  }

  get heldBytes(): number {
    return this.#pipe.heldBytes
  }

  get isWithin(): boolean {
    return this.#pipe.heldBytes > 0
  }

  push(chunk: Buffer): void {
    if (this.#pipe.destroyed) return
    if (!this.#isStarted) {
      this.#isStarted = true
      this.#start(this.#pipe, chunk[0] === TLS_HANDSHAKE)
    }
    this.#pipe.push(chunk)
  }

  tick(): boolean {
    return this.#pipe.heldBytes > 0
  }

  end(): void {
    this.#pipe.finish()
  }
}
