import type { Store } from '../clickhouse/client.js'
import type { State } from '../coordination/state.js'
import type { Pool } from '../ingest/pool.js'
import type { Wal } from '../wal/wal.js'
import type { Writer } from '../writer/writer.js'
import type { CheckName, Probe } from './health.js'

/** A server that answers and takes no batch for so long is reported. */
const REFUSING_MS = 3_000

interface Probed {
  readonly store: Pick<Store, 'ping'>
  readonly state: State
  readonly wal: Wal
  readonly pool: Pool
  readonly writer: Writer
}

/** How each dependency of the service is asked. */
export const healthProbes = ({
  store,
  state,
  wal,
  pool,
  writer,
}: Probed): Readonly<Record<CheckName, Probe>> => ({
  clickhouse: async (signal) => {
    await store.ping({ signal })
    const sinceMs = writer.failingSinceMs
    const refusingMs = sinceMs === null ? 0 : performance.now() - sinceMs
    if (refusingMs < REFUSING_MS) return { status: 'ok' }
    // Too many parts, no memory, read-only, or refused rows.
    const seconds = Math.round(refusingMs / 1000)
    return {
      status: 'degraded',
      detail: `ClickHouse has refused a batch for ${seconds} s; it waits in the write-ahead log`,
    }
  },
  state: async () => {
    await state.ping()
    return { status: 'ok', detail: state.kind }
  },
  spool: () => {
    if (wal.fault !== null)
      return { status: 'down', detail: 'the write-ahead log cannot be written' }
    return wal.isFull()
      ? { status: 'down', detail: 'the write-ahead log is full' }
      : { status: 'ok', detail: `${wal.bytes} bytes wait` }
  },
  workers: async () => {
    await pool.ping()
    return { status: 'ok', detail: `${pool.workers} threads` }
  },
})
