import { AppError } from '../model/errors.js'

/**
 * What instances of the service share for a while: caches, rate limits, locks, messages. One instance keeps it
 * in the process (`memory-state.ts`), several keep it in Redis (`redis-state.ts`). Nothing here has to survive:
 * whatever must be found again after a loss of the state is stored in ClickHouse.
 *
 * A key has at most a few hundred characters, so callers hash text that a client sent before they use it in a key. An
 * operation that fails rejects with `dependency_unavailable`, and the caller decides whether to go on without it.
 */
export interface State {
  readonly kind: 'in-process' | 'redis'

  readonly get: (key: string) => Promise<string | null>
  /** @param ttlMs integer, at least 1 */
  readonly set: (key: string, value: string, ttlMs: number) => Promise<void>
  /** @returns false when the key has a value, which stays as it is */
  readonly setIfAbsent: (key: string, value: string, ttlMs: number) => Promise<boolean>
  /** @returns false when the key has another value or none */
  readonly compareAndSet: (
    key: string,
    expected: string,
    next: string,
    ttlMs: number,
  ) => Promise<boolean>
  readonly delete: (key: string) => Promise<void>

  /**
   * Spends `cost` of a sliding window: at most `limit` in any span of `windowS` seconds. A refused request
   * costs nothing. Up to a limit of 256 the window is exact to the millisecond; above it a unit may come free
   * up to 1/256 of the window late, never early.
   *
   * @param cost default 1
   */
  readonly consume: (key: string, limit: number, windowS: number, cost?: number) => Promise<Verdict>

  /** Delivers at most once: a subscriber that was disconnected learns so from `onStatus`. */
  readonly publish: (channel: string, message: string) => Promise<void>
  /**
   * Never rejects; without a connection the subscription begins when there is one.
   *
   * @returns ends the subscription
   */
  readonly subscribe: (channel: string, listener: (message: string) => void) => Promise<() => void>

  /**
   * Runs `work` while holding a lock, which is renewed until `work` settles and expires when this process dies.
   * Waiters are served in order. One that waits too long, or finds too many before it, is refused with
   * `dependency_unavailable`.
   *
   * @param ttlMs how long the lock outlives a dead holder, at least 100
   */
  readonly withLock: <T>(
    key: string,
    ttlMs: number,
    work: (lease: Lease) => Promise<T>,
  ) => Promise<T>

  /** Calls `listener` at once with the status, then with each change. @returns unsubscribes */
  readonly onStatus: (listener: (status: StateStatus) => void) => () => void
  /** @returns the round-trip time, ms */
  readonly ping: () => Promise<number>
  readonly close: () => Promise<void>
}

export type StateStatus = 'ok' | 'down'

export interface Verdict {
  readonly allowed: boolean
  /** How much of the window is left; 0 when refused. */
  readonly remaining: number
  /** Whole seconds after which the same cost fits unless others spend it; 0 when allowed. */
  readonly retryAfterS: number
}

export interface Lease {
  /** Aborted when the lock was lost, for example because this process stood still. */
  readonly signal: AbortSignal
}

export const stateUnavailable = (message: string, cause?: unknown): AppError =>
  new AppError('dependency_unavailable', message, {
    details: { dependency: 'state' },
    retryAfterS: 1,
    cause,
  })
