import { connect, type Socket } from 'node:net'

export interface HttpReply {
  readonly status: number
  /** null: the reply names none */
  readonly retryAfterS: number | null
  readonly body: string
}

interface Waiting {
  readonly resolve: (reply: HttpReply) => void
  readonly reject: (error: Error) => void
}

const HEAD_END = Buffer.from('\r\n\r\n')

/**
 * One keep-alive connection that costs little CPU. One request at a time; replies must carry a
 * Content-Length. Opens by itself with the first request and again after it was closed.
 */
export class Connection {
  readonly #host: string
  readonly #port: number
  #socket: Socket | null = null
  #waiting: Waiting | null = null
  #chunks: Buffer[] = []
  #missing = -1

  constructor(url: string) {
    const { protocol, hostname, port } = new URL(url)
    if (protocol !== 'http:') throw new Error(`${url} is not a plain http:// URL`)
    this.#host = hostname
    this.#port = port === '' ? 80 : Number(port)
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
      const length = body === null ? '' : `Content-Length: ${body.length}\r\n`
      const text = `${head}Host: ${this.#host}:${this.#port}\r\n${length}\r\n`
      if (body === null || body.length > 16_384) {
        socket.cork()
        socket.write(text, 'latin1')
        if (body !== null) socket.write(body)
        socket.uncork()
      } else socket.write(Buffer.concat([Buffer.from(text, 'latin1'), body]))
    })
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = null
  }

  #open(): Socket {
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true })
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
    socket.on('data', (chunk) => this.#take(chunk))
    return socket
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk)
    if (this.#missing > 0) this.#missing -= chunk.length
    if (this.#missing > 0) return
    const all = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks)
    this.#chunks = [all]
    const headEnd = all.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = all.toString('latin1', 0, headEnd)
    const bodyBytes = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    const end = headEnd + HEAD_END.length + bodyBytes
    this.#missing = end - all.length
    if (this.#missing > 0) return
    this.#chunks = []
    this.#missing = -1
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.resolve({
      status: Number(head.slice(9, 12)),
      retryAfterS: retryAfterOf(head),
      body: all.toString('utf8', headEnd + HEAD_END.length, end),
    })
  }
}

function retryAfterOf(head: string): number | null {
  const seconds = /\r\nretry-after: *(\d+)/i.exec(head)?.[1]
  return seconds === undefined ? null : Number(seconds)
}
