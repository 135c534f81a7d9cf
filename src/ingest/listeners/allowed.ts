import { createRanges } from '../../http/address.js'
import type { Log } from '../../telemetry/log.js'

const WARN_MS = 60_000

/**
 * Creates the check of the addresses that may send. The log names a refused one, at most once a
 * minute.
 *
 * @param ranges empty to allow all addresses
 */
export function createAllowed(ranges: readonly string[], log: Log): (address: string) => boolean {
  if (ranges.length === 0) return () => true
  const isAllowed = createRanges(ranges)
  let warnedAtMs = -Infinity
  return (address) => {
    if (isAllowed(address)) return true
    if (Date.now() - warnedAtMs >= WARN_MS) {
      warnedAtMs = Date.now()
      log.warn({ address }, 'a client is refused: LISTENER_ALLOW does not name its address')
    }
    return false
  }
}
