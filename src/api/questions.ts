import { createFairSemaphore } from './semaphore.js'
import { AppError } from '../model/errors.js'

/** The kind of a query: `search` reads events, `rollup` reads counts. */
export type QuestionKind = 'search' | 'rollup'

/**
 * The most concurrent searches: half of their connections (`clickhouse/client.ts`), because a
 * search reads its dictionaries in parallel. With more, each would take so long that none ends
 * within its timeout.
 */
const SEARCHES_AT_ONCE = 10
/** The most concurrent queries of counts: the connections of all other queries. */
const ROLLUPS_AT_ONCE = 20
const WAITING_PER_USER = 1_000

export type Questions = <T>(
  kind: QuestionKind,
  userId: string,
  work: () => Promise<T>,
) => Promise<T>

/**
 * Runs the queries of users. A user may run at most `perUser` queries of a kind at once; further
 * ones wait, and waiting users are served in turn.
 *
 * @throws AppError overloaded when too many queries of the user wait
 */
export function createQuestions(perUser: number): Questions {
  const refusal = (): Error =>
    new AppError('overloaded', 'too many queries of this user wait for an answer', {
      retryAfterS: 2,
    })
  const limits = { perKey: perUser, waitingPerKey: WAITING_PER_USER, refusal }
  const semaphores = {
    search: createFairSemaphore({ ...limits, atOnce: SEARCHES_AT_ONCE }),
    rollup: createFairSemaphore({ ...limits, atOnce: ROLLUPS_AT_ONCE }),
  }
  return (kind, userId, work) => semaphores[kind](userId, work)
}
