import { createHash } from 'node:crypto'
import type { State } from '../../coordination/state.js'
import { AppError } from '../../model/errors.js'
import { DAY_MS, HOUR_S } from '../../model/time.js'
import { networkOf } from '../../http/address.js'
import type { RateLimit } from './limits.js'
import { normalizeEmail } from './user.js'

/**
 * Slows down the guessing of passwords over days; the login limits work by the minute. Wrong
 * passwords are counted for an account at an address, and for an account at all addresses together.
 * An address that has used up its count waits until the oldest guess has left the window. An
 * account that is guessed from many addresses is not locked, because anybody could lock others out
 * in that way: an address from which its user has logged in before is not restricted, and every
 * other address has one guess an hour, so that a travelling user gets in at the first attempt. A
 * new password starts new counts. Accounts that do not exist are counted like others.
 */
export interface Guesses {
  /**
   * Runs `work`, which checks a password.
   *
   * @throws AppError rate_limited without running it; dependency_unavailable when the shared state does not answer
   */
  readonly attempt: <T>(guesser: Guesser, work: () => Promise<T>) => Promise<T>
}

interface Guesser {
  readonly address: string
  readonly email: string
}

interface GuessDeps {
  readonly state: Pick<State, 'get' | 'set' | 'consume'>
  /** The limit of an account at an address. */
  readonly limit: RateLimit
  /** Changes with the password of an account; '' without one. */
  readonly passwordHashOf: (email: string) => string
  /** Called for each wrong password. */
  readonly onWrong: () => void
  /** Called when a correct password comes from an address from which the user has not logged in within 30 days. */
  readonly onNewAddress?: (guesser: Guesser) => void
  readonly nowMs?: () => number
}

/** The limit of an account at all addresses together, as a multiple of that at one. */
const ADDRESSES_PER_ACCOUNT = 10
/** The limit of an address that its user has not used before, while the account is guessed from many addresses. */
const STRANGER = { count: 1, seconds: HOUR_S }
const KNOWN_MS = 30 * DAY_MS

export function createGuesses(deps: GuessDeps): Guesses {
  const { state, limit, nowMs = Date.now } = deps
  const everywhere = { ...limit, count: limit.count * ADDRESSES_PER_ACCOUNT }

  const keysOf = ({ address, email }: Guesser): Keys => {
    const name = normalizeEmail(email)
    // The key is hashed, because clients may send long texts, and the shared state should contain
    // neither e-mails nor password hashes.
    const text = JSON.stringify([name, deps.passwordHashOf(name)])
    const account = createHash('sha256').update(text).digest('base64url')
    return { account: `guess:${account}`, here: `guess:${account}:${networkOf(address)}` }
  }
  const spentUntilMs = async (key: string): Promise<number> =>
    Number((await state.get(`${key}:spent`)) ?? 0)
  const refuseSpent = async ({ account, here }: Keys): Promise<void> => {
    const waitMs = (await spentUntilMs(here)) - nowMs()
    if (waitMs > 0) throw tooManyGuesses(waitMs / 1000)
    if ((await spentUntilMs(account)) <= nowMs()) return
    if ((await state.get(`${here}:known`)) !== null) return
    const { allowed, retryAfterS } = await state.consume(
      `${here}:stranger`,
      STRANGER.count,
      STRANGER.seconds,
    )
    if (!allowed) throw tooManyGuesses(retryAfterS)
  }
  const count = async (key: string, { count: most, seconds }: RateLimit): Promise<void> => {
    const { remaining } = await state.consume(key, most, seconds)
    if (remaining > 0) return
    // This call is refused, which spends nothing, and returns how long the window stays full.
    const { retryAfterS } = await state.consume(key, most, seconds)
    const ms = Math.max(1, retryAfterS) * 1000
    await state.set(`${key}:spent`, String(nowMs() + ms), ms)
  }

  return {
    attempt: async (guesser, work) => {
      const keys = keysOf(guesser)
      await refuseSpent(keys)
      try {
        const result = await work()
        if ((await state.get(`${keys.here}:known`)) === null) deps.onNewAddress?.(guesser)
        await state.set(`${keys.here}:known`, '1', KNOWN_MS)
        return result
      } catch (error) {
        if (error instanceof AppError && error.code === 'invalid_credentials') {
          deps.onWrong()
          await count(keys.here, limit)
          await count(keys.account, everywhere)
        }
        throw error
      }
    },
  }
}

interface Keys {
  readonly account: string
  readonly here: string
}

function tooManyGuesses(waitS: number): AppError {
  const retryAfterS = Math.ceil(waitS)
  return new AppError('rate_limited', 'too many wrong passwords', {
    details: { limit: 'login_limit', retry_after_s: retryAfterS },
    retryAfterS,
  })
}
