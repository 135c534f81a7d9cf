import { HOUR_MS } from '../model/time.js'

/** What a clock is ahead by of the time that passed, at which it may have been put forward by mistake. */
const JUMP_MS = HOUR_MS

/**
 * Tells whether the clock was put forward since the last call. What is past its retention by such a clock alone would be lost
 * for good, so that it waits until the clock has stayed as it is.
 *
 * @param passedMs a clock that nobody sets
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
