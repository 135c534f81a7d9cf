import { notice } from '../shell/notice.js'
import { told } from './api.js'

/**
 * Waits for a change, and says how it went.
 *
 * @param said what is said when it was done; '' for nothing
 * @returns null when it was refused
 */
export async function act<T>(
  work: Promise<T>,
  said: string,
): Promise<{ readonly value: T } | null> {
  try {
    const value = await work
    if (said !== '') notice(said)
    return { value }
  } catch (error) {
    notice(told(error), 'problem')
    return null
  }
}
