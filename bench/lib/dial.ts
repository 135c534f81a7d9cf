import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** The size of the reused read buffer. */
const READ_BYTES = 16_384

/**
 * A socket to the host of an http:, https:, ws: or wss: URL.
 *
 * @param take called with each chunk, which is valid until it returns. Without it chunks are 'data' events, because
 *   a read buffer for each of thousands of sockets would take too much memory
 */
export function dial({ protocol, hostname, port }: URL, take?: (chunk: Buffer) => void): Socket {
  const isTls = protocol === 'https:' || protocol === 'wss:'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const to = { host, port: port === '' ? (isTls ? 443 : 80) : Number(port), noDelay: true }
  if (isTls) {
    const socket = connectTls(isIP(host) === 0 ? { ...to, servername: host } : to)
    return take === undefined ? socket : socket.on('data', take)
  }
  if (take === undefined) return connect(to)
  const callback = (bytes: number, buffer: Uint8Array): boolean => {
    take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes))
    return true
  }
  return connect({ ...to, onread: { buffer: Buffer.allocUnsafe(READ_BYTES), callback } })
}
