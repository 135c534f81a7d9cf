import { BlockList, isIP } from 'node:net'

/** Finds the client's address, given that of the socket and the headers X-Forwarded-For. */
export type ClientAddress = (socketAddress: string, forwardedFor: readonly string[]) => string

/**
 * @param trustedProxies addresses and CIDR ranges whose `X-Forwarded-For` is trusted
 * @throws RangeError when an entry is neither an address nor a range
 */
export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
  if (trustedProxies.length === 0) return (socketAddress) => socketAddress
  const isTrusted = createRanges(trustedProxies)
  return (socketAddress, forwardedFor) => {
    if (isIP(socketAddress) === 0 || !isTrusted(socketAddress)) return socketAddress
    return nearestUntrusted(socketAddress, forwardedFor, isTrusted)
  }
}

/**
 * @param entries addresses and CIDR ranges
 * @returns whether an address is among them
 * @throws RangeError when an entry is neither an address nor a range
 */
export function createRanges(entries: readonly string[]): (ip: string) => boolean {
  const list = toBlockList(entries)
  return (ip) => list.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4')
}

/** The network whose addresses one client may hold: an IPv4 address, or the /64 of an IPv6 address (RFC 6177). */
export function networkOf(ip: string): string {
  if (isIP(ip) !== 6) return ip
  const [head = '', tail] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - last.length
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...last]
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}

/**
 * Sockets and proxies that listen on IPv6 write an IPv4 client as `::ffff:192.0.2.1`. Unchanged,
 * all such clients would be one network.
 */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Walks from the nearest proxy towards the client and stops at the first hop that is not trusted. */
function nearestUntrusted(
  socketAddress: string,
  forwardedFor: readonly string[],
  isTrusted: (ip: string) => boolean,
): string {
  const hops = forwardedFor.join(',').split(',')
  let nearest = socketAddress
  for (let i = hops.length - 1; i >= 0; i--) {
    const hop = plainAddress(stripPort((hops[i] ?? '').trim()))
    if (isIP(hop) === 0) return nearest
    nearest = hop
    if (!isTrusted(hop)) return hop
  }
  return nearest
}

/** Removes the port: `10.0.0.1:4711` and `[::1]:4711`. Other texts are returned unchanged. */
function stripPort(hop: string): string {
  const match = /^\[([^\]]+)\](?::\d+)?$|^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(hop)
  return match?.[1] ?? match?.[2] ?? hop
}

function toBlockList(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/')
    const version = isIP(address)
    const bits = prefix === undefined ? (version === 6 ? 128 : 32) : Number(prefix)
    const valid = Number.isInteger(bits) && bits >= 0 && bits <= (version === 6 ? 128 : 32)
    if (version === 0 || !valid || prefix === '') {
      throw new RangeError(`trusted proxy ${entry} is not an address or a range like 10.0.0.0/8`)
    }
    list.addSubnet(address, bits, version === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/**
 * @param bytes 4 or 16 bytes; an IPv4-mapped IPv6 address is returned as IPv4
 * @returns '' for a closed socket and for a Unix socket
 */
export function formatAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return ''
  if (isMappedIpv4(bytes)) return bytes.subarray(12).join('.')
  const groups: string[] = []
  for (let i = 0; i < 16; i += 2) {
    groups.push((((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0)).toString(16))
  }
  return compressZeros(groups)
}

function isMappedIpv4(bytes: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return false
  return bytes[10] === 0xff && bytes[11] === 0xff
}

/** RFC 5952: the first of the longest runs of two or more zero groups becomes `::`. */
function compressZeros(groups: readonly string[]): string {
  let best = { start: -1, length: 1 }
  let start = 0
  for (let i = 0; i <= groups.length; i++) {
    if (groups[i] === '0') continue
    if (i - start > best.length) best = { start, length: i - start }
    start = i + 1
  }
  if (best.start === -1) return groups.join(':')
  const head = groups.slice(0, best.start).join(':')
  return `${head}::${groups.slice(best.start + best.length).join(':')}`
}
