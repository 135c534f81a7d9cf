import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Partial results: queries that leave out shards that do not answer. `answerPartly` runs the
 * queries of one request, and they record here the shards that they leave out.
 */
export interface PartialQuestion {
  /** The shards whose rows the answer may lack. */
  readonly missing: Set<number>
  /** Finds the shards that do not answer after the queries have run; null while none was left out. */
  recheck: (() => Promise<readonly number[]>) | null
}

const questions = new AsyncLocalStorage<PartialQuestion | null>()

/** The request whose queries run; null when its result must be complete. */
export const partialQuestion = (): PartialQuestion | null => questions.getStore() ?? null

/** @returns the answer, and the shards whose rows it may lack */
export async function answerPartly<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly answer: T; readonly missing: readonly number[] }> {
  const question: PartialQuestion = { missing: new Set(), recheck: null }
  const answer = await questions.run(question, work)
  // A shard may have stopped answering after the first probe.
  for (const shard of (await question.recheck?.()) ?? []) question.missing.add(shard)
  return { answer, missing: [...question.missing].toSorted((a, b) => a - b) }
}

/**
 * Runs queries on all shards even within a partial request, for results that are shared with other
 * requests or would be wrong when partial.
 */
export const answerWhole = <T>(work: () => T): T => questions.run(null, work)
