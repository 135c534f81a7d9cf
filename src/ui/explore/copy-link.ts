import { addressOf, place } from '../lib/router.js'
import { toRange } from '../lib/time.js'
import { copy } from '../shell/notice.js'
import type { Run } from './answers.js'

/** Copies the current address with absolute times, so that others see the same events. */
export function copyLink({ span }: Run): Promise<void> {
  const { path, params } = place.value
  const { from, to } = toRange(span)
  const link = location.origin + addressOf(path, params, { from, to })
  return copy(link, 'A link with absolute times is copied.')
}
