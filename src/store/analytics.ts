import { SEVERITIES, type Severity } from '../model/event.js'
import { STEP_S, WINDOWS, alignDown, startOfWindow, type Window } from '../model/window.js'
import type { Store } from './client.js'
import { statement } from './statement.js'

export interface SeverityCount {
  readonly severity: Severity
  readonly count: number
}

export interface TopSource {
  readonly source: string
  readonly count: number
  /** of these ERROR and CRITICAL */
  readonly errors: number
  /** event time of its latest, ms since 1970 */
  readonly lastEventAtMs: number
}

export interface StoredBucket {
  /** start, ISO 8601 */
  readonly t: string
  readonly stored: number
  readonly dlq: number
}

/**
 * Counts of occurrences in windows that end now. A window begins at a whole second (`5s`), minute (up to
 * `24h`) or hour (longer); what lies in the future is not in it. Counts are exact to the second.
 */
export interface Analytics {
  /** @param sources empty = any */
  severities(
    window: Window,
    sources: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly SeverityCount[]>
  /** Most occurrences first, ties by name. */
  topSources(window: Window, limit: number, signal?: AbortSignal): Promise<readonly TopSource[]>
  /** Stored occurrences by event time and dead letters by arrival; ascending, no empty buckets. */
  deadVsStored(window: Window, signal?: AbortSignal): Promise<readonly StoredBucket[]>
}

type Span = { readonly from: number; readonly until: number }

type SeverityRow = {
  readonly debug: number
  readonly info: number
  readonly warning: number
  readonly error: number
  readonly critical: number
}

const severitiesSql = statement<Span & { readonly sources: readonly string[] }, SeverityRow>(
  'analytics_severities',
)
const sourcesSql = statement<
  Span & { readonly limit: number },
  {
    readonly source: string
    readonly occurrences: number
    readonly errors: number
    readonly last_ms: number
  }
>('analytics_sources')
const storedSql = statement<
  Span & { readonly step: number },
  { readonly bucket: number; readonly stored: number }
>('analytics_stored')
const deadSql = statement<
  { readonly from_ms: number; readonly to_ms: number; readonly step: number },
  { readonly bucket: number; readonly dead: number }
>('analytics_dead')

export function createAnalytics(store: Store, nowMs: () => number = Date.now): Analytics {
  const options = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })
  return {
    async severities(window, sources, signal) {
      const params = { ...spanOf(window, nowMs()), sources }
      const [row] = await store.query(severitiesSql, params, options(signal))
      return SEVERITIES.map((severity) => ({ severity, count: severityCount(row, severity) }))
    },
    async topSources(window, limit, signal) {
      const params = { ...spanOf(window, nowMs()), limit }
      const rows = await store.query(sourcesSql, params, options(signal))
      return rows.map(({ source, occurrences, errors, last_ms }) => ({
        source,
        count: occurrences,
        errors,
        lastEventAtMs: last_ms,
      }))
    },
    async deadVsStored(window, signal) {
      const now = nowMs()
      const span = spanOf(window, now)
      const step = STEP_S[WINDOWS[window].granularity]
      const dead = { from_ms: span.from * 1000, to_ms: now, step }
      const [stored, dlq] = await Promise.all([
        store.query(storedSql, { ...span, step }, options(signal)),
        store.query(deadSql, dead, options(signal)),
      ])
      return mergeBuckets(stored, dlq)
    },
  }
}

/** The window up to and including the running second. */
function spanOf(window: Window, nowMs: number): Span {
  const nowS = Math.floor(nowMs / 1000)
  return { from: alignDown(startOfWindow(window, nowS), startStepS(window)), until: nowS + 1 }
}

/** The step of the rollup that serves the far end of a window. */
function startStepS(window: Window): number {
  const { granularity } = WINDOWS[window]
  if (granularity === 'second') return 1
  return granularity === 'day' ? 3_600 : 60
}

function severityCount(row: SeverityRow | undefined, severity: Severity): number {
  if (row === undefined) return 0
  const columns = {
    DEBUG: row.debug,
    INFO: row.info,
    WARNING: row.warning,
    ERROR: row.error,
    CRITICAL: row.critical,
  } as const satisfies Record<Severity, number>
  return columns[severity]
}

function mergeBuckets(
  stored: readonly { readonly bucket: number; readonly stored: number }[],
  dead: readonly { readonly bucket: number; readonly dead: number }[],
): readonly StoredBucket[] {
  const storedAt = new Map(stored.map((row) => [row.bucket, row.stored]))
  const deadAt = new Map(dead.map((row) => [row.bucket, row.dead]))
  const buckets = [...new Set([...storedAt.keys(), ...deadAt.keys()])].toSorted((a, b) => a - b)
  return buckets.map((bucket) => ({
    t: new Date(bucket * 1000).toISOString(),
    stored: storedAt.get(bucket) ?? 0,
    dlq: deadAt.get(bucket) ?? 0,
  }))
}
