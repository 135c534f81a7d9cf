import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common'

/* The estimator is loaded when the first password is set, because its dictionary takes 70 ms and 24 MB. */

const estimator = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs })
/** Only the first characters of a long password are estimated, because the time grows with the square of the length. */
const ESTIMATED_CHARACTERS = 64

/**
 * @returns the estimated number of guesses for somebody who knows common passwords and the e-mail
 */
export function estimateGuesses(password: string, email: string): number {
  const words = [email, ...email.split(/[^\p{L}\p{N}]+/u)].filter((word) => word.length > 2)
  return estimator.check(password.slice(0, ESTIMATED_CHARACTERS), words).guesses
}
