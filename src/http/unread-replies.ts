interface Waiting {
  /** Ends the connection; it is not told of as waiting after that. */
  disconnect(): void
}

/**
 * Limits the memory of large replies that wait for their clients to read: above it the client that has read nothing for the
 * longest time is disconnected. Otherwise one that asks for many and reads none would take all memory.
 */
export class UnreadReplies {
  readonly #limit: number
  /** Bytes by the connection; the one that has read nothing for the longest time is the first. */
  readonly #waiting = new Map<Waiting, number>()
  #bytes = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** A reply has to wait, at first or after the client has read some of it. The newest one always may. */
  wait(reply: Waiting, bytes: number): void {
    this.end(reply)
    this.#waiting.set(reply, bytes)
    this.#bytes += bytes
    for (const [oldest] of this.#waiting) {
      if (this.#bytes <= this.#limit || oldest === reply) return
      this.end(oldest)
      oldest.disconnect()
    }
  }

  end(reply: Waiting): void {
    this.#bytes -= this.#waiting.get(reply) ?? 0
    this.#waiting.delete(reply)
  }
}
