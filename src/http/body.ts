import type { BufferPool } from '../lib/buffer-pool.js'
import { AppError } from '../model/errors.js'
import type { ByteShares } from '../lib/byte-shares.js'
import type { Framing } from './request.js'
import type { UwsResponse } from './uws.js'

/** Limits the memory of request bodies. */
export interface BodyBudget {
  /** Reserves bytes that arrived. @returns false when the budget is used up */
  take(bytes: number): boolean
  release(bytes: number): void
}

/** A budget that all bodies share. */
export function createBodyBudget(limitBytes: number): BodyBudget {
  let usedBytes = 0
  return {
    take: (bytes) => {
      if (usedBytes + bytes > limitBytes) return false
      usedBytes += bytes
      return true
    },
    release: (bytes) => {
      usedBytes -= bytes
    },
  }
}

/** The part of a budget that one client may use. */
export const budgetOf = (shares: ByteShares, client: string): BodyBudget => ({
  take: (bytes) => {
    if (!shares.hasRoom(client, bytes)) return false
    shares.use(client, bytes)
    return true
  },
  release: (bytes) => shares.release(client, bytes),
})

export interface BodyMemory {
  readonly budget: BodyBudget
  readonly buffers: BufferPool
  readonly slab: BodySlab
}

/** A body up to this size that arrives in one chunk shares a slab with others. */
const SMALL_BYTES = 4096
const SLAB_BYTES = 65_536

/**
 * Copies small bodies side by side into slabs; the garbage collector frees a slab when no body in it is used.
 * A buffer for each costs more than the rest of the request (bench/NOTES.md, `bench -- ingest --small`).
 */
export class BodySlab {
  #bytes = new Uint8Array(0)
  #used = 0

  copy(chunk: ArrayBuffer): Uint8Array {
    const { byteLength } = chunk
    if (this.#used + byteLength > this.#bytes.length) {
      this.#bytes = new Uint8Array(SLAB_BYTES)
      this.#used = 0
    }
    const copy = this.#bytes.subarray(this.#used, this.#used + byteLength)
    copy.set(new Uint8Array(chunk))
    this.#used += byteLength
    return copy
  }
}

/** The state of a request's body. */
export interface RequestBody {
  /** When the last chunk arrived (`performance.now`); 0 before. */
  readonly completeAtMs: number
  readonly isComplete: boolean
  /** Whether reading from the connection is paused. */
  readonly isPaused: boolean
  /** Whether too much of the body is outstanding to reuse the connection. */
  readonly mustClose: boolean
  /** Returns the buffer to the pool; the bytes must not be read afterwards. */
  reuse(): void
  /** Returns the bytes to the budget; later chunks are ignored. */
  release(): void
}

export type BodyOutcome =
  | { readonly kind: 'complete'; readonly body: Uint8Array }
  | { readonly kind: 'too_large'; readonly limitBytes: number }
  | { readonly kind: 'broken' }
  | { readonly kind: 'tiny_chunks' }
  | { readonly kind: 'over_budget' }

class EmptyBodyError extends AppError {}

export const emptyBody = (): AppError =>
  new EmptyBodyError('bad_request', 'the chunked body is empty or its first chunk has no size')

export const isEmptyBody = (error: AppError): boolean => error instanceof EmptyBodyError

/** A body in chunks of a few bytes each. */
export const tinyChunks = (): AppError =>
  new AppError('bad_request', `the chunks of the body have fewer than ${CHUNK_BYTES} bytes each`)

/** Chunks whose size is not checked. */
const FREE_CHUNKS = 1_000
/** The least average size of the chunks of a body. Single log lines are larger. */
const CHUNK_BYTES = 16

/** Whether the chunks of a body are so small that they cost the event loop far more than their bytes. */
export const areTinyChunks = (chunks: number, bytes: number): boolean =>
  chunks > FREE_CHUNKS && bytes < chunks * CHUNK_BYTES

/** The error for a body that was refused. */
export function toBodyError(
  outcome: Exclude<BodyOutcome, { kind: 'complete' }>,
  oversizeCode: 'body_too_large' | 'file_too_large' = 'body_too_large',
): AppError {
  if (outcome.kind === 'over_budget') return bodiesOverBudget()
  if (outcome.kind === 'broken') return emptyBody()
  if (outcome.kind === 'tiny_chunks') return tinyChunks()
  const { limitBytes } = outcome
  const details = { limit_bytes: limitBytes }
  return new AppError(oversizeCode, `the body exceeds ${limitBytes} bytes`, { details })
}

export const bodiesOverBudget = (): AppError =>
  new AppError('overloaded', 'too many request bodies in flight', { retryAfterS: 1 })

const NO_BUFFER: ArrayBufferLike = new ArrayBuffer(0)
/** A body on a route that takes none is read and discarded up to this size. */
const DISCARD_BYTES = 65_536
/**
 * A buffer is at most this many times as large as the bytes received. Growing it copies them in one
 * iteration of the event loop.
 */
const GROWTH_FACTOR = 8
/** When a refused body has at most this much left, it is read to its end so that the connection can be reused. */
const RUN_OUT_BYTES = 67_108_864

/**
 * Collects a request body. Reading starts in the constructor, because uWebSockets.js drops chunks that
 * arrive before a listener is set; the outcome is stored until `whenDone` is called.
 *
 * reading ─last chunk─▶ settled;  reading ─over the limit or the budget─▶ settled;  any ─release─▶ released
 *
 * The bytes that were handed out stay valid until `reuse`, even when the request is aborted.
 */
export class BodyReader implements RequestBody {
  readonly isPaused = false
  readonly #res: UwsResponse
  readonly #framing: Framing
  readonly #limitBytes: number
  readonly #isDiscarding: boolean
  readonly #budget: BodyBudget
  readonly #buffers: BufferPool
  readonly #slab: BodySlab
  /** The copy of a body that arrived in one chunk. */
  #small: Uint8Array | null = null
  #buffer = NO_BUFFER
  #length = 0
  /** Bytes that count against the budget. */
  #countedBytes = 0
  #receivedBytes = 0
  #chunks = 0
  #completeAtMs = 0
  #isReleased = false
  #isHandedOut = false
  #outcome: BodyOutcome | null = null
  #onSettled: ((outcome: BodyOutcome) => void) | null = null

  /** @param limitBytes 0 when the route takes no body; a small one is then ignored */
  constructor(res: UwsResponse, framing: Framing, limitBytes: number, memory: BodyMemory) {
    const { budget, buffers, slab } = memory
    this.#res = res
    this.#buffers = buffers
    this.#slab = slab
    this.#framing = framing
    this.#isDiscarding = limitBytes === 0
    this.#limitBytes = this.#isDiscarding ? DISCARD_BYTES : limitBytes
    this.#budget = budget
    if (framing.kind === 'length' && framing.bytes > this.#limitBytes) {
      this.#outcome = { kind: 'too_large', limitBytes }
    }
    res.onData((chunk, isLast) => this.#take(chunk, isLast))
  }

  /** Calls back once, synchronously when the outcome is known already. */
  whenSettled(done: (outcome: BodyOutcome) => void): void {
    if (this.#outcome === null) this.#onSettled = done
    else this.#handOut(this.#outcome, done)
  }

  reuse(): void {
    this.#isHandedOut = false
    this.#releaseBuffer()
  }

  get completeAtMs(): number {
    return this.#completeAtMs
  }

  get isComplete(): boolean {
    return this.#completeAtMs > 0
  }

  get mustClose(): boolean {
    if (this.isComplete) return false
    if (this.#framing.kind !== 'length') return true
    return this.#framing.bytes - this.#receivedBytes > RUN_OUT_BYTES
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#drop()
    this.#onSettled = null
  }

  #drop(): void {
    if (this.#countedBytes > 0) this.#budget.release(this.#countedBytes)
    this.#countedBytes = 0
    if (!this.#isHandedOut) this.#releaseBuffer()
  }

  #releaseBuffer(): void {
    const buffer = this.#buffer
    this.#buffer = NO_BUFFER
    if (buffer !== NO_BUFFER) this.#buffers.release(buffer)
  }

  #handOut(outcome: BodyOutcome, done: (outcome: BodyOutcome) => void): void {
    this.#isHandedOut = outcome.kind === 'complete'
    done(outcome)
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    this.#count(chunk, isLast)
    if (this.#isReleased || this.#outcome !== null) return
    const fault = this.#faultOf()
    if (fault !== null) {
      // uWebSockets.js would read on while there are bytes, and serve nobody else.
      if (fault.kind === 'tiny_chunks' && !isLast) this.#res.pause()
      this.#settle(fault)
      return
    }
    if (!this.#isDiscarding && !this.#store(chunk, isLast)) return
    if (isLast)
      this.#settle(this.#isLost ? { kind: 'broken' } : { kind: 'complete', body: this.#body() })
  }

  #count({ byteLength }: ArrayBuffer, isLast: boolean): void {
    this.#receivedBytes += byteLength
    // The sizes of other chunks are those of the network's packets.
    if (this.#framing.kind === 'chunked' && !isLast) this.#chunks++
    if (isLast) this.#completeAtMs = performance.now()
  }

  /** Why the body is refused; null when it is not. */
  #faultOf(): BodyOutcome | null {
    const limitBytes = this.#limitBytes
    if (this.#receivedBytes > limitBytes)
      return { kind: 'too_large', limitBytes: this.#isDiscarding ? 0 : limitBytes }
    return areTinyChunks(this.#chunks, this.#receivedBytes) ? { kind: 'tiny_chunks' } : null
  }

  /** Copies the chunk, which is valid only during the callback. @returns false when the budget is spent */
  #store(chunk: ArrayBuffer, isLast: boolean): boolean {
    const { byteLength } = chunk
    if (byteLength === 0) return true
    if (!this.#budget.take(byteLength)) {
      this.#drop()
      this.#settle({ kind: 'over_budget' })
      return false
    }
    this.#countedBytes += byteLength
    if (isLast && this.#length === 0 && byteLength <= SMALL_BYTES) {
      this.#small = this.#slab.copy(chunk)
      return true
    }
    if (this.#length + byteLength > this.#buffer.byteLength) this.#grow(this.#length + byteLength)
    new Uint8Array(this.#buffer).set(new Uint8Array(chunk), this.#length)
    this.#length += byteLength
    return true
  }

  /** Grows the buffer towards the announced length, but in proportion to the bytes received. */
  #grow(needed: number): void {
    const announced = this.#framing.kind === 'length' ? this.#framing.bytes : needed * 2
    const buffer = this.#buffers.acquire(
      Math.max(needed, Math.min(announced, needed * GROWTH_FACTOR)),
    )
    new Uint8Array(buffer).set(new Uint8Array(this.#buffer, 0, this.#length))
    this.#releaseBuffer()
    this.#buffer = buffer
  }

  /**
   * Whether a chunked body is empty. uWebSockets.js takes a blank or empty chunk size for 0, the
   * end of the body, so the content may have been lost; a client without content does not send
   * chunks.
   */
  get #isLost(): boolean {
    return this.#framing.kind === 'chunked' && this.#receivedBytes === 0 && !this.#isDiscarding
  }

  /** A view of the body; its buffer may be larger. */
  #body(): Uint8Array {
    if (this.#small !== null) return this.#small
    if (this.#length === 0) return new Uint8Array(0)
    return new Uint8Array(this.#buffer, 0, this.#length)
  }

  #settle(outcome: BodyOutcome): void {
    this.#outcome = outcome
    const done = this.#onSettled
    this.#onSettled = null
    if (done !== null) this.#handOut(outcome, done)
  }
}
