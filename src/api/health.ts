/** How one dependency stands. */
export interface ProbeResult {
  readonly status: 'ok' | 'degraded' | 'down'
  /** for operators: no secrets, no addresses with credentials */
  readonly detail?: string
}

/** Asks one dependency; what it throws means down. */
export type Probe = (signal: AbortSignal) => Promise<ProbeResult> | ProbeResult

const CHECKS = ['clickhouse', 'state', 'spool', 'workers'] as const
export type CheckName = (typeof CHECKS)[number]

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

/** The interface allows about two seconds for the whole answer. */
const TIMEOUT_MS = 1_500
/** Many callers share one round of probes: the endpoint is public. */
const FRESH_MS = 1_000

interface HealthOptions {
  readonly timeoutMs?: number
  readonly freshMs?: number
}

/**
 * Without ClickHouse, spool or workers no event can be taken or asked for: down. Without the state
 * limits and caches are missing: degraded.
 */
export function createHealth(
  probes: Readonly<Record<CheckName, Probe>>,
  { timeoutMs = TIMEOUT_MS, freshMs = FRESH_MS }: HealthOptions = {},
): Health {
  const checks = Object.fromEntries(
    CHECKS.map((name) => [name, createCheck(probes[name], timeoutMs)]),
  ) as Record<CheckName, () => Promise<Check>> // one for each name
  let current: { readonly report: Promise<HealthReport>; readonly sinceMs: number } | null = null
  const ask = async (): Promise<HealthReport> => {
    const [clickhouse, state, spool, workers] = await Promise.all([
      checks.clickhouse(),
      checks.state(),
      checks.spool(),
      checks.workers(),
    ])
    const found = { clickhouse, state, spool, workers }
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
  const { state, ...vital } = checks
  const statuses = Object.values(vital).map(({ status }) => status)
  if (statuses.includes('down')) return 'down'
  return state.status !== 'ok' || statuses.includes('degraded') ? 'degraded' : 'ok'
}

/** A probe that does not come back is not started a second time: hung ones must not pile up. */
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
