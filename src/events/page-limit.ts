import { createSemaphore } from '../lib/semaphore.js'
import { AppError } from '../model/errors.js'
import type { Events } from './events.js'

/**
 * Lists that are searched for at the same time: half of the connections to ClickHouse that all questions share
 * (`clickhouse/client.ts`). With more of them each takes so long that none ends in time.
 */
const PAGES_AT_ONCE = 10
const PAGES_WAITING = 1_000

/** Gives the search for a page with a limit on how many run at once. @throws AppError overloaded */
export function limitPages(page: Events['page']): Events['page'] {
  const limited = createSemaphore({
    atOnce: PAGES_AT_ONCE,
    waiting: PAGES_WAITING,
    refusal: () =>
      new AppError('overloaded', 'too many lists of events are being searched', { retryAfterS: 2 }),
  })
  return (query, signal) =>
    limited(() => {
      // A client that has left while it waited needs no page.
      signal?.throwIfAborted()
      return page(query, signal)
    })
}
