import type { Framing } from '../record-batch.js'
import { RecordBatch } from '../record-batch.js'

/** What a protocol makes of one TCP connection. */
export interface Session {
  /** Bytes of memory that wait for the rest of a record. */
  readonly heldBytes: number
  /** Whether the connection waits for the rest of a record. */
  readonly isWithin: boolean
  push(chunk: Buffer): void
  /** Called some milliseconds after `push`: passes on what was gathered. @param idleMs since the last chunk; @returns whether to call again */
  tick(idleMs: number): boolean
  /** Passes on what is left at the end of the connection. */
  end(): void
}

/** What a session works with. */
export interface Peer {
  readonly address: string
  /** @param done called when the kernel has the bytes, or with the error */
  write(bytes: Uint8Array, done?: (error?: Error | null) => void): void
  close(reason: string): void
}

/** Batches of this size are passed on at once. */
const BATCH_BYTES = 256 * 1024
/** When nothing came for this long, the last record is complete, if it may be. */
const IDLE_MS = 200

/** Gathers the records of a connection in batches. Its sender gets no answer. */
export class FramedSession implements Session {
  readonly #framing: Framing
  readonly #batch: RecordBatch
  readonly #submit: (bytes: Buffer) => void

  constructor(framing: Framing, address: string, submit: (bytes: Buffer) => void) {
    this.#framing = framing
    this.#batch = new RecordBatch(address)
    this.#submit = submit
  }

  get heldBytes(): number {
    return this.#framing.heldBytes + this.#batch.size
  }

  get isWithin(): boolean {
    return this.#framing.heldBytes > 0
  }

  push(chunk: Buffer): void {
    this.#framing.push(chunk, this.#batch)
    if (this.#batch.size >= BATCH_BYTES) this.#pass()
  }

  tick(idleMs: number): boolean {
    const isIdle = idleMs >= IDLE_MS
    if (isIdle) this.#framing.idle(this.#batch)
    this.#pass()
    return !isIdle
  }

  end(): void {
    this.#framing.end(this.#batch)
    this.#pass()
  }

  #pass(): void {
    if (this.#batch.records > 0) this.#submit(this.#batch.take())
  }
}
