import type { RequestHead } from '../http/request.js'
import type { Services } from './services.js'

type Limits = Pick<Services, 'limiter' | 'guesses'>

/** Runs `work`, which checks a password, within the limits of logins. @throws AppError rate_limited */
export async function withinGuesses<T>(
  { limiter, guesses }: Limits,
  { ip: address }: RequestHead,
  { email, work }: { readonly email: string; readonly work: () => Promise<T> },
): Promise<T> {
  const guesser = { address, email }
  await limiter.consume('login_account_limit', guesser)
  return await guesses.attempt(guesser, work)
}
