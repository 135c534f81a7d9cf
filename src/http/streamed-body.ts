import type { UwsResponse } from './uws.js'

/** Chunks are written in pieces of at most this size, because uWebSockets.js copies whatever the kernel's buffer can't hold. */
const PIECE_BYTES = 65_536

/** Closes a source that nobody reads any more. */
export function endSource(source: AsyncIterator<Uint8Array>): void {
  source.return?.().catch(() => undefined)
}

/** The body of a reply that is streamed as its client reads it. */
export class StreamedBody {
  readonly #res: UwsResponse
  readonly #source: AsyncIterator<Uint8Array>
  readonly #onWaiting: (isWaiting: boolean) => void
  #isOver = false
  #wake: (() => void) | null = null

  /** @param onWaiting called when the client must read first, and when it has */
  constructor(
    res: UwsResponse,
    source: AsyncIterator<Uint8Array>,
    onWaiting: (isWaiting: boolean) => void,
  ) {
    this.#res = res
    this.#source = source
    this.#onWaiting = onWaiting
    res.onWritable(() => {
      this.#wake?.()
      return true
    })
  }

  /** @returns false when it was ended early. @throws the error of the source */
  async send(): Promise<boolean> {
    this.#onWaiting(false)
    try {
      for (;;) {
        const { done, value } = await this.#source.next()
        if (this.#isOver) return false
        if (done === true) {
          this.#res.cork(() => this.#res.end())
          return true
        }
        if (!(await this.#write(value))) return false
      }
    } finally {
      endSource(this.#source)
    }
  }

  /** Ends the body, because the connection has closed or everything is sent. */
  end(): void {
    this.#isOver = true
    this.#wake?.()
  }

  /** @returns false when it was ended early */
  async #write(chunk: Uint8Array): Promise<boolean> {
    for (let at = 0; at < chunk.byteLength; at += PIECE_BYTES) {
      const piece = chunk.subarray(at, at + PIECE_BYTES)
      let isTaken = false
      this.#res.cork(() => {
        isTaken = this.#res.write(piece)
      })
      if (!isTaken) await this.#writable()
      if (this.#isOver) return false
    }
    return true
  }

  async #writable(): Promise<void> {
    this.#onWaiting(true)
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    this.#wake = null
    if (!this.#isOver) this.#onWaiting(false)
  }
}
