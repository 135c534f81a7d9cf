import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** what is read at a time, into memory that is used again */
const READ_BYTES = 16_384

/**
 * A socket to the host of an http:, https:, ws: or wss: URL.
 *
 * @param take each chunk, good until it returns; absent: as 'data' events, for sockets too many for such memory
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
