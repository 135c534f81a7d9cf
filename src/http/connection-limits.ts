import { readFileSync } from 'node:fs'
import { formatAddress, networkOf } from './address.js'

/** Limits the open connections of all servers of the process. */
export interface ConnectionPool {
  readonly limit: number
  open: number
}

/** @returns a function that counts an opened (1) or closed (-1) connection and returns whether it is within the limits */
export function countConnections(pools: readonly ConnectionPool[]): (change: number) => boolean {
  return (change) => {
    for (const pool of pools) pool.open += change
    return change < 0 || pools.every((pool) => pool.open <= pool.limit)
  }
}

/** Below this share of the connections nobody is limited. */
const CROWDED = 0.5
/** How long the kernel's table is taken to be true; connections that come meanwhile are counted. */
const FRESH_MS = 1_000

/**
 * Limits the connections of a client, so that no address takes all of them: when half of them are open, a network (an IPv4
 * address, or the /64 of an IPv6 address) may have as many as are free. One client alone gets half of all, two a third each
 * (dynamic thresholds, Choudhury and Hahne, 1998). uWebSockets.js does not tell whose connection ended, so the connections
 * are counted in the kernel's table (Linux only; elsewhere nobody is limited).
 *
 * @returns whether a connection of this address may open; proxies speak for many clients and always may
 */
export function createAddressShares(
  pools: readonly ConnectionPool[],
  port: () => number,
): (address: () => string, isProxy: (address: string) => boolean) => boolean {
  let counts = new Map<string, number>()
  let readAtMs = -Infinity
  return (addressOf, isProxy) => {
    if (pools.every(({ open, limit }) => open <= limit * CROWDED)) return true
    const address = addressOf()
    if (address === '' || isProxy(address)) return true
    const nowMs = performance.now()
    if (nowMs - readAtMs > FRESH_MS) {
      counts = connectionsTo(port())
      readAtMs = nowMs
    }
    const network = networkOf(address)
    const count = (counts.get(network) ?? 0) + 1
    const free = Math.min(...pools.map(({ open, limit }) => limit - open))
    if (count > free) return false
    counts.set(network, count)
    return true
  }
}

/** The open connections to a local port by the network of the other side, as the kernel lists them. */
function connectionsTo(port: number): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [hex, count] of [...peersOf('tcp', 8, port), ...peersOf('tcp6', 32, port)]) {
    const network = networkOf(toAddress(hex))
    counts.set(network, (counts.get(network) ?? 0) + count)
  }
  return counts
}

const ESTABLISHED = '01'

/**
 * Counts the established connections of a table by remote address. A line is `NUMBER: LOCAL:PORT REMOTE:PORT STATE …`, after
 * the number in columns of fixed width; a table of ten thousand connections is read in milliseconds.
 *
 * @param digits of an address
 */
function peersOf(table: string, digits: number, port: number): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const text = tableOf(table)
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')} `
  const localPortAt = ': '.length + digits
  const remoteAt = localPortAt + local.length
  const stateAt = remoteAt + digits + local.length
  for (let line = text.indexOf('\n') + 1; line > 0; line = text.indexOf('\n', line) + 1) {
    const at = text.indexOf(':', line)
    if (!text.startsWith(local, at + localPortAt)) continue
    if (!text.startsWith(ESTABLISHED, at + stateAt)) continue
    const remote = text.slice(at + remoteAt, at + remoteAt + digits)
    counts.set(remote, (counts.get(remote) ?? 0) + 1)
  }
  return counts
}

function tableOf(name: string): string {
  try {
    return readFileSync(`/proc/self/net/${name}`, 'latin1')
  } catch {
    return ''
  }
}

/** @param hex an address as the kernel writes it: words of four bytes, each with its last byte first */
function toAddress(hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  return formatAddress(bytes.length % 4 === 0 ? bytes.swap32() : bytes)
}
