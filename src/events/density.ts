import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { HOUR_S } from '../model/time.js'

interface BucketRow {
  /** Seconds since 1970. */
  readonly start_s: number
  readonly length_s: number
  readonly occurrences: number
}

const densitySql = statement<
  { readonly now: number; readonly minutes_from: number; readonly limit: number },
  BucketRow
>('event_density')

const MAX_BUCKETS = 1000
const REFRESH_MS = 10_000
/** Older counts may be wrong by orders of magnitude, so a reader waits for new counts. */
const STALE_MS = 600_000
const ONE_THREAD = { max_threads: 1 }

/**
 * The occurrences of the newest minutes and hours, from the rollups. They give the length of a time range with a wanted
 * number of events. They are up to ten minutes old; only the speed of a page depends on them, never its content.
 */
export interface Density {
  /** @returns where the newest `occurrences` before `toMs` begin; 0 when the rollups have fewer */
  startOf(toMs: number, occurrences: number): number
  /**
   * @returns where the oldest `occurrences` from `fromMs` on end; Infinity when the rollups have
   * fewer
   */
  endOf(fromMs: number, occurrences: number): number
  /** An estimate of the number of occurrences in a time range. */
  count(fromMs: number, toMs: number): number
}

export type DensityReader = ReturnType<typeof createDensityReader>

/** Caches the counts for ten seconds. Nothing else about events is cached between requests. */
export function createDensityReader(store: Pick<Store, 'query'>) {
  let buckets: readonly BucketRow[] = []
  let readAtMs = -Infinity
  let isReading = false

  const read = async (options: RequestOptions): Promise<void> => {
    const askedAtMs = performance.now()
    const nowS = Math.floor(Date.now() / 1000)
    const minutesFrom = nowS - (nowS % HOUR_S) - HOUR_S
    const params = { now: nowS, minutes_from: minutesFrom, limit: MAX_BUCKETS }
    buckets = await store.query(densitySql, params, { ...options, settings: ONE_THREAD })
    readAtMs = askedAtMs
  }

  const refresh = async (): Promise<void> => {
    isReading = true
    // The next reader tries again.
    await read({}).catch(() => undefined)
    isReading = false
  }

  return {
    read: async (options: RequestOptions): Promise<Density> => {
      const ageMs = performance.now() - readAtMs
      if (buckets.length === 0 || ageMs > STALE_MS) await read(options)
      else if (!isReading && ageMs > REFRESH_MS) void refresh()
      return toDensity(buckets)
    },
  }
}

/** Assumes that the events of a bucket are evenly distributed. */
const toDensity = (buckets: readonly BucketRow[]): Density => ({
  startOf: (toMs, occurrences) => {
    let missing = occurrences
    for (const bucket of buckets) {
      const startMs = bucket.start_s * 1000
      const lengthMs = bucket.length_s * 1000
      const coveredMs = Math.min(lengthMs, toMs - startMs)
      if (coveredMs <= 0) continue
      const counted = (bucket.occurrences * coveredMs) / lengthMs
      if (counted >= missing)
        return Math.floor(startMs + coveredMs - (coveredMs * missing) / counted)
      missing -= counted
    }
    return 0
  },
  endOf: (fromMs, occurrences) => {
    let missing = occurrences
    for (const bucket of buckets.toReversed()) {
      const endMs = (bucket.start_s + bucket.length_s) * 1000
      const startMs = Math.max(bucket.start_s * 1000, fromMs)
      if (startMs >= endMs) continue
      const counted = (bucket.occurrences * (endMs - startMs)) / (bucket.length_s * 1000)
      if (counted >= missing) return Math.ceil(startMs + ((endMs - startMs) * missing) / counted)
      missing -= counted
    }
    return Infinity
  },
  count: (fromMs, toMs) => {
    let sum = 0
    for (const bucket of buckets) {
      const startMs = bucket.start_s * 1000
      const lengthMs = bucket.length_s * 1000
      const coveredMs = Math.min(startMs + lengthMs, toMs) - Math.max(startMs, fromMs)
      if (coveredMs > 0) sum += (bucket.occurrences * coveredMs) / lengthMs
    }
    return sum
  },
})
