import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import type { Config } from '../config.js'
import type { Priority } from '../model/event.js'
import { DAY_MS } from '../model/time.js'
import type { Cold } from '../retention/cold.js'
import type { EventCorrection } from '../wal/record.js'
import { createBoundedRange } from './bounded-range.js'
import { notingColdReads } from './cold-reads.js'
import { createContext } from './context.js'
import { createCounter, type CountBy, type Kept } from './counts.js'
import { createDensityReader } from './density.js'
import { createEventReader, toListed } from './event.js'
import { createFacets } from './facets.js'
import { exportEvents, type ExportDeps, type ExportQuery } from './export.js'
import { FEW_MATCHES } from './few-matches.js'
import { createFields } from './fields.js'
import { createHistogram } from './histogram.js'
import type { EventQuestion, RangeQuestion } from './occurrences.js'
import { readPage, type EventPage, type EventQuery } from './page.js'
import { MAX_AHEAD_MS } from './range-rows.js'
import { createPatternCheck } from './patterns.js'
import { createRemoval } from './removal.js'
import { createStats } from './stats.js'
import { createTraceReader } from './trace.js'

const sourcesSql = statement<{ readonly ids: readonly number[] }, { readonly source: string }>(
  'event_sources',
)
const dedupKeysSql = statement<
  { readonly source: string; readonly keys: readonly string[]; readonly since_ms: number },
  { readonly dedup_key: string }
>('event_dedup_keys')
const correctSql = statement<
  {
    readonly id: number
    readonly ts_ms: number
    readonly priority: Priority
    readonly reason: string
  },
  never
>('event_correct')

export type Events = ReturnType<typeof createEvents>

interface EventSettings {
  readonly config: Pick<Config, 'dedupWindowSeconds'>
  readonly retention: Kept & { readonly cold: Pick<Cold, 'untilMs'> }
  /** When an index finds at most this many matches, only their repeats are looked up (`few-matches.ts`). */
  readonly fewMatches?: number
}

/** A sender of webhooks waits for ten seconds or less. */
const STORED_KEYS_TIMEOUT_MS = 3_000
const DEFAULTS: EventSettings = {
  config: { dedupWindowSeconds: 60 },
  retention: { keptSinceMs: () => Date.now() - 90 * DAY_MS, cold: { untilMs: () => 0 } },
}

/** Reads and corrects events; no other module reads their table. */
export function createEvents(
  database: Pick<Store, 'query' | 'queryColumns' | 'change'>,
  { config, retention, fewMatches = FEW_MATCHES } = DEFAULTS,
) {
  const store = notingColdReads(database, retention.cold.untilMs)
  const density = createDensityReader(store)
  const counter = createCounter({ store, retention, fewMatches })
  const windowMs = config.dedupWindowSeconds * 1000
  const bounded = createBoundedRange(density, windowMs)
  const { get, counted, repeatsOf } = createEventReader(store)
  /** A page of events by time and id, newest first by default. Occurrences are those of the time range. */
  const page = async (query: EventQuery, signal?: AbortSignal): Promise<EventPage> => {
    const { rows, isCut } = await readPage({ store, density, windowMs }, query, signal)
    const [first, last] = [rows[0], rows.at(-1)]
    if (first === undefined || last === undefined) return { events: [], isCut }
    const ids = rows.map(({ id }) => id)
    const oldestMs = Math.min(first.ts_ms, last.ts_ms)
    const repeats = await repeatsOf(ids, oldestMs - MAX_AHEAD_MS, signal, query)
    const byId = new Map(repeats.map((row) => [row.id, row]))
    return { events: rows.map((row) => toListed(row, byId.get(row.id), query.fromMs)), isCut }
  }

  return {
    get,
    counted,
    page,
    context: createContext(page),
    trace: createTraceReader(page),
    refusedPattern: createPatternCheck(store),
    removal: createRemoval(store),
    /** The time range of a question, which ends now when it has no end. */
    rangeOf: ({ filter, fromMs, toMs }: EventQuestion, nowMs: number): RangeQuestion => ({
      filter,
      fromMs,
      toMs: toMs ?? nowMs,
      endMs: Math.min(toMs ?? nowMs, nowMs),
      windowMs,
    }),
    histogram: createHistogram({ store, counter, bounded }),
    facets: createFacets({ store, counter, bounded }),
    stats: createStats({ store, counter, bounded }),
    fields: createFields({ store, counter, bounded }),
    /** Counts by one field. */
    counts: (question: EventQuestion, by: CountBy, signal?: AbortSignal) =>
      bounded(question, signal, (range, options) => counter.countBy(range, by, options)),
    rolledUpCounts: counter.rolledUpCounts,

    exported: (query: ExportQuery, asker: Pick<ExportDeps, 'ask' | 'signal'>) =>
      exportEvents(query, { store, density, windowMs, ...asker }),

    /** The distinct sources of the given events, as far as those exist. */
    sourcesOf: async (ids: readonly number[]): Promise<readonly string[]> =>
      ids.length === 0 ? [] : (await store.query(sourcesSql, { ids })).map(({ source }) => source),

    /** Finds which deduplication keys belong to events of a source that arrived since a time. */
    storedKeys: (source: string, keys: readonly string[], sinceMs: number) =>
      storedKeys(store, { source, keys, since_ms: sinceMs }),
    correct: async ({ id, tsMs, priority, reason }: EventCorrection): Promise<void> => {
      await store.change(correctSql.sql, { id, ts_ms: tsMs, priority, reason })
    },
  }
}

async function storedKeys(
  store: Pick<Store, 'query'>,
  asked: { readonly source: string; readonly keys: readonly string[]; readonly since_ms: number },
): Promise<ReadonlySet<string>> {
  const rows = await store.query(dedupKeysSql, asked, { timeoutMs: STORED_KEYS_TIMEOUT_MS })
  return new Set(rows.map((row) => row.dedup_key))
}
