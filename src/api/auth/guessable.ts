import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common'

/*
 * Loaded when the first password is set: the dictionary takes 70 ms and 24 MB.
 */

const estimator = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs })
/** The time of the estimate grows with the square of the length, so only the beginning of a long password is judged. */
const ESTIMATED_CHARACTERS = 64

/** @returns how many guesses this password takes for somebody who knows common passwords and the e-mail */
export function estimateGuesses(password: string, email: string): number {
  const words = [email, ...email.split(/[^\p{L}\p{N}]+/u)].filter((word) => word.length > 2)
  return estimator.check(password.slice(0, ESTIMATED_CHARACTERS), words).guesses
}
