import { AsyncLocalStorage } from 'node:async_hooks'
import type { QueryParams, Store } from '../clickhouse/client.js'

/*
 * Reports to the caller that events were read from cold storage, which takes longer. Each statement
 * that reads events gets the earliest possible arrival (`arrived_ms`), so that ClickHouse skips the
 * partitions of earlier days.
 */

interface Question {
  isCold: boolean
}

const questions = new AsyncLocalStorage<Question>()

type Reading = Pick<Store, 'query' | 'queryColumns' | 'change'>

/** @param untilMs events that arrived before may be in cold storage; 0 for none */
export function notingColdReads(store: Reading, untilMs: () => number): Reading {
  const note = ({ arrived_ms: arrivedMs }: QueryParams): void => {
    const question = questions.getStore()
    if (question !== undefined && typeof arrivedMs === 'number' && arrivedMs < untilMs())
      question.isCold = true
  }
  return {
    change: (sql, params, options) => store.change(sql, params, options),
    query: (asked, params, options) => {
      note(params)
      return store.query(asked, params, options)
    },
    queryColumns: (asked, params, options) => {
      note(params)
      return store.queryColumns(asked, params, options)
    },
  }
}

/** @returns the result, and whether it needed days in cold storage */
export async function answerNotingCold<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly answer: T; readonly isCold: boolean }> {
  const question: Question = { isCold: false }
  const answer = await questions.run(question, work)
  return { answer, isCold: question.isCold }
}
