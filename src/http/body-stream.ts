import { AppError } from '../model/errors.js'
import { bodiesOverBudget, type BodyBudget, emptyBody, type RequestBody } from './body.js'
import type { UwsResponse } from './uws.js'

/** About this many bytes of a request wait for its reader at most. Then the connection is paused. */
const QUEUE_BYTES = 1024 * 1024

/** The body of a request, as it arrives. */
export interface BodyChunks extends AsyncIterable<Uint8Array> {
  /** Says how many bytes of what was read are still in memory, because they count against the limit of all bodies. */
  keep(bytes: number): void
}

/** The body of a request that has none. */
export const NO_CHUNKS: BodyChunks = {
  async *[Symbol.asyncIterator]() {},
  keep: () => undefined,
}

interface StreamHost {
  readonly budget: BodyBudget
  /** Called when a chunk has come, and when the client has to wait or may go on. */
  readonly onProgress: () => void
}

/**
 * A body of any length that is read while it arrives. What was not read yet is bounded: the connection is paused meanwhile.
 * Reading throws when the client leaves, or when all bodies together take too much memory.
 */
export class BodyStream implements RequestBody, BodyChunks {
  readonly #res: UwsResponse
  readonly #host: StreamHost
  readonly #queue: Uint8Array[] = []
  #queuedBytes = 0
  #keptBytes = 0
  #completeAtMs = 0
  #isPaused = false
  #isEmpty = true
  #problem: AppError | null = null
  #wake: (() => void) | null = null

  constructor(res: UwsResponse, host: StreamHost) {
    this.#res = res
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

  /** Ends the reading: the client has left or has its reply. */
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
      const chunk = this.#queue.shift()
      if (chunk !== undefined) {
        this.#queuedBytes -= chunk.length
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

  /** The last chunks may come together with the one after which the connection was paused. */
  #complete(): void {
    this.#completeAtMs = performance.now()
    this.#resume()
  }

  /** Copies a chunk, which is valid only during the call. */
  #take(chunk: ArrayBuffer, isLast: boolean): void {
    if (isLast) this.#complete()
    if (this.#problem !== null) return
    this.#isEmpty &&= chunk.byteLength === 0
    if (isLast && this.#isEmpty) {
      this.#stop(emptyBody())
      return
    }
    if (!this.#host.budget.take(chunk.byteLength)) {
      this.#stop(bodiesOverBudget())
      return
    }
    if (chunk.byteLength > 0) this.#queue.push(new Uint8Array(chunk.slice(0)))
    this.#queuedBytes += chunk.byteLength
    if (this.#queuedBytes > QUEUE_BYTES && !isLast && !this.#isPaused) {
      this.#isPaused = true
      this.#res.pause()
    }
    this.#host.onProgress()
    this.#awake()
  }

  #stop(problem: AppError): void {
    if (this.#problem !== null) return
    this.#problem = problem
    this.#host.budget.release(this.#queuedBytes + this.#keptBytes)
    this.#queue.length = 0
    this.#queuedBytes = 0
    this.#keptBytes = 0
    this.#awake()
  }

  #awake(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
