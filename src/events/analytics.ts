import { SEVERITIES, type Severity } from '../model/event.js'
import { STEP_S, WINDOWS, alignDown, startOfWindow, type Window } from '../model/window.js'
import type { Store } from '../clickhouse/client.js'
import type { SourceStats } from './source-stats.js'
import { statement } from '../clickhouse/statement.js'
import { HOUR_S } from '../model/time.js'

export interface SeverityCount {
  readonly severity: Severity
  readonly count: number
}

export interface TopSource {
  readonly source: string
  readonly count: number
  /** Occurrences of ERROR and CRITICAL. */
  readonly errors: number
  /** Messages that could not be stored, by arrival. */
  readonly deadLetters: number
  /** Event time of the latest event. */
  readonly lastEventAtMs: number
}

export interface StoredBucket {
  /** ISO 8601. */
  readonly t: string
  readonly stored: number
  readonly dlq: number
}

type Span = { readonly from: number; readonly until: number }

/** A span and the rollup that covers it in whole steps. */
type Piece = Span & { readonly rollup: 'series_1s' | 'series_1m' | 'series_1h' }

type SeverityRow = {
  readonly debug: number
  readonly info: number
  readonly warning: number
  readonly error: number
  readonly critical: number
}

const severitiesSql = statement<Piece & { readonly sources: readonly string[] }, SeverityRow>(
  'analytics_severities',
)
const sourcesSql = statement<
  Edges & { readonly limit: number },
  { readonly source: string; readonly occurrences: number; readonly errors: number }
>('analytics_sources')
const storedSql = statement<
  Piece & { readonly step: number },
  { readonly bucket: number; readonly stored: number }
>('analytics_stored')
const deadSql = statement<
  { readonly from_ms: number; readonly to_ms: number; readonly step: number },
  { readonly bucket: number; readonly dead: number }
>('analytics_dead')

interface AnalyticsDeps {
  readonly store: Pick<Store, 'query'>
  readonly sourceStats: Pick<SourceStats, 'totals' | 'deadLetters'>
  readonly nowMs?: () => number
}

/**
 * Counts of occurrences in windows that end now, from the rollups. A window begins at a whole
 * second (`5s`), minute (up to `24h`) or hour (longer) and ends with the current second. It is
 * split into pieces, each read from the coarsest rollup that holds it exactly: minutes up to the
 * first whole hour, hours, minutes, and the seconds of the current minute. Counts are therefore
 * exact to the second, and a wide window costs what a narrow one does.
 */
export function createAnalytics({ store, sourceStats, nowMs = Date.now }: AnalyticsDeps) {
  const options = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })
  return {
    /** @param sources an empty list matches any source */
    severities: async (
      window: Window,
      sources: readonly string[],
      signal?: AbortSignal,
    ): Promise<readonly SeverityCount[]> => {
      const rows = await Promise.all(
        piecesOf(edgesOf(window, nowMs())).map(async (piece) => {
          const [row] = await store.query(severitiesSql, { ...piece, sources }, options(signal))
          return row
        }),
      )
      return SEVERITIES.map((severity) => ({
        severity,
        count: rows.reduce((sum, row) => sum + severityCount(row, severity), 0),
      }))
    },
    /** Most occurrences first, ties by name. */
    topSources: async (
      window: Window,
      limit: number,
      signal?: AbortSignal,
    ): Promise<readonly TopSource[]> => {
      const now = nowMs()
      const edges = edgesOf(window, now)
      const [rows, totals] = await Promise.all([
        store.query(sourcesSql, { ...edges, limit }, options(signal)),
        sourceStats.totals(null, signal),
      ])
      const sources = rows.map(({ source }) => source)
      const span = { fromMs: edges.from * 1000, toMs: now }
      const dead = await sourceStats.deadLetters(sources, span, signal)
      return rows.map(({ source, occurrences, errors }) => ({
        source,
        count: occurrences,
        errors,
        deadLetters: dead.get(source) ?? 0,
        lastEventAtMs: totals.get(source)?.lastEventAtMs ?? 0,
      }))
    },
    /** Stored occurrences by event time and dead letters by arrival; ascending, no empty buckets. */
    deadVsStored: async (
      window: Window,
      signal?: AbortSignal,
    ): Promise<readonly StoredBucket[]> => {
      const now = nowMs()
      const edges = edgesOf(window, now)
      const step = STEP_S[WINDOWS[window].granularity]
      const dead = { from_ms: edges.from * 1000, to_ms: now, step }
      const [dlq, ...stored] = await Promise.all([
        store.query(deadSql, dead, options(signal)),
        ...piecesOf(edges).map((piece) =>
          store.query(storedSql, { ...piece, step }, options(signal)),
        ),
      ])
      return mergeBuckets(stored.flat(), dlq)
    },
  }
}

/** The boundaries between the pieces of a window, s since 1970. */
interface Edges {
  readonly [name: string]: number
  readonly from: number
  readonly first_hour: number
  readonly last_hour: number
  readonly last_minute: number
  readonly until: number
}

function edgesOf(window: Window, nowMs: number): Edges {
  const nowS = Math.floor(nowMs / 1000)
  const { granularity } = WINDOWS[window]
  const until = nowS + 1
  const step = granularity === 'second' ? 1 : granularity === 'day' ? HOUR_S : STEP_S.minute
  const from = alignDown(startOfWindow(window, nowS), step)
  if (granularity === 'second')
    return { from, first_hour: from, last_hour: from, last_minute: from, until }
  const last_minute = alignDown(until, STEP_S.minute)
  const [first, last] = [alignDown(from + HOUR_S - 1, HOUR_S), alignDown(until, HOUR_S)]
  const [first_hour, last_hour] = first < last ? [first, last] : [from, from]
  return { from, first_hour, last_hour, last_minute, until }
}

function piecesOf({ from, first_hour, last_hour, last_minute, until }: Edges): readonly Piece[] {
  const pieces: readonly Piece[] = [
    { rollup: 'series_1m', from, until: first_hour },
    { rollup: 'series_1h', from: first_hour, until: last_hour },
    { rollup: 'series_1m', from: last_hour, until: last_minute },
    { rollup: 'series_1s', from: last_minute, until },
  ]
  return pieces.filter((piece) => piece.from < piece.until)
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
  const storedAt = new Map<number, number>()
  // Two rollups may meet within a bucket.
  for (const row of stored) storedAt.set(row.bucket, (storedAt.get(row.bucket) ?? 0) + row.stored)
  const deadAt = new Map(dead.map((row) => [row.bucket, row.dead]))
  const buckets = [...new Set([...storedAt.keys(), ...deadAt.keys()])].toSorted((a, b) => a - b)
  return buckets.map((bucket) => ({
    t: new Date(bucket * 1000).toISOString(),
    stored: storedAt.get(bucket) ?? 0,
    dlq: deadAt.get(bucket) ?? 0,
  }))
}
