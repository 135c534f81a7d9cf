export interface BackoffRange {
  /** the wait before the first retry */
  readonly baseMs: number
  /** no wait is longer */
  readonly maxMs: number
}

/**
 * Waits that double from `baseMs` up to `maxMs`, each shortened at random by up to half,
 * so that many who failed together do not come back together.
 *
 * @param attempt failures so far, from 1
 * @param random a number in [0, 1)
 * @returns whole ms, from half of `baseMs` to `maxMs`
 */
export function backoffMs(attempt: number, range: BackoffRange, random = Math.random): number {
  const doublings = Math.min(Math.max(attempt, 1) - 1, 30)
  const fullMs = Math.min(range.baseMs * 2 ** doublings, range.maxMs)
  return Math.round(fullMs * (1 - random() / 2))
}
