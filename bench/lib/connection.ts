import type { Socket } from 'node:net'
import { dial } from './dial.js'

export interface HttpReply {
  readonly status: number
  /** Null without the header in the reply. */
  readonly retryAfterS: number | null
  readonly body: string
}

interface Waiting {
  readonly resolve: (reply: HttpReply) => void
  readonly reject: (error: Error) => void
}

const HEAD_END = '\r\n\r\n'
const LENGTH_NAME = 'Content-Length: '
/** A larger body is sent by a write of its own instead of being copied after its head. */
const SEPARATE_BYTES = 16_384
/** Bytes of the Content-Length value with its line end and the empty line. */
const LENGTH_BYTES = 40

/**
 * One keep-alive connection that costs little CPU. One request at a time; replies must carry a
 * Content-Length. The first request opens it, and the next one after it was closed opens it again.
 */
export class Connection {
  readonly #url: URL
  #socket: Socket | null = null
  #waiting: Waiting | null = null
  /** The bytes of an incomplete reply. */
  #chunks: Buffer[] = []
  #missing = -1
  /** The head of the last request, and its encoded bytes. */
  #head = ''
  #prefix = Buffer.alloc(0)

  constructor(url: string) {
    this.#url = new URL(url)
  }

  /**
   * @param head request line and headers with their line ends, without Host, Content-Length and the empty line
   * @throws Error when the connection breaks
   */
  request(head: string, body: Uint8Array | null = null): Promise<HttpReply> {
    if (this.#waiting !== null) throw new Error('bug: a request is under way on this connection')
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      const socket = (this.#socket ??= this.#open())
      if (body !== null && body.length > SEPARATE_BYTES) {
        socket.cork()
        socket.write(this.#message(head, body.length, NO_BODY))
        socket.write(body)
        socket.uncork()
      } else socket.write(this.#message(head, body?.length ?? null, body ?? NO_BODY))
    })
  }

  /** @param length the length of the body; null without one */
  #message(head: string, length: number | null, body: Uint8Array): Buffer {
    if (head !== this.#head) {
      this.#head = head
      this.#prefix = Buffer.from(`${head}Host: ${this.#url.host}\r\n`, 'latin1')
    }
    const prefix = this.#prefix
    const message = Buffer.allocUnsafe(prefix.length + LENGTH_BYTES + body.length)
    message.set(prefix)
    const end = length === null ? '\r\n' : `${LENGTH_NAME}${length}${HEAD_END}`
    const at = prefix.length + message.write(end, prefix.length, 'latin1')
    message.set(body, at)
    return message.subarray(0, at + body.length)
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = null
  }

  #open(): Socket {
    const socket = dial(this.#url, (chunk) => this.#take(chunk))
    const fail = (error: Error): void => {
      if (this.#socket !== socket) return
      this.#socket = null
      this.#chunks = []
      this.#missing = -1
      const waiting = this.#waiting
      this.#waiting = null
      waiting?.reject(error)
    }
    socket.on('error', fail)
    socket.on('close', () => fail(new Error('the connection was closed')))
    return socket
  }

  /** @param chunk valid until this returns */
  #take(chunk: Buffer): void {
    if (this.#missing > 0) this.#missing -= chunk.length
    if (this.#missing > 0 || !this.#complete(chunk)) this.#chunks.push(Buffer.from(chunk))
  }

  /** @returns false while the reply is incomplete */
  #complete(chunk: Buffer): boolean {
    const all = this.#chunks.length === 0 ? chunk : Buffer.concat([...this.#chunks, chunk])
    const headEnd = all.indexOf(HEAD_END, 0, 'latin1')
    if (headEnd < 0) return false
    const head = all.toString('latin1', 0, headEnd)
    const end = headEnd + HEAD_END.length + lengthOf(head)
    this.#missing = end - all.length
    if (this.#missing > 0) return false
    this.#chunks = []
    this.#missing = -1
    const waiting = this.#waiting
    this.#waiting = null
    const status = Number(head.slice(9, 12))
    waiting?.resolve({
      status,
      retryAfterS: status < 400 ? null : retryAfterOf(head),
      body: all.toString('utf8', headEnd + HEAD_END.length, end),
    })
    return true
  }
}

const NO_BODY = new Uint8Array(0)

function lengthOf(head: string): number {
  const at = head.lastIndexOf(LENGTH_NAME)
  // Proxies may write header names in another case.
  if (at < 0) return Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  const end = head.indexOf('\r', at)
  return Number(head.slice(at + LENGTH_NAME.length, end < 0 ? head.length : end))
}

function retryAfterOf(head: string): number | null {
  const seconds = /\r\nretry-after: *(\d+)/i.exec(head)?.[1]
  return seconds === undefined ? null : Number(seconds)
}
