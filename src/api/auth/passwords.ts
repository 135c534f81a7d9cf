import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { createSemaphore } from '../semaphore.js'
import { AppError } from '../../model/errors.js'

/** The least length of new passwords. Shorter ones that were set before stay valid. */
export const MIN_PASSWORD_CHARACTERS = 12
export const MAX_PASSWORD_CHARACTERS = 128
/** The longest password that a login accepts, because earlier versions allowed longer ones than can be set now. */
export const MAX_GIVEN_CHARACTERS = 1_024

const PASSES = 2
const LANES = 1

interface PasswordOptions {
  /** Memory of one hash in KiB. Default 19,456: with two passes the minimum of OWASP for argon2id. */
  readonly memoryKib?: number
  /** The most password checks at the same time; default 2. Each takes one of the four threads of libuv. */
  readonly concurrency?: number
  /** The most requests that wait to check a password, and to set one. Default 64, about two seconds. */
  readonly maxWaiting?: number
}

export interface Passwords {
  readonly hash: (password: string) => Promise<string>
  /** @param stored null when the user does not exist, '' when it has no password; the check takes as long and returns false
   * @throws AppError overloaded when too many passwords are being checked */
  readonly verify: (stored: string | null, password: string) => Promise<boolean>
}

/** Hashes passwords with argon2id. */
export function createPasswords(options: PasswordOptions = {}): Passwords {
  const { memoryKib = 19_456, concurrency = 2, maxWaiting = 64 } = options
  const settings = { memoryCost: memoryKib, timeCost: PASSES, parallelism: LANES }
  const checking = createSemaphore({ atOnce: concurrency, waiting: maxWaiting, refusal: tooMany })
  // An admin who sets passwords without end must not keep others from logging in.
  const setting = createSemaphore({ atOnce: 1, waiting: maxWaiting, refusal: tooMany })
  const toBytes = (password: string): Buffer => Buffer.from(password.normalize('NFC'))
  const nobody = hashOfNothing(memoryKib)
  return {
    hash: (password) => setting(() => hash(toBytes(password), settings)),
    verify: (stored, password) =>
      checking(async () => {
        const has = stored !== null && stored !== ''
        const matches = await verify(has ? stored : nobody, toBytes(password))
        return matches && has
      }),
  }
}

const tooMany = (): AppError =>
  new AppError('overloaded', 'too many passwords are being checked or set', { retryAfterS: 2 })

/** A hash that no password matches; checking against it takes as long as against a real one. */
function hashOfNothing(memoryKib: number): string {
  const text = (bytes: number): string => randomBytes(bytes).toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memoryKib},t=${PASSES},p=${LANES}$${text(16)}$${text(32)}`
}

/**
 * Checks a new password.
 *
 * @param email of the user, which a guesser would try first
 * @throws AppError validation_error when it is too short, too long or easily guessed
 */
export async function checkPassword(password: string, email: string): Promise<void> {
  const fault = await passwordFault(password, email)
  if (fault === null) return
  throw new AppError('validation_error', `the password ${fault}`, {
    details: { errors: [{ in: 'body', path: 'password', message: fault }] },
  })
}

/** @returns the fault of a new password; null for a good one */
export async function passwordFault(password: string, email: string): Promise<string | null> {
  // Several blanks count as one (NIST SP 800-63B), and an emoji is one character.
  const { length } = Array.from(password.replaceAll(/ {2,}/g, ' '))
  if (length < MIN_PASSWORD_CHARACTERS || password.length > MAX_PASSWORD_CHARACTERS)
    return `must have ${MIN_PASSWORD_CHARACTERS} to ${MAX_PASSWORD_CHARACTERS} characters`
  const { estimateGuesses } = await import('./guessable.js')
  return estimateGuesses(password, email) < LEAST_GUESSES
    ? 'must not be a common one, a repetition or made of the e-mail'
    : null
}

/**
 * A password that needs fewer guesses is in lists of common passwords; the next step, 100 million,
 * would refuse many good ones.
 */
const LEAST_GUESSES = 1e6

/** @returns 24 URL-safe characters, 144 random bits */
export const generatePassword = (): string => randomBytes(18).toString('base64url')
