import type { ConnectionPool } from './connection-limits.js'
import { openFileLimit } from './open-files.js'
import type { Log } from '../telemetry/log.js'

/** Limits of open connections. */
export interface Capacity {
  /** The pool of all ports together, in which the servers count. */
  readonly pool: ConnectionPool
  /** The most connections of one port, so that the other one keeps a share. */
  readonly perPort: number
  /** The most WebSockets of one port, so that requests keep a share. */
  readonly webSockets: number
}

/** Files for other uses: the WAL, connections to ClickHouse and Redis, libraries, and Node.js itself. */
const OWN_FILES = 512
/** The limit never falls below this, whatever the open-file limit is. */
const LEAST = 100

/**
 * Divides the connections between ports and WebSockets. A server without free file descriptors can
 * accept no connection, so the open-file limit of the process bounds them as well.
 */
export function planCapacity(
  maxConnections: number,
  log: Pick<Log, 'warn'>,
  openFiles = openFileLimit(),
): Capacity {
  const available = openFiles === null ? maxConnections : Math.max(LEAST, openFiles - OWN_FILES)
  const limit = Math.min(maxConnections, available)
  if (limit < maxConnections) {
    const text = `MAX_CONNECTIONS=${maxConnections} is lowered to ${limit}: raise the open-file limit (ulimit -n)`
    log.warn({ openFiles, needed: maxConnections + OWN_FILES }, text)
  }
  const perPort = Math.floor(limit * 0.9)
  return { pool: { limit, open: 0 }, perPort, webSockets: Math.floor(perPort * 0.9) }
}
