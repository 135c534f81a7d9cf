import type { ConnectionPool } from './server.js'
import { openFileLimit } from './open-files.js'
import type { Log } from '../telemetry/log.js'

/** How many connections may be open, and by whom. */
export interface Capacity {
  /** both ports together; the servers count in it */
  readonly pool: ConnectionPool
  /** one port: something is left for the other */
  readonly perPort: number
  /** of them WebSockets: something is left for requests */
  readonly webSockets: number
}

/** Wal, connections to ClickHouse and Redis, libraries, and what Node itself opens. */
const OWN_FILES = 512
/** Fewer than this would serve nobody; the start does not refuse a small machine for it. */
const LEAST = 100

/**
 * Shares the connections out. A server that runs out of files can accept nothing and close nothing
 * for want of it, so the limit of the process counts as much as the setting.
 */
export function planCapacity(
  maxConnections: number,
  log: Pick<Log, 'warn'>,
  openFiles = openFileLimit(),
): Capacity {
  const room = openFiles === null ? maxConnections : Math.max(LEAST, openFiles - OWN_FILES)
  const limit = Math.min(maxConnections, room)
  if (limit < maxConnections) {
    const text = `MAX_CONNECTIONS=${maxConnections} is lowered to ${limit}: raise the open-file limit (ulimit -n)`
    log.warn({ openFiles, needed: maxConnections + OWN_FILES }, text)
  }
  const perPort = Math.floor(limit * 0.9)
  return { pool: { limit, open: 0 }, perPort, webSockets: Math.floor(perPort * 0.9) }
}
