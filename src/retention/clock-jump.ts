import { HOUR_MS } from '../model/time.js'

/** The least difference between the clock and the time passed at which the clock may have been set forward by mistake. */
const JUMP_MS = HOUR_MS

/**
 * Creates a check of whether the clock was set forward since the last call. Rows that are past
 * their retention only by such a clock would be lost for good, so deletion waits until the clock is
 * stable.
 *
 * @param passedMs a monotonic clock
 */
export function createClockJump(
  nowMs: () => number = Date.now,
  passedMs: () => number = () => performance.now(),
): () => boolean {
  const aheadMs = (): number => nowMs() - passedMs()
  let lastMs = aheadMs()
  return () => {
    const beforeMs = lastMs
    lastMs = aheadMs()
    return lastMs - beforeMs > JUMP_MS
  }
}
