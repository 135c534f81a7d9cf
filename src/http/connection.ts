import type { UwsSocket } from './uws.js'

/** A WebSocket connection. Every call is safe after it has closed. */
export interface Connection<User> {
  readonly user: User
  readonly ip: string
  /** The parameters of the URL that it was opened with. */
  readonly query: URLSearchParams
  readonly isOpen: boolean
  /** The bytes of texts that its client has not received. */
  readonly bufferedBytes: number
  /** @returns false when the text was dropped because the connection is closed or its client too slow */
  send(text: string): boolean
  /** @param reason truncated at 123 bytes, the maximum of a close frame */
  close(code: number, reason: string): void
}

const REASON_BYTES = 123
const DROPPED = 2
const SECOND_MS = 1_000

/** States: created ─attach─▶ open ─detach─▶ closed. */
export class LiveConnection<User> implements Connection<User> {
  readonly user: User
  readonly ip: string
  readonly query: URLSearchParams
  /** Milliseconds since 1970; null when the connection does not expire. */
  readonly expiresAtMs: number | null
  #socket: UwsSocket<unknown> | null = null
  #activeMs = performance.now()
  #secondMs = -Infinity
  /** Messages, pings and pongs of the client since `#secondMs`. */
  #messages = 0

  constructor(
    user: User,
    { ip, query }: Pick<Connection<User>, 'ip' | 'query'>,
    expiresAtMs: number | null,
  ) {
    this.user = user
    this.ip = ip
    this.query = query
    this.expiresAtMs = expiresAtMs
  }

  get isOpen(): boolean {
    return this.#socket !== null
  }

  get bufferedBytes(): number {
    return this.#socket?.getBufferedAmount() ?? 0
  }

  /** When a text was last sent or received (`performance.now`). */
  get activeMs(): number {
    return this.#activeMs
  }

  attach(socket: UwsSocket<unknown>): void {
    this.#socket = socket
  }

  /** uWebSockets.js throws on any use after its close event. */
  detach(): void {
    this.#socket = null
  }

  /** Records that a text arrived. */
  received(): void {
    this.#touch()
  }

  /** Counts a message, ping or pong of the client. @returns their number in this second */
  count(): number {
    const nowMs = performance.now()
    if (nowMs - this.#secondMs >= SECOND_MS) {
      this.#secondMs = nowMs
      this.#messages = 0
    }
    this.#messages++
    return this.#messages
  }

  subscribe(topic: string): void {
    this.#socket?.subscribe(topic)
  }

  send(text: string): boolean {
    if (this.#socket === null) return false
    this.#touch()
    return this.#socket.send(text, false) !== DROPPED
  }

  close(code: number, reason: string): void {
    this.#socket?.end(code, cutReason(reason))
  }

  #touch(): void {
    this.#activeMs = performance.now()
  }
}

/** Truncates at a whole character, because a close reason must be valid UTF-8. */
export function cutReason(reason: string): string {
  let text = reason
  while (Buffer.byteLength(text) > REASON_BYTES) text = Array.from(text).slice(0, -1).join('')
  return text
}
