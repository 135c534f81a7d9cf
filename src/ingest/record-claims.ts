import type { BlockResult, BodyTask, EncodedBlock } from './block.js'
import type { Claim, Once } from './once.js'

/** A task with records that have ids, by which their senders may repeat them. */
export interface ClaimingTask {
  bodies: readonly BodyTask[]
  /** Null before the records are claimed, and without any. */
  claim: Claim | null
}

/** The keys of the accepted records with ids. */
export const idsOf = ({ bodies }: BlockResult): readonly string[] =>
  bodies.flatMap(({ ids }) => ids)

/**
 * Claims the ids of the records of an encoded task.
 *
 * @returns false when some were stored before, so that the task must be encoded again without them
 */
export async function claimRecords(
  task: ClaimingTask,
  result: EncodedBlock,
  once: Once,
): Promise<boolean> {
  const ids = [...new Set(idsOf(result))]
  if (ids.length === 0 || task.claim !== null) return true
  task.claim = await once.claim(ids, null).catch((cause: unknown) => {
    result.release()
    throw cause
  })
  const { isNew } = task.claim
  const repeats = new Set(ids.filter((_, i) => isNew[i] !== true))
  if (repeats.size === 0) return true
  task.bodies = task.bodies.map((body) => ({ ...body, repeats }))
  return false
}
