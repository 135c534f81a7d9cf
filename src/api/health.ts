import type { Alerting } from '../alerting/alerting.js'
import type { Instance } from '../coordination/instance.js'
import type { Pool } from '../ingest/pool.js'
import { counted } from '../lib/counted.js'
import type { Wal } from '../wal/wal.js'
import { MINUTE_MS } from '../model/time.js'
import type { Retention } from '../retention/retention.js'
import type { Writer } from '../writer/writer.js'

/** The state of one dependency. */
interface ProbeResult {
  readonly status: 'ok' | 'degraded' | 'down'
  /** Details for authenticated users, without secrets and credentials. */
  readonly detail?: string
  /** The age of the oldest message that waits for ClickHouse; 0 for none. */
  readonly oldestMs?: number
}

/** Checks one dependency; an exception means down. */
export type Probe = (signal: AbortSignal) => Promise<ProbeResult> | ProbeResult

export type CheckName = 'clickhouse' | 'state' | 'spool' | 'workers' | 'alerts'

interface Check extends ProbeResult {
  readonly latencyMs: number
}

export interface HealthReport {
  readonly status: 'ok' | 'degraded' | 'down'
  readonly checks: Readonly<Record<CheckName, Check>>
}

export interface Health {
  /** Never rejects; takes as long as the slowest probe, at most `timeoutMs`. */
  report(): Promise<HealthReport>
}

/** The API promises an answer within two seconds. */
const TIMEOUT_MS = 1_500
/** How long a result is reused. The endpoint is public, so concurrent callers share one round of probes. */
const FRESH_MS = 1_000

interface HealthOptions {
  readonly timeoutMs?: number
  readonly freshMs?: number
}

/**
 * The service is down without ClickHouse, the WAL (check `spool`) or the workers. It is degraded
 * without the shared state, which holds limits and caches, or when alerts are not raised or notices
 * not sent.
 */
export function createHealth(
  probes: Readonly<Record<CheckName, Probe>>,
  { timeoutMs = TIMEOUT_MS, freshMs = FRESH_MS }: HealthOptions = {},
): Health {
  const checks = {
    clickhouse: createCheck(probes.clickhouse, timeoutMs),
    state: createCheck(probes.state, timeoutMs),
    spool: createCheck(probes.spool, timeoutMs),
    workers: createCheck(probes.workers, timeoutMs),
    alerts: createCheck(probes.alerts, timeoutMs),
  }
  let current: { readonly report: Promise<HealthReport>; readonly sinceMs: number } | null = null
  const ask = async (): Promise<HealthReport> => {
    const [clickhouse, state, spool, workers, alerts] = await Promise.all([
      checks.clickhouse(),
      checks.state(),
      checks.spool(),
      checks.workers(),
      checks.alerts(),
    ])
    const found = { clickhouse, state, spool, workers, alerts }
    return { status: overall(found), checks: found }
  }
  return {
    report() {
      const nowMs = performance.now()
      if (current === null || nowMs - current.sinceMs >= freshMs) {
        current = { report: ask(), sinceMs: nowMs }
      }
      return current.report
    },
  }
}

function overall(checks: HealthReport['checks']): HealthReport['status'] {
  const { state, alerts, ...vital } = checks
  const statuses = Object.values(vital).map(({ status }) => status)
  if (statuses.includes('down')) return 'down'
  const isWhole = state.status === 'ok' && alerts.status === 'ok'
  return !isWhole || statuses.includes('degraded') ? 'degraded' : 'ok'
}

/** A pending probe is not started again, so that hung probes do not pile up. */
function createCheck(probe: Probe, timeoutMs: number): () => Promise<Check> {
  let pending: Promise<ProbeResult> | null = null
  const start = (): Promise<ProbeResult> => {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(), timeoutMs)
    const result = Promise.resolve()
      .then(() => probe(controller.signal))
      .catch((error: unknown): ProbeResult => ({ status: 'down', detail: reasonOf(error) }))
      .finally(() => {
        clearTimeout(timer)
        pending = null
      })
    pending = result
    return result
  }
  return async () => {
    const startedMs = performance.now()
    const result = await within(pending ?? start(), timeoutMs)
    return { ...result, latencyMs: Math.round((performance.now() - startedMs) * 10) / 10 }
  }
}

/** @param result never rejects */
async function within(result: Promise<ProbeResult>, timeoutMs: number): Promise<ProbeResult> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<ProbeResult>((resolve) => {
    const detail = `no answer within ${timeoutMs} ms`
    timer = setTimeout(() => resolve({ status: 'down', detail }), timeoutMs)
  })
  try {
    return await Promise.race([result, late])
  } finally {
    clearTimeout(timer)
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.slice(0, 300) : 'unknown fault'

/** The WAL is reported as degraded when its oldest record has waited for this long; a record under load waits a few seconds. */
const OLD_MS = MINUTE_MS
/** ClickHouse is reported as degraded when it has refused a batch for this long. */
const REFUSING_MS = 3_000

interface Probed extends Pick<Instance, 'store' | 'state'> {
  readonly wal: Wal
  readonly pool: Pool
  readonly writer: Writer
  readonly retention: Retention
  readonly alerting: Alerting
}

export const healthProbes = ({
  store,
  state,
  wal,
  pool,
  writer,
  retention,
  alerting,
}: Probed): Readonly<Record<CheckName, Probe>> => ({
  clickhouse: async (signal) => {
    await store.ping({ signal })
    const sinceMs = writer.failingSinceMs
    const refusingMs = sinceMs === null ? 0 : performance.now() - sinceMs
    if (refusingMs < REFUSING_MS) {
      const told = retention.told()
      return told === null ? { status: 'ok' } : { status: 'degraded', detail: told }
    }
    // ClickHouse has too many parts, no memory or is read-only, or it refused rows.
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
    if (wal.isDiskFull)
      return {
        status: 'down',
        detail: 'the disk of the write-ahead log is full: it has too few bytes or inodes',
      }
    if (wal.fault !== null)
      return { status: 'down', detail: 'the write-ahead log cannot be written' }
    if (wal.isFull()) return { status: 'down', detail: 'the write-ahead log is full' }
    const { oldestMs } = wal
    return oldestMs > OLD_MS
      ? { status: 'degraded', detail: `events wait for ${Math.round(oldestMs / 1000)} s`, oldestMs }
      : { status: 'ok', detail: `${wal.bytes} B wait`, oldestMs }
  },
  workers: async () => {
    await pool.ping()
    return { status: 'ok', detail: counted(pool.workers, 'thread') }
  },
  alerts: async () => {
    const detail = await alerting.problem()
    return detail === null ? { status: 'ok' } : { status: 'degraded', detail }
  },
})
