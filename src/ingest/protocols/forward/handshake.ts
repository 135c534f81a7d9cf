import { createHash, timingSafeEqual } from 'node:crypto'

import { Decoder, encode } from '@msgpack/msgpack'

/** The server's side of the handshake, when a shared key is set. */
export interface Handshake {
  /** The greeting, with a nonce of this connection. */
  readonly hello: Uint8Array
  /** Checks the client's answer. @returns the reply, and whether the client knows the key */
  readonly check: (ping: Buffer) => { readonly pong: Uint8Array; readonly isWelcome: boolean }
}

const digestOf = (salt: Uint8Array, host: string, nonce: Uint8Array, key: string): string =>
  createHash('sha512').update(salt).update(host).update(nonce).update(key).digest('hex')

/**
 * The handshake of the Forward protocol (version 1): the client proves by a digest over its salt, its host and the server's nonce
 * that it knows the key, and the server proves it in turn. Some clients send the bytes of their salt as text, so texts are read as
 * bytes.
 */
export function createHandshake(nonce: Uint8Array, sharedKey: string, hostname: string): Handshake {
  return {
    hello: encode(['HELO', { nonce, auth: '', keepalive: true }]),
    check: (ping) => {
      const read = readPing(ping)
      const wanted = read === null ? '' : digestOf(read.salt, read.host, nonce, sharedKey)
      const isWelcome = read !== null && areEqual(wanted, read.digest)
      const reason = isWelcome ? '' : 'shared_key mismatch'
      const own = isWelcome ? digestOf(read.salt, hostname, nonce, sharedKey) : ''
      return { pong: encode(['PONG', isWelcome, reason, hostname, own]), isWelcome }
    },
  }
}

interface Ping {
  readonly host: string
  readonly salt: Uint8Array
  readonly digest: string
}

function readPing(bytes: Buffer): Ping | null {
  const parts = decodeRaw(bytes)
  if (!Array.isArray(parts)) return null
  const [kind, host, salt, digest] = (parts as readonly unknown[]).map((part) =>
    part instanceof Uint8Array ? Buffer.from(part) : null,
  )
  if (kind?.toString() !== 'PING' || !host || !salt || !digest) return null
  return { host: host.toString('utf8'), salt, digest: digest.toString('latin1') }
}

function decodeRaw(bytes: Buffer): unknown {
  try {
    return new Decoder({ rawStrings: true }).decode(bytes)
  } catch {
    return null
  }
}

function areEqual(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)]
  return first.length === second.length && timingSafeEqual(first, second)
}
