import type { Verdict } from './state.js'

/** The units spent, as flat triples, oldest first: time of the first unit, time of the last unit, units. */
export type WindowLog = number[]

interface Spending {
  readonly nowMs: number
  readonly limit: number
  readonly windowMs: number
  readonly cost: number
}

/** Most entries of a log; with a greater limit, units that follow closely share an entry. */
const MAX_ENTRIES = 256

/** @returns how close units must follow to share an entry, ms; 0 when each has its own */
export const mergeSpanMs = (limit: number, windowMs: number): number =>
  limit <= MAX_ENTRIES ? 0 : windowMs / MAX_ENTRIES

/**
 * Spends from a sliding window and records it in `log`. An entry counts until its last unit has
 * left the window, so merging never lets more than `limit` through. `consumeScript` in
 * redis-scripts.ts does the same in Lua; the contract tests hold both to it.
 */
export function spend(log: WindowLog, { nowMs, limit, windowMs, cost }: Spending): Verdict {
  let expired = 0
  while (expired < log.length && at(log, expired + 1) + windowMs <= nowMs) expired += 3
  if (expired > 0) log.splice(0, expired)

  let spent = 0
  for (let i = 2; i < log.length; i += 3) spent += at(log, i)
  if (spent + cost > limit) {
    const waitMs = Math.min(waitFor(log, spent + cost - limit, windowMs) - nowMs, windowMs)
    return { allowed: false, remaining: 0, retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)) }
  }

  const last = log.length - 3
  if (last >= 0 && nowMs - at(log, last) < mergeSpanMs(limit, windowMs)) {
    log[last + 1] = nowMs
    log[last + 2] = at(log, last + 2) + cost
  } else {
    log.push(nowMs, nowMs, cost)
  }
  return { allowed: true, remaining: limit - spent - cost, retryAfterS: 0 }
}

/** @returns when `units` have left the window; Infinity when the log holds fewer */
function waitFor(log: WindowLog, units: number, windowMs: number): number {
  let freed = 0
  for (let i = 0; i < log.length; i += 3) {
    freed += at(log, i + 2)
    if (freed >= units) return at(log, i + 1) + windowMs
  }
  return Infinity
}

const at = (log: WindowLog, i: number): number => log[i] ?? 0
