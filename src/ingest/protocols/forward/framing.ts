import { StreamBuffer } from '../stream-buffer.js'
import { scanOn, startScan } from '../msgpack/scan.js'

const NIL = 0xc0

/** Every message is an array; nil is a keep-alive. */
const mayBegin = (first = 0): boolean =>
  first === NIL || (first >= 0x90 && first <= 0x9f) || first === 0xdc || first === 0xdd

/** Finds the messages in a stream of MessagePack. */
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

  /** @returns null, or why the stream cannot be read any further */
  push(chunk: Buffer, take: (message: Buffer) => void): string | null {
    const stream = this.#stream
    stream.append(chunk)
    while (stream.length > 0) {
      // Text is MessagePack too, a number for each character.
      if (!mayBegin(stream.bytes[stream.from])) return 'it is not the Forward protocol'
      const absolute = { ...this.#scan, at: stream.from + this.#scan.at }
      const isWhole = scanOn(stream.bytes, absolute, stream.to)
      if (isWhole === null) return 'it is no MessagePack'
      const length = isWhole ? absolute.at - stream.from : stream.length
      if (length > this.#maxBytes) return `a message exceeds ${this.#maxBytes} bytes`
      if (!isWhole) {
        this.#scan = { ...absolute, at: absolute.at - stream.from }
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
