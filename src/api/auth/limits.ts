import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { AppError } from '../../model/errors.js'
import { normalizeEmail } from './user-rules.js'

/**
 * The named limits: what they count by, and what happens while the state does not answer.
 * Guessing passwords must not become possible by that; everything else goes on.
 */
const LIMITS = {
  login_limit: { by: 'address', whenDown: 'closed' },
  // the stricter half of `login_limit`, which is what clients know it by
  login_account_limit: { by: 'account', whenDown: 'closed' },
  refresh_limit: { by: 'address', whenDown: 'open' },
  source_create_limit: { by: 'user', whenDown: 'open' },
  clear_all_limit: { by: 'user', whenDown: 'open' },
  ws_limiter: { by: 'address', whenDown: 'open' },
} as const satisfies Record<string, { readonly by: string; readonly whenDown: 'open' | 'closed' }>

export type LimitName = keyof typeof LIMITS

interface RateLimit {
  readonly count: number
  readonly seconds: number
}

export type RateLimits = Readonly<Record<LimitName, RateLimit>>

/** Whom a request is counted for; a limit that counts by what is missing is a mistake of ours. */
export interface LimitSubject {
  readonly address: string
  readonly userId?: string
  readonly email?: string
}

interface LimitSettings {
  readonly loginLimit: RateLimit
  readonly refreshLimit: RateLimit
  readonly sourceCreateLimit: RateLimit
  readonly clearAllLimit: RateLimit
  readonly wsLimiter: RateLimit
}

/** Logins are limited per address and account, and six times as generously per address. */
const ACCOUNTS_PER_ADDRESS = 6

export const toRateLimits = (settings: LimitSettings): RateLimits => ({
  login_limit: {
    ...settings.loginLimit,
    count: settings.loginLimit.count * ACCOUNTS_PER_ADDRESS,
  },
  login_account_limit: settings.loginLimit,
  refresh_limit: settings.refreshLimit,
  source_create_limit: settings.sourceCreateLimit,
  clear_all_limit: settings.clearAllLimit,
  ws_limiter: settings.wsLimiter,
})

interface WindowState {
  readonly consume: (
    key: string,
    limit: number,
    windowS: number,
  ) => Promise<{ readonly allowed: boolean; readonly retryAfterS: number }>
}

export interface Limiter {
  /** @throws AppError rate_limited; dependency_unavailable for a limit that closes then */
  readonly consume: (name: LimitName, subject: LimitSubject) => Promise<void>
}

export function createLimiter(state: WindowState, limits: RateLimits): Limiter {
  return {
    consume: async (name, subject) => {
      const { by, whenDown } = LIMITS[name]
      const { count, seconds } = limits[name]
      const key = `limit:${name}:${keyOf(by, subject)}`
      const verdict = await state.consume(key, count, seconds).catch((error: unknown) => {
        if (whenDown === 'closed') throw error
        return null
      })
      if (verdict === null || verdict.allowed) return
      const { retryAfterS } = verdict
      throw new AppError('rate_limited', `more than ${count} requests in ${seconds} s`, {
        details: {
          limit: name === 'login_account_limit' ? 'login_limit' : name,
          retry_after_s: retryAfterS,
        },
        retryAfterS,
      })
    },
  }
}

function keyOf(by: (typeof LIMITS)[LimitName]['by'], subject: LimitSubject): string {
  const { address, userId, email } = subject
  if (by === 'address') return networkOf(address)
  if (by === 'user' && userId !== undefined) return userId
  if (by === 'account' && email !== undefined) {
    // hashed: what a client sends may be long, and e-mails have no place in a shared state
    const hash = createHash('sha256').update(normalizeEmail(email)).digest('base64url')
    return `${networkOf(address)}:${hash}`
  }
  throw new Error(`bug: limited by ${by}, but the request has none`)
}

/** An IPv6 client owns a whole /64 and could take a new address for every request. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  const groups = tail === undefined ? left : [...left, ...zeros, ...right]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
