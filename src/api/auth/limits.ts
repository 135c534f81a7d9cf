import { createHash } from 'node:crypto'
import type { State } from '../../coordination/state.js'
import { networkOf } from '../../http/address.js'
import { AppError } from '../../model/errors.js'
import { normalizeEmail } from './user.js'

/**
 * The rate limits, what they count by, and their behaviour while the shared state does not answer.
 * Logins are refused (closed), so that passwords cannot be guessed without limit; everything else
 * is counted by each instance for itself (open).
 */
const LIMITS = {
  login_limit: { by: 'address', whenDown: 'closed' },
  // Clients see this limit as `login_limit`, of which it is the stricter half.
  login_account_limit: { by: 'account', whenDown: 'closed' },
  second_factor_limit: { by: 'user', whenDown: 'closed' },
  refresh_limit: { by: 'address', whenDown: 'open' },
  source_create_limit: { by: 'user', whenDown: 'open' },
  clear_all_limit: { by: 'user', whenDown: 'open' },
  api_token_limit: { by: 'user', whenDown: 'open' },
  ws_limiter: { by: 'address', whenDown: 'open' },
} as const satisfies Record<string, { readonly by: string; readonly whenDown: 'open' | 'closed' }>

export type LimitName = keyof typeof LIMITS

export interface RateLimit {
  readonly count: number
  readonly seconds: number
}

export type RateLimits = Readonly<Record<LimitName, RateLimit>>

export interface LimitSubject {
  readonly address: string
  readonly userId?: string
  readonly email?: string
}

interface LimitSettings {
  readonly loginLimit: RateLimit
  readonly secondFactorLimit: RateLimit
  readonly refreshLimit: RateLimit
  readonly sourceCreateLimit: RateLimit
  readonly clearAllLimit: RateLimit
  readonly apiTokenLimit: RateLimit
  readonly wsLimiter: RateLimit
}

/** LOGIN_LIMIT applies per address and account; the limit per address alone is this many times larger. */
const ACCOUNTS_PER_ADDRESS = 6

export const toRateLimits = (settings: LimitSettings): RateLimits => ({
  login_limit: {
    ...settings.loginLimit,
    count: settings.loginLimit.count * ACCOUNTS_PER_ADDRESS,
  },
  login_account_limit: settings.loginLimit,
  second_factor_limit: settings.secondFactorLimit,
  refresh_limit: settings.refreshLimit,
  source_create_limit: settings.sourceCreateLimit,
  clear_all_limit: settings.clearAllLimit,
  api_token_limit: settings.apiTokenLimit,
  ws_limiter: settings.wsLimiter,
})

export interface Limiter {
  /** @throws AppError rate_limited; dependency_unavailable when a closed limit has no state */
  readonly consume: (name: LimitName, subject: LimitSubject) => Promise<void>
}

/** @param alone the state of this process */
export function createLimiter(
  state: Pick<State, 'consume'>,
  limits: RateLimits,
  alone: Pick<State, 'consume'>,
): Limiter {
  return {
    consume: async (name, subject) => {
      const { by, whenDown } = LIMITS[name]
      const { count, seconds } = limits[name]
      const key = `limit:${name}:${keyOf(by, subject)}`
      const verdict = await state.consume(key, count, seconds).catch((error: unknown) => {
        if (whenDown === 'closed') throw error
        return alone.consume(key, count, seconds)
      })
      if (verdict.allowed) return
      const { retryAfterS } = verdict
      const limit = name === 'login_account_limit' ? 'login_limit' : name
      const message = `more than ${count} requests in ${seconds} s (${limit.toUpperCase()})`
      const details = { limit, retry_after_s: retryAfterS }
      throw new AppError('rate_limited', message, { details, retryAfterS })
    },
  }
}

function keyOf(by: (typeof LIMITS)[LimitName]['by'], subject: LimitSubject): string {
  const { address, userId, email } = subject
  if (by === 'address') return networkOf(address)
  if (by === 'user' && userId !== undefined) return userId
  if (by === 'account' && email !== undefined) {
    // The key is hashed, because clients may send long texts, and the shared state should contain no e-mails.
    const hash = createHash('sha256').update(normalizeEmail(email)).digest('base64url')
    return `${networkOf(address)}:${hash}`
  }
  throw new Error(`bug: limited by ${by}, but the request has none`)
}
