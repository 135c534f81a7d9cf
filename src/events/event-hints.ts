import { LRUCache } from 'lru-cache'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { MINUTE_MS, HOUR_S } from '../model/time.js'

/** How many events an hour holds, and where the newest ones are, as of a minute ago at most. */
export interface Density {
  readonly lastMs: number
  /** of an hour that holds any; 0 = nothing is stored */
  readonly eventsPerHour: number
  /** stored in all */
  readonly events: number
}

/**
 * What earlier questions have told, by which later ones are planned: how far back to look first, and what to ask
 * at once. No answer depends on it, so it may be old.
 */
export interface EventHints {
  density(options: RequestOptions): Promise<Density>
  /** From when on at least `DENSE_EVENTS` are stored; null = the newest hours held fewer when that was looked at, or it is not known yet. */
  denseSince(): number | null
  /** Whether the newest hours filled the page when this was asked last; null = not asked lately. */
  sufficed(question: string): boolean | null
  note(question: string, sufficed: boolean): void
  /** From when on the newest page of this question was full: with what came since it still is. 0 = it was not; null = it is not known. */
  fullSince(question: string): number | null
  /** From when on the newest page of this question had to look when it was asked last; null = it is not known. */
  neededSince(question: string): number | null
  /**
   * @param page the times of its newest and its oldest event; null = it was not full
   * @param fromMs from when on was asked
   */
  notePage(question: string, page: PageTimes | null, fromMs: number): void
  /** How much time the page of this question that was asked last took, ms; null = it is not known. */
  pageMs(question: string): number | null
  notePageMs(question: string, ms: number): void
}

interface PageTimes {
  readonly newestMs: number
  readonly oldestMs: number
}

interface Span {
  readonly last_ms: number
  readonly hours: number
  readonly events: number
}

const spanSql = statement<Record<string, never>, Span>('event_span')

const DENSITY_MAX_AGE_MS = MINUTE_MS
/** older, it is waited for: much may have been stored since */
const DENSITY_STALE_MS = 600_000

interface MinuteCount {
  /** s since 1970 */
  readonly minute: number
  readonly events: number
}

const minutesSql = statement<{ readonly from: number; readonly until: number }, MinuteCount>(
  'event_minutes',
)

/** Among so many a page of what comes often is full; a minute of 15 M an hour took 25 ms, a second of it 18. */
const DENSE_EVENTS = 200_000
/** what came in late or comes in meanwhile is to be among them */
const DENSE_LEAST_MS = 10_000
const DENSE_MAX_AGE_MS = 10_000
/** So much longer than its page a range may become before it is made shorter: until then the same is asked. */
const ROOM = 4

/** the one asked longest ago goes first */
const MAX_QUESTIONS = 1000

export function createEventHints(
  store: Pick<Store, 'query'>,
  nowMs: () => number = () => performance.now(),
): EventHints {
  const known = new LRUCache<string, boolean>({ max: MAX_QUESTIONS })
  const denseSince = rememberDense(store, nowMs)
  const full = new LRUCache<string, number>({ max: MAX_QUESTIONS })
  const short = new LRUCache<string, number>({ max: MAX_QUESTIONS })
  const lengths = new LRUCache<string, number>({ max: MAX_QUESTIONS })
  let density: Density | null = null
  let readAtMs = -Infinity
  let isReading = false

  const read = async (options: RequestOptions): Promise<Density> => {
    const [span] = await store.query(spanSql, {}, { ...options, settings: { max_threads: 1 } })
    const { last_ms: lastMs, hours, events } = span ?? { last_ms: 0, hours: 0, events: 0 }
    density = { lastMs, eventsPerHour: events / Math.max(1, hours), events }
    readAtMs = nowMs()
    return density
  }

  const renew = async (): Promise<void> => {
    isReading = true
    try {
      await read({})
    } catch {
      // the old one serves until the next question
    } finally {
      isReading = false
    }
  }

  return {
    density: async (options) => {
      const ageMs = nowMs() - readAtMs
      if (density === null || density.eventsPerHour === 0 || ageMs > DENSITY_STALE_MS)
        return await read(options)
      if (!isReading && ageMs > DENSITY_MAX_AGE_MS) void renew()
      return density
    },
    denseSince,
    sufficed: (question) => known.get(question) ?? null,
    note: (question, sufficed) => void known.set(question, sufficed),
    fullSince: (question) => full.get(question) ?? null,
    neededSince: (question) => short.get(question) ?? full.get(question) ?? null,
    notePage: (question, page, fromMs) => {
      if (page === null) {
        // nor would it be full in less time
        short.set(question, Math.min(fromMs, short.get(question) ?? Infinity))
        return void full.set(question, 0)
      }
      short.delete(question)
      const { newestMs, oldestMs } = page
      const leastMs = newestMs - ROOM * (newestMs - oldestMs) - DENSE_LEAST_MS
      const sinceMs = full.get(question) ?? -Infinity
      if (sinceMs < leastMs || sinceMs > oldestMs) full.set(question, oldestMs)
    },
    pageMs: (question) => lengths.get(question) ?? null,
    notePageMs: (question, ms) => void lengths.set(question, ms),
  }
}

/** Never waited for: who asks first is told nothing. */
function rememberDense(store: Pick<Store, 'query'>, nowMs: () => number): () => number | null {
  let sinceMs: number | null = null
  let readAtMs = -Infinity
  let isReading = false
  const read = async (): Promise<void> => {
    isReading = true
    try {
      const askedAtMs = nowMs()
      const now = Math.floor(Date.now() / 1000)
      // the current hour and the one before, without what claims to be of later
      const window = { from: now - (now % HOUR_S) - HOUR_S, until: now + 1 }
      const minutes = await store.query(minutesSql, window, { settings: { max_threads: 1 } })
      sinceMs = denseWithin(minutes, now * 1000)
      readAtMs = askedAtMs
    } catch {
      // it is asked again with the next question
    } finally {
      isReading = false
    }
  }
  return () => {
    if (!isReading && nowMs() - readAtMs > DENSE_MAX_AGE_MS) void read()
    // however old: since then there are so many, and more
    return sinceMs
  }
}

/** @param minutes the newest first */
function denseWithin(minutes: readonly MinuteCount[], nowMs: number): number | null {
  let missing = DENSE_EVENTS
  let newerMs = nowMs
  for (const { minute, events } of minutes) {
    const startMs = minute * 1000
    const endMs = Math.min(startMs + MINUTE_MS, newerMs)
    if (events >= missing) {
      // as if a minute's events came evenly
      const sinceMs = endMs - ((endMs - startMs) * missing) / events
      return Math.floor(Math.max(startMs, Math.min(sinceMs, nowMs - DENSE_LEAST_MS)))
    }
    missing -= events
    newerMs = startMs
  }
  return null
}
