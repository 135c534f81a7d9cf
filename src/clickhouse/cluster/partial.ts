import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Answers without the shards that do not answer, for those who ask for them.
 *
 * `answerPartly` runs a question, and the statements of the question take note here of the shards that they leave out.
 */
export interface PartialQuestion {
  /** The shards whose rows the answer may lack. */
  readonly missing: Set<number>
  /** Finds the shards that do not answer after the statements of the question; null while none was left out. */
  recheck: (() => Promise<readonly number[]>) | null
}

const questions = new AsyncLocalStorage<PartialQuestion | null>()

/** The question whose statements run; null when its answer must be whole. */
export const partialQuestion = (): PartialQuestion | null => questions.getStore() ?? null

/** @returns the answer, and the shards whose rows it may lack */
export async function answerPartly<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly answer: T; readonly missing: readonly number[] }> {
  const question: PartialQuestion = { missing: new Set(), recheck: null }
  const answer = await questions.run(question, work)
  // A shard may have fallen silent after the first look.
  for (const shard of (await question.recheck?.()) ?? []) question.missing.add(shard)
  return { answer, missing: [...question.missing].toSorted((a, b) => a - b) }
}

/** Answers from all shards, also for those who ask for a part: what others get as well, and what a part would make wrong. */
export const answerWhole = <T>(work: () => T): T => questions.run(null, work)
