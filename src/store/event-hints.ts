import { LRUCache } from 'lru-cache'
import type { RequestOptions, Store } from './client.js'
import { statement } from './statement.js'

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
  /** Whether the newest hours filled the page when this was asked last; null = not asked lately. */
  sufficed(question: string): boolean | null
  note(question: string, sufficed: boolean): void
}

interface Span {
  readonly last_ms: number
  readonly hours: number
  readonly events: number
}

const spanSql = statement<Record<string, never>, Span>('event_span')

const DENSITY_MAX_AGE_MS = 60_000
/** older, it is waited for: much may have been stored since */
const DENSITY_STALE_MS = 600_000
/** the one asked longest ago goes first */
const MAX_QUESTIONS = 1000

export function createEventHints(
  store: Pick<Store, 'query'>,
  nowMs: () => number = () => performance.now(),
): EventHints {
  const known = new LRUCache<string, boolean>({ max: MAX_QUESTIONS })
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
    sufficed: (question) => known.get(question) ?? null,
    note: (question, sufficed) => void known.set(question, sufficed),
  }
}
