import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'

import { encode } from '@msgpack/msgpack'

import { INGEST_BYTES } from '../block.js'
import { MessageFraming } from '../protocols/forward/framing.js'
import { createHandshake, type Handshake } from '../protocols/forward/handshake.js'
import { readMessage } from '../protocols/forward/message.js'
import { RecordBatch } from '../record-batch.js'
import type { Peer, Session } from './session.js'

const BATCH_BYTES = 256 * 1024
const NONCE_BYTES = 16

interface ForwardOptions {
  readonly peer: Peer
  /** Null when clients need no key. */
  readonly sharedKey: string | null
  /** Resolves when the records are durable. @param onceId of a chunk that is stored once */
  readonly submit: (bytes: Buffer, onceId?: string) => Promise<void>
}

/**
 * A connection of the Forward protocol. With a shared key the client has to prove that it knows it.
 * A message with a request for acknowledgement is acknowledged when its records are durable; other
 * messages are gathered in batches.
 */
export class ForwardSession implements Session {
  readonly #options: ForwardOptions
  readonly #framing = new MessageFraming(INGEST_BYTES)
  readonly #batch: RecordBatch
  /** The handshake; null once the client is authenticated. */
  #handshake: Handshake | null = null
  #isBroken = false

  constructor(options: ForwardOptions) {
    const { sharedKey, peer } = options
    this.#options = options
    this.#batch = new RecordBatch(peer.address)
    if (sharedKey === null) return
    this.#handshake = createHandshake(randomBytes(NONCE_BYTES), sharedKey, hostname())
    peer.write(this.#handshake.hello)
  }

  get heldBytes(): number {
    return this.#framing.heldBytes + this.#batch.size
  }

  get isWithin(): boolean {
    return this.#framing.heldBytes > 0 || this.#handshake !== null
  }

  push(chunk: Buffer): void {
    if (this.#isBroken) return
    const problem = this.#framing.push(chunk, (message) => this.#take(message))
    this.#batch.settle()
    if (problem !== null) this.#break(problem)
    if (this.#batch.size >= BATCH_BYTES) this.#pass()
  }

  tick(): boolean {
    this.#pass()
    return false
  }

  end(): void {
    this.#pass()
  }

  #take(bytes: Buffer): void {
    if (this.#isBroken) return
    if (this.#handshake !== null) return this.#greet(bytes, this.#handshake)
    // Nil is a keep-alive message.
    if (bytes.length === 1 && bytes[0] === 0xc0) return
    const chunk = readMessage(bytes)?.chunk ?? null
    if (chunk === null) this.#batch.record(bytes, 0, bytes.length, false)
    else this.#passChunk(bytes, chunk)
  }

  #greet(ping: Buffer, handshake: Handshake): void {
    const { pong, isWelcome } = handshake.check(ping)
    this.#options.peer.write(pong)
    if (isWelcome) this.#handshake = null
    else this.#break('the client does not know the shared key')
  }

  #passChunk(bytes: Buffer, chunk: string): void {
    const { peer, submit } = this.#options
    const batch = new RecordBatch(peer.address)
    batch.record(bytes, 0, bytes.length, false)
    // Without an acknowledgement the client sends the chunk again.
    submit(batch.take(), chunk).then(
      () => peer.write(encode({ ack: chunk })),
      () => peer.close('its records could not be stored'),
    )
  }

  #pass(): void {
    if (this.#batch.records > 0) this.#options.submit(this.#batch.take()).catch(() => undefined)
  }

  #break(problem: string): void {
    this.#isBroken = true
    this.#pass()
    this.#options.peer.refuse(problem)
  }
}
