import type { Severity } from '../model/event.js'
import type {
  AnomalyKind,
  AnomalyScope,
  AnomalyState,
  InsightAnomaly,
  InsightSnapshot,
} from '../model/insights.js'
import { clearTable } from '../clickhouse/clear-table.js'
import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { gravityOf } from './gravity.js'

export type StoredAnomaly = InsightAnomaly

export interface AnomalyPosition {
  readonly startedAtMs: number
  readonly id: string
}

/** Filters of anomalies; an empty list matches any. */
export interface AnomalyQuery {
  /** Selects the anomalies detected by this time, in their state at this time. */
  readonly atMs: number
  /** The earliest beginning. */
  readonly sinceMs: number
  readonly after: AnomalyPosition | null
  readonly states: readonly string[]
  readonly scopes: readonly string[]
  readonly kinds: readonly string[]
  readonly sources: readonly string[]
  readonly severities: readonly string[]
  readonly templates: readonly string[]
  readonly ids: readonly string[]
  readonly leastScore: number
  /** Leaves out what is part of a wider anomaly. */
  readonly wholeOnly: boolean
  readonly limit: number
}

export const ANY_ANOMALY: AnomalyQuery = {
  atMs: Number.MAX_SAFE_INTEGER,
  sinceMs: 0,
  after: null,
  states: [],
  scopes: [],
  kinds: [],
  sources: [],
  severities: [],
  templates: [],
  ids: [],
  leastScore: 0,
  wholeOnly: false,
  limit: 1,
}

export interface StoredSnapshot {
  readonly generatedAtMs: number
  readonly snapshot: InsightSnapshot
}

type PageRow = {
  readonly id: string
  readonly started: number
  readonly ended: number
  readonly detected: number
  readonly state_then: AnomalyState
  readonly scope: AnomalyScope
  readonly kind: AnomalyKind
  readonly source: string
  readonly severity: Severity | ''
  readonly template_id: string
  readonly observed: number
  readonly expected: number
  readonly expected_least: number
  readonly expected_most: number
  readonly score: number
  readonly part_of: string
}

const snapshotSql = statement<
  { readonly at: number },
  { readonly generated_ms: number; readonly doc: string }
>('insight_snapshot')
const pageSql = statement<Readonly<Record<string, unknown>>, PageRow>('insight_anomaly_page')

const MAX_S = 0xffff_ffff
const options = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })
const toSeconds = (ms: number): number => Math.min(MAX_S, Math.max(0, Math.floor(ms / 1000)))
const iso = (ms: number): string => new Date(ms).toISOString()

export type InsightStore = ReturnType<typeof createInsightStore>

/** The tables of insights: one snapshot for each hour, and every anomaly found. */
export const createInsightStore = (store: Store) => ({
  saveSnapshot: ({ generatedAtMs, snapshot }: StoredSnapshot): Promise<void> =>
    store.insertRows('insight_snapshots', [
      {
        as_of: iso(snapshot.asOfMs),
        generated_at: iso(generatedAtMs),
        doc: JSON.stringify(snapshot),
      },
    ]),
  /** @returns the last snapshot whose data end at a time or before it */
  async snapshotAt(atMs: number, signal?: AbortSignal): Promise<StoredSnapshot | null> {
    const [row] = await store.query(snapshotSql, { at: toSeconds(atMs) }, options(signal))
    if (row === undefined) return null
    const snapshot = JSON.parse(row.doc) as InsightSnapshot // saveSnapshot wrote it
    return { generatedAtMs: row.generated_ms, snapshot }
  },
  /** Replaces rows of the same id and beginning. */
  saveAnomalies: (anomalies: readonly StoredAnomaly[], versionMs: number): Promise<void> =>
    store.insertRows(
      'insight_anomalies',
      anomalies.map((each) => toRow(each, versionMs)),
    ),
  /** @returns the newest beginning first */
  async anomalies(query: AnomalyQuery, signal?: AbortSignal): Promise<readonly StoredAnomaly[]> {
    return (await store.query(pageSql, toParams(query), options(signal))).map(toAnomaly)
  },
  async removeSources(sources: readonly string[]): Promise<void> {
    const sql = 'DELETE FROM insight_anomalies WHERE source IN {sources:Array(String)}'
    await store.change(sql, { sources })
  },
  async clear(): Promise<void> {
    await clearTable(store, 'insight_anomalies')
    await clearTable(store, 'insight_snapshots')
  },
})

const toParams = ({ atMs, sinceMs, after, leastScore, wholeOnly, ...lists }: AnomalyQuery) => ({
  ...lists,
  at: toSeconds(atMs),
  since: toSeconds(sinceMs),
  before: after === null ? MAX_S : toSeconds(after.startedAtMs),
  before_id: after?.id ?? '~',
  least_score: leastScore,
  whole: wholeOnly ? 1 : 0,
})

const toRow = (anomaly: StoredAnomaly, versionMs: number): object => ({
  started_at: iso(anomaly.startedAtMs),
  id: anomaly.id,
  version: versionMs * 1000,
  ended_at: iso(anomaly.endedAtMs),
  detected_at: iso(anomaly.detectedAtMs),
  state: anomaly.state,
  scope: anomaly.scope,
  kind: anomaly.kind,
  source: anomaly.source,
  severity: anomaly.severity ?? '',
  template_id: anomaly.templateId ?? '',
  observed: anomaly.observed,
  expected: anomaly.expected,
  expected_least: anomaly.expectedLeast,
  expected_most: anomaly.expectedMost,
  score: anomaly.score,
  part_of: anomaly.partOf ?? '',
})

/** Gravity is computed from the rest. That of a leader does not include its group here. */
const toAnomaly = (row: PageRow): StoredAnomaly => {
  const anomaly = fieldsOf(row)
  return { ...anomaly, gravity: gravityOf(anomaly) }
}

const fieldsOf = (row: PageRow): Omit<StoredAnomaly, 'gravity'> => ({
  id: row.id,
  scope: row.scope,
  kind: row.kind,
  state: row.state_then,
  source: row.source,
  severity: row.severity === '' ? null : row.severity,
  templateId: row.template_id === '' ? null : row.template_id,
  startedAtMs: row.started * 1000,
  endedAtMs: row.ended * 1000,
  detectedAtMs: row.detected * 1000,
  observed: row.observed,
  expected: row.expected,
  expectedLeast: row.expected_least,
  expectedMost: row.expected_most,
  score: row.score,
  partOf: row.part_of === '' ? null : row.part_of,
})
