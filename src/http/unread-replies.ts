interface Waiting {
  /** Closes the connection, which does not call `wait` after that. */
  disconnect(): void
}

/**
 * Limits the memory of large replies that wait for their clients to read. Above the limit the
 * client that has not read for the longest time is disconnected. Otherwise a client that requests
 * many and reads none would take all memory.
 */
export class UnreadReplies {
  readonly #limit: number
  /** The waiting bytes by connection; the one that has not read for the longest time is first. */
  readonly #waiting = new Map<Waiting, number>()
  #bytes = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Counts the unsent bytes of a reply, at first and each time after the client has read some. The
   * newest reply may always wait.
   */
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
