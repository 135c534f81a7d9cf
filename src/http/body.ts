import type { Framing } from './request.js'
import type { UwsResponse } from './uws.js'

/** Bytes that all requests of a server may hold at one time. */
export interface ByteBudget {
  readonly limitBytes: number
  heldBytes: number
}

/** What bodies may take, and where they are put. */
export interface BodyMemory {
  readonly budget: ByteBudget
  readonly buffers: BodyBuffers
  readonly slab: BodySlab
}

export interface BodyBuffers {
  /** @returns a buffer of at least so many bytes */
  take(bytes: number): ArrayBufferLike
  give(buffer: ArrayBufferLike): void
}

/** a body up to this size that comes in one piece has no buffer of its own */
const SMALL_BYTES = 4096
const SLAB_BYTES = 65_536

/**
 * Copies of small bodies, side by side in memory that is freed when nobody has one of them any more: memory of
 * its own for each costs more than everything else about it. `npm run bench -- ingest --small`
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

export type BodyOutcome =
  | { readonly kind: 'complete'; readonly body: Uint8Array }
  | { readonly kind: 'too_large'; readonly limitBytes: number }
  | { readonly kind: 'over_budget' }

const NO_BUFFER: ArrayBufferLike = new ArrayBuffer(0)
/** A body that no route asked for is read and thrown away up to this size. */
const DISCARD_BYTES = 65_536
/** A body is given room ahead of what came of it, but no more than this many times as much. */
const ROOM_AHEAD = 4
/** Rather than cut a client off in mid-sentence, so much of a refused body is let run out. */
const RUN_OUT_BYTES = 67_108_864

/**
 * Collects a request body. Reading starts at once, because the library drops what nobody listens
 * for; the outcome waits until it is asked for.
 *
 * reading ─last chunk─▶ settled;  reading ─over the limit or the budget─▶ settled;  any ─release─▶ released
 *
 * A body that was handed out stays good until `reuse`, whatever becomes of its request.
 */
export class BodyReader {
  readonly #framing: Framing
  readonly #limitBytes: number
  readonly #isDiscarding: boolean
  readonly #budget: ByteBudget
  readonly #buffers: BodyBuffers
  readonly #slab: BodySlab
  /** a body that came in one piece */
  #small: Uint8Array | null = null
  #buffer = NO_BUFFER
  #length = 0
  /** of the budget */
  #heldBytes = 0
  #receivedBytes = 0
  #completeAtMs = 0
  #isReleased = false
  #isHandedOut = false
  #outcome: BodyOutcome | null = null
  #onSettled: ((outcome: BodyOutcome) => void) | null = null

  /** @param limitBytes 0: the route takes no body, and a small one is ignored */
  constructor(res: UwsResponse, framing: Framing, limitBytes: number, memory: BodyMemory) {
    const { budget, buffers, slab } = memory
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

  /** Calls back once, at once when the outcome is known. */
  whenSettled(done: (outcome: BodyOutcome) => void): void {
    if (this.#outcome === null) this.#onSettled = done
    else this.#handOut(this.#outcome, done)
  }

  /** Nobody reads the body any more. */
  reuse(): void {
    this.#isHandedOut = false
    this.#giveBack()
  }

  /** When all of it had come, by `performance.now`; 0 before. */
  get completeAtMs(): number {
    return this.#completeAtMs
  }

  get isComplete(): boolean {
    return this.#completeAtMs > 0
  }

  /** Whether the connection must end with the reply, since too much of the body is still to come. */
  get mustClose(): boolean {
    if (this.isComplete) return false
    if (this.#framing.kind !== 'length') return true
    return this.#framing.bytes - this.#receivedBytes > RUN_OUT_BYTES
  }

  /** Gives the bytes back to the budget; what arrives later is ignored. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#drop()
    this.#onSettled = null
  }

  #drop(): void {
    this.#budget.heldBytes -= this.#heldBytes
    this.#heldBytes = 0
    if (!this.#isHandedOut) this.#giveBack()
  }

  #giveBack(): void {
    const buffer = this.#buffer
    this.#buffer = NO_BUFFER
    if (buffer !== NO_BUFFER) this.#buffers.give(buffer)
  }

  #handOut(outcome: BodyOutcome, done: (outcome: BodyOutcome) => void): void {
    this.#isHandedOut = outcome.kind === 'complete'
    done(outcome)
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    this.#receivedBytes += chunk.byteLength
    if (isLast) this.#completeAtMs = performance.now()
    if (this.#isReleased || this.#outcome !== null) return
    if (this.#receivedBytes > this.#limitBytes) {
      this.#settle({ kind: 'too_large', limitBytes: this.#isDiscarding ? 0 : this.#limitBytes })
      return
    }
    if (!this.#isDiscarding && !this.#hold(chunk, isLast)) return
    if (isLast) this.#settle({ kind: 'complete', body: this.#body() })
  }

  /** Copies the chunk, which the library takes back. @returns false when the budget is spent */
  #hold(chunk: ArrayBuffer, isLast: boolean): boolean {
    const { byteLength } = chunk
    if (byteLength === 0) return true
    if (this.#budget.heldBytes + byteLength > this.#budget.limitBytes) {
      this.#drop()
      this.#settle({ kind: 'over_budget' })
      return false
    }
    this.#budget.heldBytes += byteLength
    this.#heldBytes += byteLength
    if (isLast && this.#length === 0 && byteLength <= SMALL_BYTES) {
      this.#small = this.#slab.copy(chunk)
      return true
    }
    if (this.#length + byteLength > this.#buffer.byteLength) this.#grow(this.#length + byteLength)
    new Uint8Array(this.#buffer).set(new Uint8Array(chunk), this.#length)
    this.#length += byteLength
    return true
  }

  /** Room for what is announced, as far as what came makes it likely that it comes. */
  #grow(needed: number): void {
    const announced = this.#framing.kind === 'length' ? this.#framing.bytes : needed * 2
    const buffer = this.#buffers.take(Math.max(needed, Math.min(announced, needed * ROOM_AHEAD)))
    new Uint8Array(buffer).set(new Uint8Array(this.#buffer, 0, this.#length))
    this.#giveBack()
    this.#buffer = buffer
  }

  /** The body alone in its buffer, which may be larger. */
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
