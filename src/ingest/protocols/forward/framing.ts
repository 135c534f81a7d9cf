import { StreamBuffer } from '../stream-buffer.js'
import { scanOn, startScan } from '../msgpack/scan.js'

/** Finds the values in a stream of MessagePack. */
export class MessageFraming {
  readonly #stream = new StreamBuffer()
  readonly #maxBytes: number
  /** Offsets relative to the stream's beginning. */
  #scan = startScan(0)

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get heldBytes(): number {
    return this.#stream.heldBytes
  }

  /** @returns null, or why the stream can't be read any further */
  push(chunk: Buffer, take: (message: Buffer) => void): string | null {
    const stream = this.#stream
    stream.append(chunk)
    while (stream.length > 0) {
      const absolute = { ...this.#scan, at: stream.from + this.#scan.at }
      const isWhole = scanOn(stream.bytes, absolute, stream.to)
      if (isWhole === null) return 'it is no MessagePack'
      if (!isWhole) {
        this.#scan = { ...absolute, at: absolute.at - stream.from }
        if (stream.length > this.#maxBytes) return `a message exceeds ${this.#maxBytes} bytes`
        break
      }
      const message = stream.bytes.subarray(stream.from, absolute.at)
      stream.from = absolute.at
      this.#scan = startScan(0)
      take(message)
    }
    stream.settle()
    return null
  }
}
