import { ByteBuffer } from '../lib/byte-buffer.js'
import { AppError } from '../model/errors.js'
import {
  areTinyChunks,
  bodiesOverBudget,
  type BodyBudget,
  emptyBody,
  tinyChunks,
  type RequestBody,
} from './body.js'
import type { Framing } from './request.js'
import type { UwsResponse } from './uws.js'

/** The most bytes of a request that wait for its reader; beyond it the connection is paused. */
const QUEUE_BYTES = 1024 * 1024

/** The body of a request, as it arrives. */
export interface BodyChunks extends AsyncIterable<Uint8Array> {
  /** Sets how many of the bytes that were read are still in memory, because they count towards the limit of all bodies. */
  keep(bytes: number): void
}

/** The body of a request that has none. */
export const NO_CHUNKS: BodyChunks = {
  async *[Symbol.asyncIterator]() {},
  keep: () => undefined,
}

interface StreamHost {
  readonly budget: BodyBudget
  /** Called when a chunk has arrived, and when reading is paused or resumed. */
  readonly onProgress: () => void
}

/**
 * A body of any length that is read while it arrives. Unread bytes are bounded: the connection is
 * paused when there are too many. Reading throws when the client disconnects, or when all bodies
 * together take too much memory. The chunks of one iteration of the event loop are delivered as
 * one, after it, so that a fast body is paused too: uWebSockets.js reads a connection for as long
 * as it has bytes.
 */
export class BodyStream implements RequestBody, BodyChunks {
  readonly #res: UwsResponse
  readonly #host: StreamHost
  readonly #isChunked: boolean
  /** The unread bytes. */
  #queue = new ByteBuffer(0)
  #chunks = 0
  #receivedBytes = 0
  #keptBytes = 0
  #completeAtMs = 0
  #isPaused = false
  #isWoken = false
  #problem: AppError | null = null
  #wake: (() => void) | null = null

  constructor(res: UwsResponse, framing: Framing, host: StreamHost) {
    this.#res = res
    this.#isChunked = framing.kind === 'chunked'
    this.#host = host
    res.onData((chunk, isLast) => this.#take(chunk, isLast))
  }

  get completeAtMs(): number {
    return this.#completeAtMs
  }

  get isComplete(): boolean {
    return this.#completeAtMs > 0
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  get mustClose(): boolean {
    return !this.isComplete
  }

  reuse(): void {}

  /** Ends reading, because the client has disconnected or has its reply. */
  release(): void {
    this.#stop(new AppError('bad_request', 'the client left'))
  }

  keep(bytes: number): void {
    const freed = Math.max(this.#keptBytes - bytes, 0)
    this.#keptBytes -= freed
    this.#host.budget.release(freed)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#problem !== null) throw this.#problem
      if (this.#queue.length > 0) {
        const chunk = this.#queue.written
        this.#queue = new ByteBuffer(0)
        this.#keptBytes += chunk.length
        yield chunk
      } else if (this.isComplete) return
      else await this.#next()
    }
  }

  #next(): Promise<void> {
    this.#resume()
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#res.resume()
    this.#host.onProgress()
  }

  /** The last chunks may arrive together with the one after which the connection was paused. */
  #complete(): void {
    this.#completeAtMs = performance.now()
    this.#resume()
  }

  /** Copies a chunk, which is valid only during the call. */
  #take(chunk: ArrayBuffer, isLast: boolean): void {
    if (isLast) this.#complete()
    if (this.#problem !== null) return
    const problem = this.#problemOf(chunk, isLast)
    if (problem === null) this.#queue.append(new Uint8Array(chunk))
    else this.#stop(problem)
    const isMuch = this.#queue.length > QUEUE_BYTES || problem !== null
    if (isMuch && !isLast && !this.#isPaused) {
      this.#isPaused = true
      this.#res.pause()
    }
    if (problem !== null) return
    this.#host.onProgress()
    this.#awakeLater()
  }

  #awakeLater(): void {
    if (this.#isWoken) return
    this.#isWoken = true
    setImmediate(() => {
      this.#isWoken = false
      this.#awake()
    })
  }

  /** Counts a chunk. @returns why it is refused; null when it is not */
  #problemOf({ byteLength }: ArrayBuffer, isLast: boolean): AppError | null {
    if (this.#isChunked && !isLast) this.#chunks++
    this.#receivedBytes += byteLength
    if (isLast && this.#receivedBytes === 0) return emptyBody()
    if (areTinyChunks(this.#chunks, this.#receivedBytes)) return tinyChunks()
    return this.#host.budget.take(byteLength) ? null : bodiesOverBudget()
  }

  #stop(problem: AppError): void {
    if (this.#problem !== null) return
    this.#problem = problem
    this.#host.budget.release(this.#queue.length + this.#keptBytes)
    this.#queue = new ByteBuffer(0)
    this.#keptBytes = 0
    this.#awake()
  }

  #awake(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
