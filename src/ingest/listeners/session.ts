import { withoutMark } from '../formats/file-text.js'
import type { Framing } from '../record-batch.js'
import { RecordBatch } from '../record-batch.js'
import type { Sender } from './intake.js'

/** The protocol's side of a TCP connection. */
export interface Session {
  /** The bytes of an incomplete record. */
  readonly heldBytes: number
  /** Whether the connection is in the middle of a record. */
  readonly isWithin: boolean
  push(chunk: Buffer): void
  /**
   * Called some milliseconds after `push` to pass on the gathered records.
   *
   * @param idleMs time since the last chunk
   * @returns whether to call again
   */
  tick(idleMs: number): boolean
  /** Passes on the remaining records at the end of the connection. */
  end(): void
}

/** The connection as a session sees it. */
export interface Peer extends Sender {
  readonly address: string
  /** @param done called when the kernel has the bytes, or with the error */
  write(bytes: Uint8Array, done?: (error?: Error | null) => void): void
  close(reason: string): void
  /** Closes a connection of another protocol. This is logged once a minute. */
  refuse(reason: string): void
}

/** A batch of this size is passed on at once. */
const BATCH_BYTES = 256 * 1024
/** After this time without data the last record counts as complete, if its protocol allows it. */
const IDLE_MS = 200

/** Gathers the records of a connection in batches. Its sender gets no reply. */
export class FramedSession implements Session {
  readonly #framing: Framing
  readonly #batch: RecordBatch
  readonly #submit: (bytes: Buffer) => void
  readonly #refuse: (reason: string) => void
  #state: 'new' | 'open' | 'refused' = 'new'

  constructor(
    framing: Framing,
    { address, refuse }: Pick<Peer, 'address' | 'refuse'>,
    submit: (bytes: Buffer) => void,
  ) {
    this.#framing = framing
    this.#batch = new RecordBatch(address)
    this.#submit = submit
    this.#refuse = refuse
  }

  get heldBytes(): number {
    return this.#framing.heldBytes + this.#batch.size
  }

  get isWithin(): boolean {
    return this.#framing.heldBytes > 0
  }

  push(chunk: Buffer): void {
    const bytes = this.#state === 'new' ? this.#begin(chunk) : chunk
    if (this.#state === 'refused') return
    this.#framing.push(bytes, this.#batch)
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

  #begin(chunk: Buffer): Buffer {
    const foreign = foreignProtocol(chunk)
    this.#state = foreign === null ? 'open' : 'refused'
    if (foreign !== null) this.#refuse(`the client speaks ${foreign}`)
    return withoutMark(chunk)
  }

  #pass(): void {
    if (this.#batch.records > 0) this.#submit(this.#batch.take())
  }
}

const REQUEST_CHARS = 2048

/** Recognises health checks and clients of another protocol. Any text is a valid record of some protocol here. */
function foreignProtocol(chunk: Buffer): string | null {
  if (chunk[0] === 0x16 && chunk[1] === 3) return 'TLS'
  const isHttp = /^[A-Z]{3,7} \S{1,2000} HTTP\/1\.[01]\r?\n/.test(
    chunk.toString('latin1', 0, REQUEST_CHARS),
  )
  return isHttp ? 'HTTP' : null
}
