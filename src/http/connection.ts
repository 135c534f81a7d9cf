import type { UwsSocket } from './uws.js'

/** An open WebSocket, as hooks see it; every call is harmless after its end. */
export interface Connection<User> {
  readonly user: User
  readonly ip: string
  readonly isOpen: boolean
  /** @returns false when the text was dropped: the connection is closed or its client too slow */
  send(text: string): boolean
  /** @param reason cut at 123 bytes, the most a close frame holds */
  close(code: number, reason: string): void
}

const REASON_BYTES = 123
const DROPPED = 2

/** created ─attach─▶ open ─detach (the library closed it)─▶ closed */
export class LiveConnection<User> implements Connection<User> {
  readonly user: User
  readonly ip: string
  /** ms since 1970; null never */
  readonly expiresAtMs: number | null
  #socket: UwsSocket<unknown> | null = null
  #activeMs = performance.now()

  constructor(user: User, ip: string, expiresAtMs: number | null) {
    this.user = user
    this.ip = ip
    this.expiresAtMs = expiresAtMs
  }

  get isOpen(): boolean {
    return this.#socket !== null
  }

  /** when a text last went either way, on the performance.now clock */
  get activeMs(): number {
    return this.#activeMs
  }

  attach(socket: UwsSocket<unknown>): void {
    this.#socket = socket
  }

  /** The library throws on any use after its close event. */
  detach(): void {
    this.#socket = null
  }

  touch(): void {
    this.#activeMs = performance.now()
  }

  subscribe(topic: string): void {
    this.#socket?.subscribe(topic)
  }

  send(text: string): boolean {
    if (this.#socket === null) return false
    this.touch()
    return this.#socket.send(text, false) !== DROPPED
  }

  close(code: number, reason: string): void {
    this.#socket?.end(code, cutReason(reason))
  }
}

/** A close reason must be whole UTF-8 characters. */
export function cutReason(reason: string): string {
  let text = reason
  while (Buffer.byteLength(text) > REASON_BYTES) text = Array.from(text).slice(0, -1).join('')
  return text
}
