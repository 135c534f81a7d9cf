import { isTooCostly } from '../clickhouse/failure.js'
import type { RequestOptions, Store } from '../clickhouse/client.js'
import type { Counter } from './counts.js'
import type { DensityReader } from './density.js'
import type { EventQuestion, RangeQuestion } from './occurrences.js'
import { END_MS } from './range-rows.js'

/** The result of a query over a time range. */
export interface Bounded<Answer> {
  readonly answer: Answer
  /** The result covers the time from here on, which is the start of the range unless that would have taken too long. */
  readonly completeFromMs: number
}

/** Handlers have 30 s (`http/server.ts`). */
const FIRST_MS = 12_000
const SECOND_MS = 8_000
/** The second try reads this share of the occurrences. */
const SHARE = 1 / 10

/** What counts events of a question. */
export interface Counting {
  readonly store: Pick<Store, 'query'>
  readonly counter: Counter
  readonly bounded: BoundedRange
}

export type BoundedRange = ReturnType<typeof createBoundedRange>

/**
 * Runs a query over the whole range and, when that takes too much time or memory, once more over
 * its newest part.
 *
 * @throws AppError dependency_unavailable when that takes too much as well
 */
export function createBoundedRange(density: DensityReader, windowMs: number) {
  return async <Answer>(
    { filter, fromMs, toMs }: EventQuestion,
    signal: AbortSignal | undefined,
    ask: (question: RangeQuestion, options: RequestOptions) => Promise<Answer>,
  ): Promise<Bounded<Answer>> => {
    const limits = signal === undefined ? {} : { signal }
    const range = {
      filter,
      fromMs,
      toMs: Math.min(toMs ?? END_MS, END_MS),
      endMs: Math.min(toMs ?? END_MS, Date.now()),
      windowMs,
    }
    const asked = { ...limits, isSearch: true }
    try {
      const answer = await ask(range, { ...asked, timeoutMs: FIRST_MS })
      return { answer, completeFromMs: fromMs }
    } catch (error) {
      if (!isTooCostly(error)) throw error
      const counts = await density.read(asked)
      const wanted = Math.max(1, counts.count(fromMs, range.toMs) * SHARE)
      const newestMs = Math.max(fromMs, counts.startOf(range.toMs, wanted))
      // Whole seconds are counted by the rollups.
      const completeFromMs = Math.min(Math.ceil(newestMs / 1000) * 1000, range.toMs)
      const part = { ...range, fromMs: completeFromMs }
      return { answer: await ask(part, { ...asked, timeoutMs: SECOND_MS }), completeFromMs }
    }
  }
}
