import {
  EVENT_TYPES,
  PRIORITIES,
  SEVERITIES,
  type Priority,
  type Severity,
} from '../../src/model/event.js'
import type { Store } from '../../src/clickhouse/client.js'
import { migrate } from '../../src/clickhouse/migrate.js'
import { toStoredTags } from '../../src/model/stored-tags.js'
import { quietLog } from './clickhouse.js'
import { MINUTE_MS, DAY_MS } from '../../src/model/time.js'

/** A row of the landing table with the columns that the rollups read. */
export interface LandingRow {
  readonly id: number
  readonly isNew: boolean
  readonly n: number
  readonly receivedMs: number
  readonly tsMs: number
  readonly source: string
  readonly severity: Severity
  readonly priority: Priority
  readonly confidence: number
  readonly modelVersion: string
  /** 16 hex digits. */
  readonly templateId: string
  readonly host?: string
  readonly message?: string
}

/** Applies the schema with a retention that keeps data of any year. */
export const applySchema = (store: Store): Promise<void> =>
  migrate(store, { numbers: { rollup_days: 20_031 }, log: quietLog })

/** The columns of a row for its tags. */
export function tagColumns(tags: object): {
  readonly attribute_names: string
  readonly attribute_values: string
  readonly tags_text: string
} {
  const json = Object.keys(tags).length === 0 ? '' : JSON.stringify(tags)
  const { names, values, text } = toStoredTags(tags, json)
  return { attribute_names: names, attribute_values: values, tags_text: text }
}

const iso = (ms: number): string => new Date(ms).toISOString()

export async function insertLanding(store: Store, rows: readonly LandingRow[]): Promise<void> {
  const values = rows.map((row) => ({
    id: row.id,
    is_new: row.isNew ? 1 : 0,
    n: row.n,
    received_at: iso(row.receivedMs),
    ts: iso(row.tsMs),
    source: row.source,
    type: EVENT_TYPES[0],
    severity: row.severity,
    priority: row.priority,
    confidence: row.confidence,
    model_version: row.modelVersion,
    template_id: BigInt(`0x${row.templateId}`).toString(),
    host: row.host ?? '',
    variables: row.message ?? `message of ${row.id}`,
  }))
  // Several batches, so that queries have to sum rows of the rollups.
  const batch = Math.max(1, Math.ceil(values.length / 3))
  for (let from = 0; from < values.length; from += batch)
    await store.insertRows('landing', values.slice(from, from + batch))
}

/** A seeded generator of numbers in [0, 1) (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = Math.imul(state ^ (state >>> 15), state | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface RandomOptions {
  readonly seed: number
  readonly rows: number
  /** Event times are in [startMs, endMs], denser towards the end. */
  readonly startMs: number
  readonly endMs: number
  readonly sources: readonly string[]
  readonly templates: readonly string[]
}

/** Events with repeats, late ones among them, and corrections that move counts to another priority. */
export function randomRows(options: RandomOptions): readonly LandingRow[] {
  const random = seeded(options.seed)
  const pick = <T>(values: readonly T[]): T => {
    const value = values[Math.floor(random() * values.length)]
    if (value === undefined) throw new Error('nothing to pick from')
    return value
  }
  // The current time, because rows that arrived years ago are past their retention.
  const arrivals = [40, 9, 1, 0].map((days) => Date.now() - days * DAY_MS)
  const rows: LandingRow[] = []
  for (let id = 1; rows.length < options.rows; id++) {
    const share = random() ** pick([1, 4, 16, 64])
    const tsMs = Math.floor(options.endMs - share * (options.endMs - options.startMs))
    const row: LandingRow = {
      id,
      isNew: true,
      n: 1 + Math.floor(random() * 3),
      receivedMs: pick(arrivals.filter((arrival) => arrival >= tsMs - DAY_MS)),
      tsMs,
      source: pick(options.sources),
      severity: pick(SEVERITIES),
      priority: pick(PRIORITIES),
      confidence: Math.fround(random()),
      modelVersion: pick(['rules-1', 'rules-2']),
      templateId: pick(options.templates),
    }
    rows.push(row)
    const repeat = { ...row, isNew: false, confidence: 0, modelVersion: '' }
    if (random() < 0.3) {
      const later = Math.floor(Math.min(options.endMs, row.tsMs + random() * MINUTE_MS))
      rows.push({ ...repeat, n: 2, tsMs: later, receivedMs: row.receivedMs })
    }
    if (random() < 0.1) {
      const to = pick(PRIORITIES)
      rows.push({ ...repeat, n: -row.n }, { ...repeat, n: row.n, priority: to })
    }
  }
  return rows
}

/** Sums over rows in JavaScript, as the oracle of the rollups. */
export const occurrences = (
  rows: readonly LandingRow[],
  isMeant: (row: LandingRow) => boolean = () => true,
): number => rows.reduce((sum, row) => (isMeant(row) ? sum + row.n : sum), 0)

export const secondOf = (row: LandingRow): number => Math.floor(row.tsMs / 1000)

export const isError = (row: LandingRow): boolean =>
  row.severity === 'ERROR' || row.severity === 'CRITICAL'
