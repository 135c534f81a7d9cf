import { notice } from '../shell/notice.js'
import { messageOf } from './api.js'

/**
 * Awaits a change and reports its outcome.
 *
 * @param said the message after success; '' for none
 * @returns null when the change failed
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
    notice(messageOf(error), 'problem')
    return null
  }
}
