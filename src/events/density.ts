import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { HOUR_S } from '../model/time.js'

interface BucketRow {
  /** s since 1970 */
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
/** After so long the counts may be off by orders of magnitude, so a reader waits for new ones. */
const STALE_MS = 600_000
const ONE_THREAD = { max_threads: 1 }

/**
 * How many occurrences the newest minutes and hours hold, by the rollups. It tells how long a time range has to be to
 * hold so many events; it is up to ten minutes old and no answer depends on it.
 */
export interface Density {
  /** @returns where the newest `occurrences` before `toMs` begin; 0 when fewer are known */
  startOf(toMs: number, occurrences: number): number
  /** About how many occurrences a time range holds. */
  count(fromMs: number, toMs: number): number
}

export type DensityReader = ReturnType<typeof createDensityReader>

/** Remembers the counts for ten seconds: the only memory of the reading of events. */
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

/** As if the events of a bucket came evenly. */
const toDensity = (buckets: readonly BucketRow[]): Density => ({
  startOf: (toMs, occurrences) => {
    let missing = occurrences
    for (const bucket of buckets) {
      const startMs = bucket.start_s * 1000
      const lengthMs = bucket.length_s * 1000
      const heldMs = Math.min(lengthMs, toMs - startMs)
      if (heldMs <= 0) continue
      const held = (bucket.occurrences * heldMs) / lengthMs
      if (held >= missing) return Math.floor(startMs + heldMs - (heldMs * missing) / held)
      missing -= held
    }
    return 0
  },
  count: (fromMs, toMs) => {
    let sum = 0
    for (const bucket of buckets) {
      const startMs = bucket.start_s * 1000
      const lengthMs = bucket.length_s * 1000
      const heldMs = Math.min(startMs + lengthMs, toMs) - Math.max(startMs, fromMs)
      if (heldMs > 0) sum += (bucket.occurrences * heldMs) / lengthMs
    }
    return sum
  },
})
