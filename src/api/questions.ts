import { createFairSemaphore } from './semaphore.js'
import { AppError } from '../model/errors.js'

/** What a question asks of ClickHouse: `search` reads events, `rollup` reads counts. */
export type QuestionKind = 'search' | 'rollup'

/**
 * Half of the connections that searches have (`clickhouse/client.ts`), because a search reads its dictionaries in parallel. With
 * more of them, each takes so long that none ends within its timeout.
 */
const SEARCHES_AT_ONCE = 10
/** The connections of all other queries. */
const ROLLUPS_AT_ONCE = 20
const WAITING_PER_USER = 1_000

export type Questions = <T>(
  kind: QuestionKind,
  userId: string,
  work: () => Promise<T>,
) => Promise<T>

/**
 * Runs the questions of users. A user has at most `perUser` questions of a kind running; further ones wait, and the users
 * take turns.
 *
 * @throws AppError overloaded when too many questions of the user wait
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
