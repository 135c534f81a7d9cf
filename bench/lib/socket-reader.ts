import type { Socket } from 'node:net'
import { dial } from './dial.js'

/** The incomplete bytes of a frame or of the reply to the upgrade. */
const NOTHING = Buffer.alloc(0)
const KEY = Buffer.from('a key of sixteen').toString('base64')

export interface ReaderOptions {
  readonly url: URL
  readonly token: string
  readonly onText: (text: string) => void
}

/** A WebSocket client of which one process can run ten thousand. */
export class SocketReader {
  readonly #options: ReaderOptions
  readonly #socket: Socket
  #rest: Buffer = NOTHING
  #open = false
  #closed = false

  /** @param ready called once, with an error when the connection ends or is refused before it is open */
  constructor(options: ReaderOptions, ready: (error: Error | null) => void) {
    this.#options = options
    const { host, pathname } = options.url
    this.#socket = dial(options.url)
    this.#socket.on('error', (error) => ready(error))
    this.#socket.on('close', () => {
      this.#closed = true
      ready(new Error('the WebSocket was closed'))
    })
    this.#socket.on('data', (chunk) => this.#take(chunk, ready))
    this.#socket.write(
      `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\nAuthorization: Bearer ${options.token}\r\n\r\n`,
    )
  }

  /** Whether either side has closed the connection. */
  get isClosed(): boolean {
    return this.#closed
  }

  close(): void {
    this.#socket.destroy()
  }

  /** @param text at most 125 bytes; masked, as clients must, with zeros */
  send(text: string): void {
    const bytes = Buffer.from(text)
    this.#socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | bytes.length, 0, 0, 0, 0]), bytes]))
  }

  #take(chunk: Buffer, ready: (error: Error | null) => void): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (!this.#open) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end >= 0) {
        if (!bytes.toString('latin1', 0, 12).endsWith('101'))
          return ready(new Error(`the upgrade answered ${bytes.toString('latin1', 9, 12)}`))
        this.#open = true
        ready(null)
        bytes = bytes.subarray(end + 4)
      }
    }
    this.#rest = this.#open ? this.#readFrames(bytes) : bytes
  }

  /** @returns the bytes of an incomplete frame at the end */
  #readFrames(bytes: Buffer): Buffer {
    let at = 0
    while (bytes.length - at >= 2) {
      const opcode = (bytes[at] ?? 0) & 15
      const short = (bytes[at + 1] ?? 0) & 127
      const headBytes = short === 126 ? 4 : short === 127 ? 10 : 2
      if (bytes.length - at < headBytes) break
      const length =
        short === 126
          ? bytes.readUInt16BE(at + 2)
          : short === 127
            ? bytes.readUInt32BE(at + 6)
            : short
      const end = at + headBytes + length
      if (bytes.length < end) break
      if (opcode === 1) this.#options.onText(bytes.toString('utf8', at + headBytes, end))
      if (opcode === 9) this.#pong()
      at = end
    }
    return at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at))
  }

  /** An empty pong; masked, as clients must, with zeros. */
  #pong(): void {
    this.#socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]))
  }
}
