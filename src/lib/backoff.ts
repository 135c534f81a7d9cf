export interface BackoffRange {
  readonly baseMs: number
  readonly maxMs: number
}

/**
 * Exponential backoff with jitter: the wait doubles from `baseMs` to `maxMs`, and is shortened at random by up to half,
 * so that clients that failed together do not retry together.
 *
 * @param attempt number of failures, at least 1
 * @param random a number in [0, 1)
 * @returns whole ms, from half of `baseMs` to `maxMs`
 */
export function backoffMs(attempt: number, range: BackoffRange, random = Math.random): number {
  const doublings = Math.min(Math.max(attempt, 1) - 1, 30)
  const fullMs = Math.min(range.baseMs * 2 ** doublings, range.maxMs)
  return Math.round(fullMs * (1 - random() / 2))
}
