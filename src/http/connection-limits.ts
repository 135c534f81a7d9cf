import { createReadStream } from 'node:fs'
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

/** Below this share of the connections no client is limited. */
const CROWDED = 0.5
/** From this share on, the connections of each client are counted. */
const WATCHED = 0.25
/** Pause between two readings of the kernel's table of connections. */
const READ_EVERY_MS = 1_000

type Counts = ReadonlyMap<string, number>

const NONE: Counts = new Map()

/**
 * Limits the connections of a client, so that no address takes all of them. When half of them are
 * open, a network (an IPv4 address, or the /64 of an IPv6 address) may have as many as are free. A
 * single client gets half of all, two get a third each (dynamic thresholds, Choudhury and Hahne,
 * 1998). uWebSockets.js does not tell whose connection ended, so the connections are counted in the
 * kernel's table (Linux only; elsewhere nobody is limited). Listing ten thousand takes the kernel
 * 20 to 90 ms, so a thread of Node's pool reads it, and connections accepted since the beginning of
 * the reading are added.
 *
 * @returns whether a connection of this address may open; proxies stand for many clients and always
 * may
 */
export function createAddressShares(
  pools: readonly ConnectionPool[],
  port: () => number,
): (address: () => string, isProxy: (address: string) => boolean) => boolean {
  let listed = NONE
  /** Connections accepted before the current reading. */
  let earlier = NONE
  let accepted = new Map<string, number>()
  let isReading = false
  let readAtMs = -Infinity
  const read = async (): Promise<void> => {
    isReading = true
    earlier = accepted
    accepted = new Map()
    listed = await connectionsTo(port())
    earlier = NONE
    isReading = false
    readAtMs = performance.now()
  }
  const countOf = (network: string): number =>
    [listed, earlier, accepted].reduce((sum, counts) => sum + (counts.get(network) ?? 0), 0)
  const isBelow = (share: number): boolean =>
    pools.every(({ open, limit }) => open <= limit * share)
  return (addressOf, isProxy) => {
    if (isBelow(WATCHED)) {
      listed = NONE
      accepted.clear()
      return true
    }
    const address = addressOf()
    if (address === '' || isProxy(address)) return true
    if (!isReading && performance.now() - readAtMs > READ_EVERY_MS) void read()
    const network = networkOf(address)
    const count = countOf(network) + 1
    if (!isBelow(CROWDED) && count > Math.min(...pools.map(({ open, limit }) => limit - open)))
      return false
    accepted.set(network, (accepted.get(network) ?? 0) + 1)
    return true
  }
}

/** The open connections to a local port by the network of the other side, as the kernel lists them. */
async function connectionsTo(port: number): Promise<Counts> {
  const counts = new Map<string, number>()
  for (const table of ['tcp', 'tcp6'] as const)
    for (const [hex, count] of await peersOf(table, port)) {
      const network = networkOf(toAddress(hex))
      counts.set(network, (counts.get(network) ?? 0) + count)
    }
  return counts
}

/** A line of `/proc/net/tcp` is `NUMBER: LOCAL:PORT REMOTE:PORT STATE …`; addresses, ports and states are hexadecimal. */
const LINE = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} ([0-9A-F]{2}) /gm
const ESTABLISHED = '01'

/** Counts the established connections of a table by remote address. */
async function peersOf(table: string, port: number): Promise<Counts> {
  const counts = new Map<string, number>()
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  for await (const lines of linesOf(`/proc/self/net/${table}`))
    for (const [, local, remote = '', state] of lines.matchAll(LINE))
      if (local === wanted && state === ESTABLISHED)
        counts.set(remote, (counts.get(remote) ?? 0) + 1)
  return counts
}

/** The lines of a file in pieces; none for a file that cannot be read. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const piece of createReadStream(path, 'latin1')) {
      const text = rest + String(piece)
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      yield text.slice(0, end)
    }
  } catch {
    // Elsewhere than on Linux there is no such file.
  }
}

/** @param hex an address as the kernel writes it: words of four bytes, each with its last byte first */
function toAddress(hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  return formatAddress(bytes.length % 4 === 0 ? bytes.swap32() : bytes)
}
