/*
 * Exports all events of a query. Events are read in chunks of a few megabytes, each with a
 * statement that continues after the last event of the chunk before. A slow client therefore holds
 * no statement open, memory is constant, and an outage of ClickHouse is survived by repeating the
 * statement. The next chunk is read while the lines of the current one are written, in parts, each
 * as soon as the client has taken the one before. A statement reads one range of events, sized by
 * the counts of the rollups, so that it ends soon even when nothing matches. The sizes of ranges
 * and chunks adapt to the duration of earlier statements.
 */

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

import type { QueryParams, RequestOptions, Store } from '../clickhouse/client.js'
import { isTooCostly } from '../clickhouse/failure.js'
import type { NativeBlock } from '../clickhouse/native-reader.js'
import { statement, type Statement } from '../clickhouse/statement.js'
import { backoffMs } from '../lib/backoff.js'
import { AppError } from '../model/errors.js'
import { renamed } from './bind.js'
import { toConditions } from './conditions.js'
import type { DensityReader } from './density.js'
import { createDictionary, type Dictionary } from './dictionary-matches.js'
import type { ExportLines } from './export-columns.js'
import type { LinePart } from './export-lines.js'
import { matchesNothing, type EventFilter } from './filter.js'
import { beginningMs, repeatedWithin } from './occurrences.js'
import {
  beyondPosition,
  END_MS,
  MAX_AHEAD_MS,
  type EventPosition,
  type Order,
} from './range-rows.js'

export interface ExportQuery {
  readonly filter: EventFilter
  readonly fromMs: number
  /** Exclusive; null for now. */
  readonly toMs: number | null
  readonly order: Order
  /** The last event that the client has; null for none. */
  readonly after: EventPosition | null
  readonly lines: ExportLines
}

type Chunk = readonly NativeBlock[]

export interface ExportDeps {
  readonly store: Pick<Store, 'queryColumns' | 'query'>
  readonly density: DensityReader
  /** How long after its first occurrence an event can be repeated. */
  readonly windowMs: number
  /** Waits until the user's limit on running queries allows another one. */
  readonly ask: <T>(work: () => Promise<T>) => Promise<T>
  readonly signal: AbortSignal
}

const exportSql = statement<QueryParams, never>('event_export')
const repeatsSql = statement<QueryParams, never>('event_export_repeats')

/** Larger chunks gain little: 50,000 rows take 0.12 s of CPU, 200,000 take 0.55 s. */
const CHUNK_BYTES = 12 * 1024 * 1024
/** A larger result is refused, and fewer rows are read then. */
const MAX_CHUNK_BYTES = 4 * CHUNK_BYTES
const FIRST_ROWS = 1_000
const MIN_ROWS = 20
const MAX_ROWS = 50_000
const MAX_GROWTH = 8
/** The events of the smallest range. */
const RANGE_EVENTS = 250_000
const MAX_RANGES = 32
const MAX_BOUNDS = 10_000
/** About the time of a statement that finds few events. */
const FAST_MS = 400
const SLOW_MS = 1_500
/** An outage of ClickHouse that is longer ends the export. */
const OUTAGE_MS = 60_000
const RETRY = { baseMs: 250, maxMs: 5_000 }

const SETTINGS = {
  max_threads: 2,
  max_result_bytes: String(MAX_CHUNK_BYTES),
  result_overflow_mode: 'throw',
  // A complete result is sent from memory instead of a file.
  http_response_buffer_size: String(MAX_CHUNK_BYTES),
} as const

/**
 * @throws AppError or StoreError when ClickHouse refuses the query, or does not answer for a minute
 */
export async function* exportEvents(
  query: ExportQuery,
  deps: ExportDeps,
): AsyncGenerator<LinePart> {
  const toMs = Math.min(query.toMs ?? END_MS, END_MS)
  if (toMs <= query.fromMs || matchesNothing(query.filter)) return
  const reader = await createChunkReader({ ...query, toMs }, deps)
  let next = reader()
  for (;;) {
    const blocks = await next
    if (blocks === null) return
    next = reader()
    // The client may take long or disconnect, so a rejection is handled even if nobody awaits it.
    next.catch(() => undefined)
    for (const block of blocks)
      for (const part of query.lines.write(block)) {
        yield part
        // Lets other requests run, because writing to a fast client never waits.
        await nextTurn()
      }
  }
}

const endAfter = (after: EventPosition | null): number => (after === null ? END_MS : after.tsMs + 1)

interface Span {
  readonly fromMs: number
  readonly toMs: number
  /** Whether the range is that of events that began before the time range and are repeated in it. */
  readonly isEarlier: boolean
}

/** An export with two ends. */
interface Bounded extends ExportQuery {
  readonly toMs: number
}

interface Progress {
  /** The ranges in the order of the export. */
  readonly ranges: readonly Span[]
  /** The index of the range that is being read. */
  at: number
  /** The number of ranges of the next statement. */
  count: number
  /** The number of rows of the next statement. */
  rows: number
  after: EventPosition | null
}

/** @returns a function that reads the next chunk; null at the end */
async function createChunkReader(
  query: Bounded,
  deps: ExportDeps,
): Promise<() => Promise<Chunk | null>> {
  const { store, density, windowMs, signal } = deps
  const options = { isSearch: true, signal }
  const counts = await withRetries(() => density.read(options), {
    signal,
    mayReadLess: () => false,
  })
  const ranges = rangesOf(query, windowMs, counts)
  const progress: Progress = { ranges, at: 0, count: 1, rows: FIRST_ROWS, after: query.after }
  const dictionary = createDictionary(store, query.filter, options)
  const read = (): Promise<Chunk> => deps.ask(() => readChunk(query, progress, dictionary, deps))
  const mayReadLess = (): boolean => readLess(progress)
  return async () => {
    if (progress.at >= progress.ranges.length) return null
    return await withRetries(read, { signal, mayReadLess })
  }
}

/** Splits a time range into ranges with about equally many events. */
function rangesOf(
  query: Bounded,
  windowMs: number,
  density: Awaited<ReturnType<DensityReader['read']>>,
): readonly Span[] {
  const { after, order } = query
  const begunMs = beginningMs({ ...query, windowMs })
  const fromMs = Math.max(query.fromMs, order === 'asc' ? (after?.tsMs ?? 0) : 0)
  const ranges: Span[] = []
  let endMs = order === 'asc' ? query.toMs : Math.min(query.toMs, endAfter(after))
  while (endMs > fromMs) {
    const isLast = ranges.length === MAX_BOUNDS
    const startMs = isLast ? fromMs : Math.max(fromMs, density.startOf(endMs, RANGE_EVENTS))
    // A range of one millisecond may hold any number of events.
    const fullMs = Math.min(startMs, endMs - 1)
    ranges.push({ fromMs: fullMs, toMs: endMs, isEarlier: false })
    endMs = fullMs
  }
  if (begunMs < query.fromMs) ranges.push({ fromMs: begunMs, toMs: query.fromMs, isEarlier: true })
  return order === 'asc' ? ranges.toReversed() : ranges
}

interface Retrying {
  readonly signal: AbortSignal
  /** Called after each failure. @returns whether the next attempt reads less */
  readonly mayReadLess: () => boolean
}

/** Survives an outage, and reads less when a statement takes too much. */
async function withRetries<T>(
  read: () => Promise<T>,
  { signal, mayReadLess }: Retrying,
): Promise<T> {
  const untilMs = performance.now() + OUTAGE_MS
  for (let attempt = 1; ; attempt++) {
    try {
      return await read()
    } catch (error) {
      signal.throwIfAborted()
      const isPassing = error instanceof AppError && error.code === 'dependency_unavailable'
      const isCostly = isTooCostly(error)
      const isLess = mayReadLess()
      if (!isPassing && !(isCostly && isLess)) throw error
      if (performance.now() > untilMs) throw error
      if (!isCostly) await sleep(backoffMs(attempt, RETRY), undefined, { signal })
    }
  }
}

/** @returns whether the next statement reads less than the one that failed */
function readLess(progress: Progress): boolean {
  const isSmallest = progress.rows === MIN_ROWS && progress.count === 1
  progress.rows = Math.max(MIN_ROWS, Math.floor(progress.rows / 8))
  progress.count = 1
  return !isSmallest
}

async function readChunk(
  query: Bounded,
  progress: Progress,
  dictionary: Dictionary,
  { store, windowMs, signal }: ExportDeps,
): Promise<Chunk> {
  const [first, ...others] = progress.ranges.slice(progress.at, progress.at + progress.count)
  if (first === undefined) throw new Error('bug: nothing is left to export')
  const ranges = [first, ...others.filter(({ isEarlier }) => !first.isEarlier && !isEarlier)]
  const asked = { query, span: spanOf(ranges), windowMs, ...progress }
  const startedMs = performance.now()
  const { sql, params } = await toStatement(asked, dictionary)
  const options: RequestOptions = { isSearch: true, signal, settings: SETTINGS }
  const blocks = await store.queryColumns(sql, params, options)
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0)
  const last = lastOf(blocks)
  const bytes = blocks.reduce((sum, block) => sum + block.bytes.byteLength, 0)
  const isFull = rows === asked.rows
  if (last !== null) progress.after = last
  if (!isFull) progress.at += ranges.length
  adapt(progress, { rows, bytes, tookMs: performance.now() - startedMs, isFull })
  return blocks
}

const spanOf = (ranges: readonly Span[]): Span => ({
  isEarlier: ranges.some(({ isEarlier }) => isEarlier),
  fromMs: Math.min(...ranges.map(({ fromMs }) => fromMs)),
  toMs: Math.max(...ranges.map(({ toMs }) => toMs)),
})

function lastOf(blocks: readonly NativeBlock[]): EventPosition | null {
  const block = blocks.at(-1)
  if (block === undefined) return null
  const [tsMs, id] = ['ts_ms', 'event_id'].map((column) => block.number(column, block.rows - 1))
  return tsMs === undefined || tsMs === null || id === undefined || id === null
    ? null
    : { tsMs, id }
}

interface Taken {
  readonly rows: number
  readonly bytes: number
  readonly tookMs: number
  readonly isFull: boolean
}

function adapt(progress: Progress, { rows, bytes, tookMs, isFull }: Taken): void {
  if (rows > 0) {
    const fitting = Math.floor((CHUNK_BYTES * rows) / Math.max(bytes, 1))
    progress.rows = Math.max(MIN_ROWS, Math.min(fitting, progress.rows * MAX_GROWTH, MAX_ROWS))
  }
  if (!isFull && tookMs < FAST_MS) progress.count = Math.min(progress.count * 2, MAX_RANGES)
  else if (tookMs > SLOW_MS) progress.count = Math.max(1, Math.floor(progress.count / 2))
}

interface Asked {
  readonly query: Bounded
  readonly windowMs: number
  readonly span: Span
  readonly after: EventPosition | null
  readonly rows: number
}

async function toStatement(
  { query, windowMs, span, after, rows }: Asked,
  dictionary: Dictionary,
): Promise<{ readonly sql: Statement<QueryParams, never>; readonly params: QueryParams }> {
  const { filter, order, lines } = query
  const isUp = order === 'asc'
  const fromMs = isUp ? Math.max(span.fromMs, after?.tsMs ?? 0) : span.fromMs
  const toMs = isUp ? span.toMs : Math.min(span.toMs, endAfter(after))
  // The dictionary matches are read once, at the start of the export.
  const range = { ...query, windowMs }
  const found = await dictionary.matches(beginningMs(range), query.toMs)
  const endMs = Math.min(query.toMs, Date.now())
  const conditions = [
    ...toConditions(filter, { found, endMs }),
    ...(span.isEarlier ? [renamed(repeatedWithin(range), 'repeated_')] : []),
    ...beyondPosition(after, order),
  ]
  const where = conditions.map(({ sql }) => `AND ${sql}`).join('\n    ')
  const fill = (text: string): string =>
    text
      .replaceAll('/*order*/', isUp ? 'ASC' : 'DESC')
      .replace('/*conditions*/', () => where)
      .replace('/*columns*/', () => lines.columns.sql)
  const repeats = lines.needsRepeats ? fill(repeatsSql.sql) : ''
  const sql = fill(exportSql.sql).replace('/*repeats*/', () => repeats)
  const params = {
    from_ms: fromMs,
    to_ms: toMs,
    arrived_ms: Math.max(0, fromMs - MAX_AHEAD_MS),
    limit: rows,
    range_from_ms: query.fromMs,
    range_to_ms: query.toMs,
    ...lines.columns.params,
    ...Object.assign({}, ...conditions.map((one) => one.params)),
  }
  return { sql: { ...exportSql, sql }, params }
}
