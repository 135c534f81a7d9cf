/*
 * Checks the addresses that notices are sent to. A host name is resolved once, every address it has
 * is checked, and the connection is made to a checked address. DNS rebinding therefore gains
 * nothing.
 */

import { lookup as resolve } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'

const FORBIDDEN = blockList([
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['fe80::', 9, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
  // Translations of IPv4 addresses, and tunnels to them.
  ['::ffff:0:0:0', 96, 'ipv6'],
  ['64:ff9b::', 96, 'ipv6'],
  ['64:ff9b:1::', 48, 'ipv6'],
  ['2001::', 32, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  // Addresses of the metadata services of clouds (AWS, Google, Alibaba, Azure). Some are private addresses, some are public.
  ['fd00:ec2::254', 128, 'ipv6'],
  ['fd20:ce::254', 128, 'ipv6'],
  ['100.100.100.200', 32, 'ipv4'],
  ['168.63.129.16', 32, 'ipv4'],
])
const PRIVATE = blockList([
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['::1', 128, 'ipv6'],
  ['fc00::', 7, 'ipv6'],
])

function blockList(subnets: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[]): BlockList {
  const list = new BlockList()
  for (const [net, prefix, family] of subnets) list.addSubnet(net, prefix, family)
  return list
}

/**
 * The error of a forbidden address. Its message leaves the address out, because the user must not
 * learn addresses of internal networks.
 */
export class AddressError extends Error {
  override readonly name = 'AddressError'
}

/** @throws AddressError */
function check(address: string, mayBePrivate: boolean): void {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  const plain = mapped ?? address
  const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4'
  const isMapped = family === 'ipv6' && /^::(ffff:)?[0-9a-f]{1,4}:[0-9a-f]{1,4}$/i.test(plain)
  if (isMapped || FORBIDDEN.check(plain, family))
    throw new AddressError('notices are not sent to addresses of this kind')
  if (!mayBePrivate && PRIVATE.check(plain, family))
    throw new AddressError(
      'notices are not sent to private addresses (ALERT_PRIVATE_ADDRESSES=false)',
    )
}

/** @throws AddressError for a forbidden address, Error for a host without an address */
export async function checkedAddress(host: string, mayBePrivate: boolean): Promise<string> {
  const name = host.replace(/^\[|\]$/g, '')
  if (isIP(name) !== 0) {
    check(name, mayBePrivate)
    return name
  }
  const found = await resolve(name, { all: true })
  for (const { address } of found) check(address, mayBePrivate)
  const [first] = found
  if (first === undefined) throw new Error(`${name} has no address`)
  return first.address
}

/** Makes a connection use the checked address instead of resolving the name again. */
export const connectTo =
  (address: string): LookupFunction =>
  (_host, options, done) => {
    const family = isIP(address)
    if (options.all === true) done(null, [{ address, family }])
    else done(null, address, family)
  }
