import { createSemaphore } from '../lib/semaphore.js'
import { AppError } from '../model/errors.js'
import type { Events } from './events.js'

/**
 * Concurrent pages: half of the connections to ClickHouse that all queries share (`clickhouse/client.ts`). With more of
 * them, each takes so long that none ends within its timeout.
 */
const PAGES_AT_ONCE = 10
const PAGES_WAITING = 1_000

/** Limits how many pages are read at once. @throws AppError overloaded */
export function limitPages(page: Events['page']): Events['page'] {
  const limited = createSemaphore({
    atOnce: PAGES_AT_ONCE,
    waiting: PAGES_WAITING,
    refusal: () =>
      new AppError('overloaded', 'too many lists of events are being searched', { retryAfterS: 2 }),
  })
  return (query, signal) =>
    limited(() => {
      // A client that disconnected while waiting needs no page.
      signal?.throwIfAborted()
      return page(query, signal)
    })
}
